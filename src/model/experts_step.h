// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>

#include "model/dispatch_step.h"

namespace moeyard::model {

// One block of weights for n MLPs of one size, and the buffers of their results.
struct MlpBlock {
  DeviceTensor gate_up;           // [n, 2I, H]: the gate's rows, then up's
  DeviceTensor down;              // [n, H, I]
  DeviceTensor both, inner, out;  // [rows, 2I], [rows, I], [rows, H]
};

// The MLPs of the instances on a rank, each on the rows it received, and the shared expert on the rank's own
// tokens.
class ExpertsStep {
 public:
  // Calls `loaded` after each instance.
  static Result<ExpertsStep> make(const Job& job, int rank, const std::function<void()>& loaded);
  // `rows` is what dispatch received.
  Status queue(const Job& job, Rank& rank, const DispatchStep& dispatch, std::int64_t rows);

  const DeviceTensor& out() const { return experts_.out; }                              // [capacity, H]
  const DeviceTensor* shared_out() const { return shared_ ? &shared_->out : nullptr; }  // [T, H]

 private:
  ExpertsStep() = default;
  Status make_shared(const Job& job, int rank);
  Status queue_shared(const Job& job, Rank& rank, const DispatchStep& dispatch);

  MlpBlock experts_;
  std::optional<MlpBlock> shared_;
  DeviceTensor shared_rows_;  // INT64 [1]: the tokens of the rank
  struct SharedGate {
    DeviceTensor weight, tokens, logits, factor;  // [1, 1, H], [T, H], [T, 1], [T, 1] in fp32
  };
  std::optional<SharedGate> shared_gate_;
};

}  // namespace moeyard::model
