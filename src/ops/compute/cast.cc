// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/compute/cast.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/numbers.h"
#include "ops/compute/strided.h"
#include "ops/typed.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using A = CastArgs;

constexpr Dtypes kTypes = kFloats | kINT8 | kUINT8 | kINT32 | kINT64 | kBOOL;
constexpr Param kParams[] = {
    in<&A::self>("self", kTypes, "", "what is converted"),
    attribute<&A::dtype>("dtype", "the data type of out, as aclDataType"),
    out<&A::out>("out", kTypes, "", "the same values in another type, in the shape of self").or_in_place(),
};

constexpr Rule kRules[] = {
    rule<A>(Stage::attributes, kEverywhere, "dtype", "be the data type of out",
            [](const A& a) { return a.dtype == a.out.dtype; }),
    rule<A>(Stage::shapes, kEverywhere, "out", "have the shape of self",
            [](const A& a) { return std::ranges::equal(a.out.dims(), a.self.dims()); }),
};

// BOOL is a byte of 0 or 1; a type of its own keeps it apart from UINT8.
struct Bool {
  std::uint8_t value;
};

template <class From>
auto number_of(From value) {
  if constexpr (std::is_same_v<From, Bool>)
    return static_cast<std::int32_t>(value.value != 0);
  else if constexpr (std::is_integral_v<From>)
    return value;
  else
    return to_float(value);
}

// Integers keep their low bits, fractions are cut off; what does not fit from a float becomes the nearest end, NaN 0.
template <class To, class Number>
To converted(Number value) {
  if constexpr (std::is_same_v<To, Bool>) {
    return {static_cast<std::uint8_t>(value != 0 ? 1 : 0)};
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<Number>) {
    if (std::isnan(value)) return 0;
    // The upper end of the wide types is not a float: compare with the power of 2 above it.
    constexpr auto kLow = static_cast<float>(std::numeric_limits<To>::min());
    constexpr float kAbove = 2.0f * static_cast<float>(std::numeric_limits<To>::max() / 2 + 1);
    if (value < kLow) return std::numeric_limits<To>::min();
    if (value >= kAbove) return std::numeric_limits<To>::max();
    return static_cast<To>(value);
  } else if constexpr (std::is_integral_v<To>) {
    return static_cast<To>(value);
  } else if constexpr (std::is_same_v<To, Bf16>) {
    return to_bf16(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, Fp16>) {
    return to_fp16(static_cast<float>(value));
  } else {
    return static_cast<float>(value);
  }
}

template <class From, class To>
void cast_rows(StridedRows& rows) {
  rows.for_each([](const StridedRows::Piece& piece) {
    const auto* from = reinterpret_cast<const From*>(piece.begin[0]);
    auto* to = reinterpret_cast<To*>(piece.begin[1]);
    for (std::int64_t i = 0; i < piece.n; ++i)
      to[i * piece.step[1]] = converted<To>(number_of(from[i * piece.step[0]]));
  });
}

template <class Body>
Status with_number_type(aclDataType dtype, Body&& body) {
  if (dtype == ACL_BOOL) return body.template operator()<Bool>();
  return with_type<float, Fp16, Bf16, std::int8_t, std::uint8_t, std::int32_t, std::int64_t>(dtype, body);
}

}  // namespace

const Contract Cast::kContract{{
    .name = "Cast",
    .family = "compute",
    .summary = "Converts a tensor to another data type.",
    .source = "aclnnCast",
    .params = kParams,
    .rules = kRules,
}};

Result<Cast::Plan> Cast::plan(const char* /*function*/, const Args& args) {
  Plan plan;
  plan.tiny = args.out.numel() <= kTinyElements;
  return plan;
}

Status Cast::run(const executor::Run& /*run*/, const Args& args, const Plan& /*plan*/) {
  StridedRows rows(args.out.dims());
  rows.add(args.self);
  rows.add(args.out);
  if (kFloats.has(args.self.dtype) && kFloats.has(args.out.dtype)) {
    run_elements(kernels::ElementOp::copy, rows, args.self.dtype, args.out.dtype);
    return {};
  }
  return with_number_type(args.self.dtype, [&]<class From>() -> Status {
    return with_number_type(args.out.dtype, [&]<class To>() -> Status {
      cast_rows<From, To>(rows);
      return {};
    });
  });
}

}  // namespace moeyard::ops
