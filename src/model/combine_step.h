// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/experts_step.h"

namespace moeyard::model {

// Brings the experts' rows back to their tokens and adds them up by weight, with the shared expert's.
class CombineStep {
 public:
  static Result<CombineStep> make(const Job& job, int rank);
  Status queue(const Job& job, Rank& rank, const GateStep& gate, const DispatchStep& dispatch,
               const ExpertsStep& experts);

  const DeviceTensor& out() const { return out_; }  // [T, H]

 private:
  CombineStep() = default;
  DeviceTensor out_;
};

}  // namespace moeyard::model
