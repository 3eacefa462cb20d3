// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "contract/contract.h"

// Rules and limits that several routing operators share.
namespace moeyard::ops {

inline constexpr std::int64_t kIndexLimit = 16777215;  // indices pass through fp32 on devices
inline constexpr std::int64_t kMostTopk = 512;

// Weights have the dtype of the rows, or are FP32 beside BF16 rows.
inline bool weighs(const TensorView& weights, const TensorView& rows) {
  return !weights.present() || weights.dtype == rows.dtype ||
         (weights.dtype == ACL_FLOAT && rows.dtype == ACL_BF16);
}

template <class Args, TensorView Args::*kWeights, TensorView Args::*kRows>
constexpr contract::Rule probs_dtype_rule(std::string_view weights) {
  return contract::rule<Args>(
      contract::Stage::attributes, kEverywhere, weights,
      "have the dtype of the rows, or be FP32 when they are BF16",
      [](const Args& a) { return weighs(a.*kWeights, a.*kRows); }, "cast it first", ACLNN_ERR_PARAM_INVALID);
}

}  // namespace moeyard::ops
