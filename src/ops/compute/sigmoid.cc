// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/compute/sigmoid.h"

#include <algorithm>

#include "ops/compute/strided.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using A = SigmoidArgs;

constexpr Param kParams[] = {
    in<&A::self>("self", kFloats, "", "x"),
    out<&A::out>("out", kFloats, "", "1 / (1 + exp(-x)), in the shape of self").or_in_place(),
};

constexpr Rule kRules[] = {
    rule<A>(Stage::shapes, kEverywhere, "out", "have the shape of self",
            [](const A& a) { return std::ranges::equal(a.out.dims(), a.self.dims()); }),
};

}  // namespace

const Contract Sigmoid::kContract{{
    .name = "Sigmoid",
    .family = "compute",
    .summary = "The logistic function of each element.",
    .source = "aclnnSigmoid",
    .params = kParams,
    .rules = kRules,
}};

Result<Sigmoid::Plan> Sigmoid::plan(const char* /*function*/, const Args& args) {
  Plan plan;
  plan.tiny = args.out.numel() <= kTinyElements;
  return plan;
}

Status Sigmoid::run(const executor::Run& /*run*/, const Args& args, const Plan& /*plan*/) {
  StridedRows rows(args.out.dims());
  rows.add(args.self);
  rows.add(args.out);
  run_elements(kernels::ElementOp::sigmoid, rows, args.self.dtype, args.out.dtype);
  return {};
}

}  // namespace moeyard::ops
