// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "acl/acl_rt.h"
#include "base/status.h"

namespace moeyard::runtime {

class Context;

// The devices of this process: MOEYARD_DEVICES of them, less those that ASCEND_RT_VISIBLE_DEVICES hides.
// Programs count from 0 over what is left. Read once.

// Physical numbers of the visible devices, as ASCEND_RT_VISIBLE_DEVICES (null: not set) says: reading stops
// at the first character or number that is not valid; empty if the list does not ascend.
std::vector<int> parse_visible_devices(const char* text, int devices);

int device_count();               // 0: the list leaves none
int physical_device(int device);  // of a valid device
Status check_device(std::string_view function, std::string_view parameter, std::int64_t device);  // 107001

// The default context of a device. Use counts belong to aclrtSetDevice and aclrtResetDevice.
Result<std::shared_ptr<Context>> use_device(std::string_view function, int device, bool count);
Status release_device(std::string_view function, int device, bool force);
bool has_default_context(int device);

// Figures of the chip that is emulated; `host`: of this machine.
std::string_view soc_name();
struct ChipFigures {
  std::int64_t ai_cores, vector_cores, l2_bytes, memory_bytes, ub_bytes, npu_arch;
};
ChipFigures chip_figures();
std::int64_t cores_of(aclrtDevResLimitType type);  // 0: no such type

// aclrtSetDeviceResLimit: a number of cores that is kept only. 0 puts the device's own back.
std::uint32_t core_limit(int device, aclrtDevResLimitType type);
void set_core_limit(int device, aclrtDevResLimitType type, std::uint32_t cores);

}  // namespace moeyard::runtime
