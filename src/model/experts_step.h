// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>

#include "model/dispatch_step.h"
#include "model/mlp.h"

namespace moeyard::model {

// The MLPs of the instances on a rank, each on the rows it received, and the shared expert on the rank's own
// tokens.
class ExpertsStep {
 public:
  // Calls `loaded` after each instance.
  static Result<ExpertsStep> make(const Job& job, int rank, const std::function<void()>& loaded);
  // `rows` is what dispatch received.
  Status queue(const Job& job, Rank& rank, const DispatchStep& dispatch, std::int64_t rows);

  const DeviceTensor& out() const { return out_; }                                      // [capacity, H]
  const DeviceTensor* shared_out() const { return shared_ ? &shared_->out : nullptr; }  // [T, H]

 private:
  struct Shared {
    MlpBlock mlp;
    DeviceTensor rows, out;  // INT64 [1]: the tokens of the rank; [T, H]
    std::optional<SharedGate> gate;
    DeviceTensor wide_tokens;  // FP32 [T, H], what the gate reads
  };

  ExpertsStep() = default;
  Status make_shared(const Job& job, int rank);
  Status queue_shared(const Job& job, Rank& rank, const DispatchStep& dispatch);

  MlpBlock mlps_;
  DeviceTensor out_;
  std::optional<Shared> shared_;
};

}  // namespace moeyard::model
