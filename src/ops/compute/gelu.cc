// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/compute/gelu.h"

#include <algorithm>

#include "ops/compute/strided.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using A = GeluArgs;

constexpr Param kV2Params[] = {
    in<&A::x>("x", kFloats, "", "what is activated"),
    attribute<&A::approximate>("approximate", "0 with erf, 1 with tanh"),
    out<&A::y>("y", kFloats, "", "the result, as x").like("x").or_in_place(),
};
constexpr Rule kV2Rules[] = {
    rule<A>(Stage::attributes, kEverywhere, "approximate", "be 0 or 1",
            [](const A& a) { return a.approximate == 0 || a.approximate == 1; }),
    rule<A>(Stage::shapes, kEverywhere, "y", "have the shape of x",
            [](const A& a) { return std::ranges::equal(a.y.dims(), a.x.dims()); }),
};

constexpr Param kParams[] = {
    in<&A::x>("self", kFloats, "", "what is activated"),
    out<&A::y>("out", kFloats, "", "the result, as self").like("self").or_in_place(),
};
constexpr Rule kRules[] = {
    rule<A>(Stage::shapes, kEverywhere, "out", "have the shape of self",
            [](const A& a) { return std::ranges::equal(a.y.dims(), a.x.dims()); }),
};

}  // namespace

const Contract GeluV2::kContract{{
    .name = "GeluV2",
    .family = "compute",
    .summary = "Gaussian error linear unit of each element, exact or with tanh.",
    .source = "aclnnGeluV2",
    .params = kV2Params,
    .rules = kV2Rules,
}};

const Contract Gelu::kContract{{
    .name = "Gelu",
    .family = "compute",
    .summary = "Gaussian error linear unit of each element, with tanh.",
    .source = "aclnnGelu",
    .params = kParams,
    .rules = kRules,
}};

Result<GeluV2::Plan> GeluV2::plan(const char* /*function*/, const Args& args) {
  Plan plan;
  plan.tiny = args.y.numel() <= kTinyElements;
  return plan;
}

Status GeluV2::run(const executor::Run& /*run*/, const Args& args, const Plan& /*plan*/) {
  StridedRows rows(args.y.dims());
  rows.add(args.x);
  rows.add(args.y);
  run_elements(args.approximate == 0 ? kernels::ElementOp::gelu_erf : kernels::ElementOp::gelu_tanh, rows,
               args.x.dtype, args.y.dtype);
  return {};
}

}  // namespace moeyard::ops
