// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "atb/utils.h"

#include <cstring>

#include "atb/failure.h"
#include "moeyard/atb_backend.h"

namespace atb {

std::string Utils::GetAtbVersion() { return "moeyard-" MOEYARD_VERSION; }

uint64_t Utils::GetTensorNumel(const TensorDesc& tensorDesc) {
  const Dims& shape = tensorDesc.shape;
  if (shape.dimNum == 0 || shape.dimNum > MAX_DIM) return 0;
  uint64_t numel = 1;
  for (uint64_t i = 0; i < shape.dimNum; ++i)
    if (shape.dims[i] <= 0 || __builtin_mul_overflow(numel, static_cast<uint64_t>(shape.dims[i]), &numel))
      return 0;
  return numel;
}

uint64_t Utils::GetTensorSize(const TensorDesc& tensorDesc) {
  const uint64_t element = tensorDesc.dtype == ACL_DT_UNDEFINED ? 1 : aclDataTypeSize(tensorDesc.dtype);
  uint64_t bytes = 0;
  return __builtin_mul_overflow(GetTensorNumel(tensorDesc), element, &bytes) ? 0 : bytes;
}

uint64_t Utils::GetTensorNumel(const Tensor& tensor) { return GetTensorNumel(tensor.desc); }
uint64_t Utils::GetTensorSize(const Tensor& tensor) { return GetTensorSize(tensor.desc); }

void Utils::QuantParamConvert(const float* src, uint64_t* dest, uint64_t itemCount) {
  if (src == nullptr || dest == nullptr) return;
  for (uint64_t i = 0; i < itemCount; ++i) {
    uint32_t bits;
    std::memcpy(&bits, &src[i], sizeof bits);
    dest[i] = bits;
  }
}

Status Utils::SetLogLevel(LogLevel level) {
  const int number = static_cast<int>(level);
  if (number < static_cast<int>(LogLevel::DEBUG) || number > static_cast<int>(LogLevel::NONE))
    return moeyard::atb_layer::fail(ERROR_INVALID_PARAM, "SetLogLevel: level is %d but must be in [0, 4]",
                                    number);
  moeyardAtbSetLogLevel(number);
  return NO_ERROR;
}

Status Utils::ResetLogLevel() {
  moeyardAtbSetLogLevel(-1);
  return NO_ERROR;
}

}  // namespace atb
