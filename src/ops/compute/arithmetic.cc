// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/compute/arithmetic.h"

#include <algorithm>
#include <type_traits>

#include "ops/compute/strided.h"
#include "ops/typed.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using A = ArithmeticArgs;

constexpr Dtypes kTypes = kFloats | kINT32 | kINT64;
constexpr Param kSumParams[] = {
    in<&A::self>("self", kTypes, "", "one operand"),
    in<&A::other>("other", kTypes, "", "the other; both are broadcast to one shape"),
    attribute<&A::alpha>("alpha", "what other is multiplied by"),
    out<&A::out>("out", kTypes, "", "the result, in that shape").or_in_place(),
};
constexpr Param kProductParams[] = {
    in<&A::self>("self", kTypes, "", "one factor"),
    in<&A::other>("other", kTypes, "", "the other; both are broadcast to one shape"),
    out<&A::out>("out", kTypes, "", "their product, in that shape").or_in_place(),
};
constexpr Param kQuotientParams[] = {
    in<&A::self>("self", kFloats, "", "the dividend"),
    in<&A::other>("other", kFloats, "", "the divisor; both are broadcast to one shape"),
    out<&A::out>("out", kFloats, "", "the quotient, in that shape").or_in_place(),
};

bool types_fit(const A& a) {
  if (kFloats.has(a.out.dtype)) return kFloats.has(a.self.dtype) && kFloats.has(a.other.dtype);
  return a.self.dtype == a.out.dtype && a.other.dtype == a.out.dtype;
}

bool has_the_joint_shape(const A& a) {
  std::vector<std::int64_t> joint;
  return broadcast(a.self.dims(), a.other.dims(), joint) && std::ranges::equal(joint, a.out.dims());
}

constexpr Rule kTypesFit = rule<A>(
    Stage::attributes, kEverywhere, "out",
    "have the integer type of self and other, or all three a floating-point type",
    [](const A& a) { return types_fit(a); }, "cast one of them");
constexpr Rule kJointShape =
    rule<A>(Stage::shapes, kEverywhere, "out", "have the shape that self and other are broadcast to",
            [](const A& a) { return has_the_joint_shape(a); });
template <class Args, auto kScalar>
constexpr Rule scalar_fits(std::string_view subject) {
  return rule<Args>(Stage::attributes, kEverywhere, subject,
                    "be a number, and an integer or BOOL where out has an integer type", [](const Args& a) {
                      const ScalarView& scalar = a.*kScalar;
                      return scalar.is_integer || (scalar.is_number && kFloats.has(a.out.dtype));
                    });
}

constexpr Rule kSumRules[] = {
    kTypesFit,
    scalar_fits<A, &A::alpha>("alpha"),
    kJointShape,
};
constexpr Rule kProductRules[] = {kTypesFit, kJointShape};

// Modulo 2^32 or 2^64: self * factor, or self * other, or self + other * factor.
template <class T>
void integers(Arithmetic kind, StridedRows& rows, std::int64_t factor) {
  using Unsigned = std::make_unsigned_t<T>;
  const auto by = static_cast<Unsigned>(factor);
  rows.for_each([&](const StridedRows::Piece& piece) {
    const auto* a = reinterpret_cast<const Unsigned*>(piece.begin[0]);
    const auto* b = reinterpret_cast<const Unsigned*>(piece.begin[1]);
    auto* to = reinterpret_cast<Unsigned*>(piece.begin[2]);
    for (std::int64_t i = 0; i < piece.n; ++i) {
      const Unsigned x = a[i * piece.step[0]], y = b[i * piece.step[1]];
      to[i * piece.step[2]] = kind == Arithmetic::multiply ? x * y : x + y * by;
    }
  });
}

kernels::ElementOp kernel_of(Arithmetic kind) {
  if (kind == Arithmetic::multiply) return kernels::ElementOp::multiply;
  return kind == Arithmetic::divide ? kernels::ElementOp::divide : kernels::ElementOp::add;
}

template <class T>
void scale_integers(StridedRows& rows, std::int64_t factor) {
  using Unsigned = std::make_unsigned_t<T>;
  const auto by = static_cast<Unsigned>(factor);
  rows.for_each([&](const StridedRows::Piece& piece) {
    const auto* from = reinterpret_cast<const Unsigned*>(piece.begin[0]);
    auto* to = reinterpret_cast<Unsigned*>(piece.begin[1]);
    for (std::int64_t i = 0; i < piece.n; ++i) to[i * piece.step[1]] = from[i * piece.step[0]] * by;
  });
}

using M = MulsArgs;
constexpr Param kMulsParams[] = {
    in<&M::self>("self", kTypes, "", "one factor"),
    attribute<&M::other>("other", "the other, one number"),
    out<&M::out>("out", kTypes, "", "their product, in the shape of self").or_in_place(),
};
constexpr Rule kMulsRules[] = {
    rule<M>(
        Stage::attributes, kEverywhere, "out", "have the integer type of self, or both a floating-point type",
        [](const M& a) {
          return a.self.dtype == a.out.dtype || (kFloats.has(a.self.dtype) && kFloats.has(a.out.dtype));
        },
        "cast one of them"),
    scalar_fits<M, &M::other>("other"),
    rule<M>(Stage::shapes, kEverywhere, "out", "have the shape of self",
            [](const M& a) { return std::ranges::equal(a.out.dims(), a.self.dims()); }),
};

}  // namespace

const Contract Add::kContract{{
    .name = "Add",
    .family = "compute",
    .summary = "Adds a multiple of one tensor to another element by element, with broadcasting.",
    .source = "aclnnAdd",
    .params = kSumParams,
    .rules = kSumRules,
}};

const Contract Sub::kContract{{
    .name = "Sub",
    .family = "compute",
    .summary = "Subtracts a multiple of one tensor from another element by element, with broadcasting.",
    .source = "aclnnSub",
    .params = kSumParams,
    .rules = kSumRules,
}};

const Contract Mul::kContract{{
    .name = "Mul",
    .family = "compute",
    .summary = "Multiplies two tensors element by element, with broadcasting.",
    .source = "aclnnMul",
    .params = kProductParams,
    .rules = kProductRules,
}};

const Contract Div::kContract{{
    .name = "Div",
    .family = "compute",
    .summary = "Divides one tensor by another element by element, with broadcasting.",
    .source = "aclnnDiv",
    .params = kQuotientParams,
    .rules = kProductRules,
}};

const Contract Muls::kContract{{
    .name = "Muls",
    .family = "compute",
    .summary = "Multiplies a tensor by a number.",
    .source = "aclnnMuls",
    .params = kMulsParams,
    .rules = kMulsRules,
}};

Result<ArithmeticOperator::Plan> ArithmeticOperator::plan(const char* /*function*/, const Args& args) {
  Plan plan;
  plan.tiny = args.out.numel() <= kTinyElements;
  return plan;
}

Status ArithmeticOperator::run(const executor::Run& /*run*/, const Args& args, const Plan& /*plan*/) {
  StridedRows rows(args.out.dims());
  rows.add(args.self);
  rows.add(args.other);
  rows.add(args.out);
  const bool negative = args.kind == Arithmetic::subtract;
  if (kFloats.has(args.out.dtype)) {
    const auto alpha = static_cast<float>(args.alpha.number);
    run_elements(kernel_of(args.kind), rows, args.self.dtype, args.other.dtype, args.out.dtype,
                 negative ? -alpha : alpha);
    return {};
  }
  // 0 - alpha without overflow; the low bits of the product are the same.
  const auto alpha = static_cast<std::uint64_t>(args.alpha.integer);
  const auto factor = static_cast<std::int64_t>(negative ? 0 - alpha : alpha);
  return with_type<std::int32_t, std::int64_t>(args.out.dtype, [&]<class T>() -> Status {
    integers<T>(args.kind, rows, factor);
    return {};
  });
}

Result<Muls::Plan> Muls::plan(const char* /*function*/, const Args& args) {
  Plan plan;
  plan.tiny = args.out.numel() <= kTinyElements;
  return plan;
}

Status Muls::run(const executor::Run& /*run*/, const Args& args, const Plan& /*plan*/) {
  StridedRows rows(args.out.dims());
  rows.add(args.self);
  rows.add(args.out);
  if (kFloats.has(args.out.dtype)) {
    run_elements(kernels::ElementOp::scale, rows, args.self.dtype, args.out.dtype,
                 static_cast<float>(args.other.number));
    return {};
  }
  return with_type<std::int32_t, std::int64_t>(args.out.dtype, [&]<class T>() -> Status {
    scale_integers<T>(rows, args.other.integer);
    return {};
  });
}

}  // namespace moeyard::ops
