// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/job.h"
#include "model/rank.h"

namespace moeyard::model {

// The weights of n MLPs of one size on a device, and room for what lies between their two products.
class MlpBlock {
 public:
  // For up to `rows` rows at a time.
  static Result<MlpBlock> make(const Job& job, std::int64_t count, std::int64_t size, std::int64_t rows);
  Status load(const Job& job, const Mlp& mlp, std::int64_t index);
  // out = down(SwiGLU(gate_up(x))): x and out [rows, H], rows_of_mlp INT64 [n].
  Status queue(Rank& rank, Tensor x, const DeviceTensor& rows_of_mlp, std::int64_t rows, Tensor out);

 private:
  DeviceTensor gate_up_;       // [n, 2I, H]: the gate's rows, then up's
  DeviceTensor down_;          // [n, H, I]
  DeviceTensor both_, inner_;  // [rows, 2I], [rows, I]
};

// The factor sigmoid(x * w) that some families give a shared expert's results.
class SharedGate {
 public:
  static Result<SharedGate> make(const Job& job, std::int64_t rows);
  // results *= sigmoid(x * w): x FP32 [rows, H], results [rows, H], rows_of_mlp INT64 [1].
  Status queue(Rank& rank, Tensor x, const DeviceTensor& rows_of_mlp, std::int64_t rows, Tensor results);

 private:
  DeviceTensor weight_, logits_, factor_;  // [1, 1, H], [rows, 1], [rows, 1] in fp32
};

}  // namespace moeyard::model
