// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/compute/swi_glu.h"

#include "ops/compute/strided.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using A = SwiGluArgs;

constexpr Param kParams[] = {
    in<&A::x>("x", kFloats, "", "both halves along dim: what is activated, then what it gates"),
    attribute<&A::dim>("dim", "axis that is halved, from the end if negative"),
    out<&A::out>("out", kFloats, "", "as x, half as long along dim").like("x"),
};

bool has_half_the_shape(const A& a) {
  if (a.out.rank != a.x.rank) return false;
  for (int axis = 0; axis < a.x.rank; ++axis)
    if (a.out.dim(axis) != (axis == a.axis() ? a.x.dim(axis) / 2 : a.x.dim(axis))) return false;
  return true;
}

constexpr Rule kRules[] = {
    rule<A>(Stage::attributes, kEverywhere, "x", "have at least 1 dimension",
            [](const A& a) { return a.x.rank >= 1; }),
    rule<A>(Stage::attributes, kEverywhere, "dim", "be an axis of x",
            [](const A& a) { return -a.x.rank <= a.dim && a.dim < a.x.rank; }),
    rule<A>(Stage::shapes, kEverywhere, "x", "have an even size along dim",
            [](const A& a) { return a.x.dim(a.axis()) % 2 == 0; }),
    rule<A>(Stage::shapes, kEverywhere, "out", "have the shape of x, half as long along dim",
            [](const A& a) { return has_half_the_shape(a); }),
};

}  // namespace

const Contract SwiGlu::kContract{{
    .name = "SwiGlu",
    .family = "compute",
    .summary = "Gates one half of a tensor with the SiLU of the other.",
    .source = "aclnnSwiGlu",
    .products = kHost | kA2 | kA3 | k950,
    .params = kParams,
    .rules = kRules,
}};

Result<SwiGlu::Plan> SwiGlu::plan(const char* /*function*/, const Args& args) {
  Plan plan;
  plan.tiny = args.out.numel() <= kTinyElements;
  return plan;
}

Status SwiGlu::run(const executor::Run& /*run*/, const Args& args, const Plan& /*plan*/) {
  const int axis = args.axis();
  const std::int64_t half = args.out.dim(axis) * args.x.strides[axis];
  TensorView second = args.x;
  second.offset += half;
  StridedRows rows(args.out.dims());
  const std::span strides(args.x.strides, static_cast<std::size_t>(args.x.rank));
  rows.add(args.x.begin(), args.x.dtype, strides);
  rows.add(second.begin(), args.x.dtype, strides);
  rows.add(args.out);
  run_elements(kernels::ElementOp::swiglu, rows, args.x.dtype, args.x.dtype, args.out.dtype);
  return {};
}

}  // namespace moeyard::ops
