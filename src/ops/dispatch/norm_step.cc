// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/dispatch/norm_step.h"

#include "ops/dispatch/combine.h"

namespace moeyard::ops {
namespace {

TensorView as_matrix(const TensorView& vector) {
  TensorView matrix = vector;
  matrix.rank = 2;
  matrix.shape[0] = 1, matrix.shape[1] = vector.shape[0];
  matrix.strides[0] = 0, matrix.strides[1] = vector.strides[0];
  return matrix;
}

}  // namespace

NormStep::NormStep(const CombineArgs& args, Scratch& scratch)
    : weighted_sum_(kernels::weighted_sum_variants().front().run),
      rms_norm_(kernels::rms_norm_variants().front().run),
      residual_(args.residual_x, args.bs(), scratch),
      gamma_(as_matrix(args.gamma), 1, scratch),
      y_(args.y_out, args.bs(), scratch),
      wide_(scratch.add<float>(args.bs() * args.hidden())) {}

void NormStep::gather(const CombineArgs& args, std::byte* workspace) const {
  residual_.gather(args.residual_x, args.bs(), workspace);
  gamma_.gather(as_matrix(args.gamma), 1, workspace);
  y_.gather(args.y_out, args.bs(), workspace);  // rows of inactive tokens keep what they hold
}

Rows NormStep::residual(const CombineArgs& args, std::byte* workspace) const {
  return residual_.rows(args.residual_x, workspace);
}

void NormStep::run(const CombineArgs& args, kernels::WeightedSum sums, const Rows& x, Range tokens,
                   std::byte* workspace) const {
  const std::int64_t hidden = args.hidden();
  float* wide = wide_.in(workspace);
  sums.out = reinterpret_cast<std::byte*>(wide);
  sums.out_stride = hidden * static_cast<std::int64_t>(sizeof(float));
  sums.wide = true, sums.streaming = false;
  weighted_sum_(sums, tokens);
  const Rows y = y_.rows(args.y_out, workspace);
  const std::byte* gamma = gamma_.rows(as_matrix(args.gamma), workspace)[0];
  for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
    if (sums.terms_of_token[t] < 0) continue;
    args.rstd_out.at<float>(t) =
        rms_norm_({wide + t * hidden, gamma, args.norm_eps, x[t], y[t], args.x_out.dtype, hidden});
  }
}

void NormStep::scatter(const CombineArgs& args, std::byte* workspace) const {
  y_.scatter(args.y_out, args.bs(), workspace);
}

}  // namespace moeyard::ops
