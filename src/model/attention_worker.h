// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "model/gate_step.h"
#include "model/worker.h"

namespace moeyard::model {

// A rank with tokens: chooses their experts, sends them to FFN workers in micro-batches, several under way at a time,
// and adds up what comes back.
class AttentionWorker {
 public:
  static Result<AttentionWorker> make(const Job& job, Rank& rank);
  // All tokens, once; adds the times of its phases.
  Status pass(const Job& job, Rank& rank, PhaseTimes& times);

  WorkerContext& context() { return context_; }
  const GateStep& gate() const { return gate_; }
  const DeviceTensor& out() const { return out_; }  // [T rounded up to whole micro-batches, H]

 private:
  AttentionWorker(const Job& job, WorkerContext context, GateStep gate)
      : shape_(job), context_(std::move(context)), gate_(std::move(gate)) {}
  Status make_tensors(const Job& job, int rank);
  Status send(const Job& job, Rank& rank, std::int64_t batch);
  Status collect(Rank& rank, std::int64_t batch, PhaseTimes& times);
  std::int64_t micro_batch(std::int64_t batch) const { return batch % shape_.micro_batches; }

  WorkerShape shape_;
  WorkerContext context_;
  GateStep gate_;
  std::int64_t batches_ = 0, token_dtype_ = 0;
  DeviceTensor tokens_, experts_, weights_, out_;  // with rows for whole micro-batches
  std::optional<DeviceTensor> last_mask_;          // of a last micro-batch that is not full
  DeviceTensor session_, micro_batches_, layer_, next_layer_, expert_table_;
};

}  // namespace moeyard::model
