// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/device_info.h"

#include "base/errors.h"
#include "runtime/device.h"

namespace moeyard::runtime {

Result<std::int64_t> device_attribute(std::string_view function, int device, aclrtDevAttr attribute) {
  constexpr std::int64_t kAiCpuCores = 6;
  const ChipFigures chip = chip_figures();
  switch (attribute) {
    case ACL_DEV_ATTR_AICPU_CORE_NUM:
      return kAiCpuCores;
    case ACL_DEV_ATTR_AICORE_CORE_NUM:
    case ACL_DEV_ATTR_CUBE_CORE_NUM:
      return chip.ai_cores;
    case ACL_DEV_ATTR_VECTOR_CORE_NUM:
      return chip.vector_cores;
    case ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE:
      return chip.ub_bytes;
    case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE:
      return chip.memory_bytes;
    case ACL_DEV_ATTR_L2_CACHE_SIZE:
      return chip.l2_bytes;
    case ACL_DEV_ATTR_PHY_CHIP_ID:
      return std::int64_t{physical_device(device)};
    case ACL_DEV_ATTR_SUPER_POD_DEVICE_ID:
      return std::int64_t{physical_device(device)};
    case ACL_DEV_ATTR_SUPER_POD_SERVER_ID:
    case ACL_DEV_ATTR_SUPER_POD_ID:
    case ACL_DEV_ATTR_IS_VIRTUAL:
      return std::int64_t{0};
    case ACL_DEV_ATTR_NPU_ARCH:
      return chip.npu_arch;
    case ACL_DEV_ATTR_WARP_SIZE:
    case ACL_DEV_ATTR_MAX_THREAD_PER_VECTOR_CORE:
    case ACL_DEV_ATTR_MAX_GRID_DIM_X:
    case ACL_DEV_ATTR_MAX_GRID_DIM_Y:
    case ACL_DEV_ATTR_MAX_GRID_DIM_Z:
    case ACL_DEV_ATTR_MAX_BLOCK_PER_GRID:
    case ACL_DEV_ATTR_MAX_THREADS_PER_BLOCK:
    case ACL_DEV_ATTR_MAX_BLOCK_DIM_X:
    case ACL_DEV_ATTR_MAX_BLOCK_DIM_Y:
    case ACL_DEV_ATTR_MAX_BLOCK_DIM_Z:
    case ACL_DEV_ATTR_SMP_ID:
    case ACL_DEV_ATTR_CUST_OP_PRIVILEGE:
    case ACL_DEV_ATTR_MAINBOARD_ID:
    case ACL_DEV_ATTR_HD_CONNECT_TYPE:
    case ACL_DEV_ATTR_DEVICE_FORM_FACTOR:
      return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, TextCode::runtime_parameter,
                  "{}: attr {} is a figure that devices made of host memory do not have", function,
                  static_cast<int>(attribute));
  }
  return fail(ACL_ERROR_INVALID_PARAM, TextCode::runtime_parameter,
              "{}: attr is {} but must be a value of aclrtDevAttr", function, static_cast<int>(attribute));
}

Result<std::int64_t> device_capability(std::string_view function, aclDeviceInfo info) {
  const ChipFigures chip = chip_figures();
  switch (info) {
    case ACL_DEVICE_INFO_AI_CORE_NUM:
      return chip.ai_cores;
    case ACL_DEVICE_INFO_VECTOR_CORE_NUM:
      return chip.vector_cores;
    case ACL_DEVICE_INFO_L2_SIZE:
      return chip.l2_bytes;
    case ACL_DEVICE_INFO_UNDEFINED:
      break;
  }
  return fail(ACL_ERROR_INVALID_PARAM, TextCode::runtime_parameter,
              "{}: deviceInfo is {} but must be a value of aclDeviceInfo other than UNDEFINED", function,
              static_cast<int>(info));
}

}  // namespace moeyard::runtime
