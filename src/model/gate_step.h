// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "model/job.h"
#include "model/rank.h"

namespace moeyard::model {

// Chooses the experts of a rank's tokens: logits in fp32, the family's gating operator, and with a placement
// the instance of each chosen expert (with FFN workers their table of experts does that).
class GateStep {
 public:
  static Result<GateStep> make(const Job& job, int rank);
  Status queue(const Job& job, Rank& rank);

  const DeviceTensor& experts() const { return experts_; }  // INT32 [T, K]
  const DeviceTensor& weights() const { return weights_; }  // FP32 [T, K]
  const DeviceTensor& scores() const { return scores_; }    // FP32 [T, E], of families that use GatingTopK
  const DeviceTensor& instances() const { return instances_ ? *instances_ : experts_; }  // INT32 [T, K]

 private:
  GateStep() = default;
  Status queue_choice(const Job& job, Rank& rank);
  Status queue_instances(const Job& job, Rank& rank);

  DeviceTensor tokens_, router_, row_count_, logits_, experts_, weights_, scores_;
  std::optional<DeviceTensor> bias_, table_, instances_, unused_mask_;
};

}  // namespace moeyard::model
