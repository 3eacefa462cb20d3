// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/compute/mul.h"

#include <algorithm>
#include <type_traits>

#include "ops/compute/strided.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using A = MulArgs;

constexpr Dtypes kTypes = kFloats | kINT32 | kINT64;
constexpr Param kParams[] = {
    in<&A::self>("self", kTypes, "", "one factor"),
    in<&A::other>("other", kTypes, "", "the other; both are broadcast to one shape"),
    out<&A::out>("out", kTypes, "", "their product, in that shape").or_in_place(),
};

bool types_fit(const A& a) {
  if (kFloats.has(a.out.dtype)) return kFloats.has(a.self.dtype) && kFloats.has(a.other.dtype);
  return a.self.dtype == a.out.dtype && a.other.dtype == a.out.dtype;
}

bool has_the_joint_shape(const A& a) {
  std::vector<std::int64_t> joint;
  return broadcast(a.self.dims(), a.other.dims(), joint) && std::ranges::equal(joint, a.out.dims());
}

constexpr Rule kRules[] = {
    rule<A>(
        Stage::attributes, kEverywhere, "out",
        "have the integer type of self and other, or all three a floating-point type",
        [](const A& a) { return types_fit(a); }, "cast one of them"),
    rule<A>(Stage::shapes, kEverywhere, "out", "have the shape that self and other are broadcast to",
            [](const A& a) { return has_the_joint_shape(a); }),
};

// Modulo 2^32 or 2^64.
template <class T>
void multiply_integers(StridedRows& rows) {
  rows.for_each([](const StridedRows::Piece& piece) {
    using Unsigned = std::make_unsigned_t<T>;
    const auto* a = reinterpret_cast<const T*>(piece.begin[0]);
    const auto* b = reinterpret_cast<const T*>(piece.begin[1]);
    auto* to = reinterpret_cast<T*>(piece.begin[2]);
    for (std::int64_t i = 0; i < piece.n; ++i)
      to[i * piece.step[2]] = static_cast<T>(static_cast<Unsigned>(a[i * piece.step[0]]) *
                                             static_cast<Unsigned>(b[i * piece.step[1]]));
  });
}

}  // namespace

const Contract Mul::kContract{{
    .name = "Mul",
    .family = "compute",
    .summary = "Multiplies two tensors element by element, with broadcasting.",
    .source = "aclnnMul",
    .params = kParams,
    .rules = kRules,
}};

Result<Mul::Plan> Mul::plan(const char* /*function*/, const Args& args) {
  Plan plan;
  plan.tiny = args.out.numel() <= kTinyElements;
  return plan;
}

Status Mul::run(const executor::Run& /*run*/, const Args& args, const Plan& /*plan*/) {
  StridedRows rows(args.out.dims());
  rows.add(args.self);
  rows.add(args.other);
  rows.add(args.out);
  if (args.out.dtype == ACL_INT32)
    multiply_integers<std::int32_t>(rows);
  else if (args.out.dtype == ACL_INT64)
    multiply_integers<std::int64_t>(rows);
  else
    run_elements(kernels::ElementOp::multiply, rows, args.self.dtype, args.other.dtype, args.out.dtype);
  return {};
}

}  // namespace moeyard::ops
