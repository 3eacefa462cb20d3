// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/weighted_sum/weighted_sum.h"
#include "ops/dense_rows.h"
#include "ops/scratch.h"

namespace moeyard::ops {

struct CombineArgs;

// What aclnnMoeDistributeCombineAddRmsNorm makes of the sums that combine adds up, with residualX as their last term: xOut, and
// yOut divided by the root of its mean square. Default-made: nothing, as in combine.
class NormStep {
 public:
  NormStep() = default;
  NormStep(const CombineArgs& args, Scratch& scratch);

  void gather(const CombineArgs& args, std::byte* workspace) const;
  Rows residual(const CombineArgs& args, std::byte* workspace) const;
  // `sums` says what to add up; rows of xOut go to x.
  void run(const CombineArgs& args, kernels::WeightedSum sums, const Rows& x, Range tokens,
           std::byte* workspace) const;
  void scatter(const CombineArgs& args, std::byte* workspace) const;

 private:
  kernels::WeightedSumFn weighted_sum_ = nullptr;
  kernels::RmsNormFn rms_norm_ = nullptr;
  DenseRows residual_, gamma_, y_;
  Part<float> wide_;  // [BS, H] the sums before they are rounded
};

}  // namespace moeyard::ops
