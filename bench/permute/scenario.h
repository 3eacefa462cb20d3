// Moeyard. SPDX-License-Identifier: Apache-2.0
// 4096 tokens of 4096 BF16 elements go to 8 of 64 experts each, and come back with weights.
#pragma once
#include "bench/operator_call.h"

namespace bench::permute {

inline constexpr std::int64_t kTokens = 4096, kExperts = 64, kTopk = 8, kHidden = 4096,
                              kRows = kTokens * kTopk, kRowBytes = kHidden * 2;

struct Scenario {
  Scenario();
  std::vector<std::uint8_t> map;          // (tokens, experts)
  std::vector<std::int32_t> row_of_slot;  // slots by token and rising expert
  std::vector<std::int32_t> token_of_row;
};
const Scenario& scenario();

// Our operators on tensors of their own.
class Ours {
 public:
  Ours();
  void permute();    // aclnnMoeTokenPermuteWithRoutingMap
  void unpermute();  // aclnnMoeTokenUnpermuteWithRoutingMap

  Stream stream;
  DeviceTensor tokens, map, probs, rows, row_probs, index, out, out_index, token_id, slot_probs;
};

}  // namespace bench::permute
