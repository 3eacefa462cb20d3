// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

namespace moeyard::tool {

struct RunOptions {
  std::string model, input, expect, placement, output, json;
  std::int64_t layer = 0;
  int ranks = 1;
  int processes = 0;
  bool ranks_given = false;
  bool is_one_rank = false;  // of a run that a launcher has started
  std::string meet_at;       // HOST:PORT of rank 0, for ranks that a launcher has started
  bool afd = false;          // attention workers and FFN workers instead of ranks that are both
  int attention_workers = 2, ffn_workers = 2;
  bool attention_workers_given = false, ffn_workers_given = false;
  std::int64_t micro_batches = 3, micro_batch_tokens = 16;
  int repeat = 1;
  std::string dtype;              // "": that of the weights, bf16 for fp32
  std::string balance = "token";  // or "rank"
  std::string input_name = "hidden_states", expect_name = "expected", output_name = "output";
  bool with_topk = false;
};

}  // namespace moeyard::tool
