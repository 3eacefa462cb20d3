// Moeyard. SPDX-License-Identifier: Apache-2.0
#ifndef ATB_UTILS_H
#define ATB_UTILS_H

#include <cstdint>
#include <string>

#include "atb/types.h"

namespace atb {

class Utils {
 public:
  static std::string GetAtbVersion();

  // Bytes and elements of a tensor. 0 without dimensions, if one is not positive, and if the result does not fit. The undefined
  // type counts as 1 byte.
  static uint64_t GetTensorSize(const Tensor& tensor);
  static uint64_t GetTensorSize(const TensorDesc& tensorDesc);
  static uint64_t GetTensorNumel(const Tensor& tensor);
  static uint64_t GetTensorNumel(const TensorDesc& tensorDesc);

  // The bits of each float in the low half of a uint64_t, as quantised operators take scales.
  static void QuantParamConvert(const float* src, uint64_t* dest, uint64_t itemCount);

  // Which messages go to the log; ResetLogLevel goes back to what the environment says.
  static Status SetLogLevel(LogLevel level);
  static Status ResetLogLevel();
};

}  // namespace atb
#endif  // ATB_UTILS_H
