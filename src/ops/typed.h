// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "base/errors.h"
#include "base/numbers.h"

namespace moeyard::ops {

template <class T>
inline constexpr aclDataType kDtypeOf = ACL_DT_UNDEFINED;
template <>
inline constexpr aclDataType kDtypeOf<float> = ACL_FLOAT;
template <>
inline constexpr aclDataType kDtypeOf<Fp16> = ACL_FLOAT16;
template <>
inline constexpr aclDataType kDtypeOf<Bf16> = ACL_BF16;
template <>
inline constexpr aclDataType kDtypeOf<std::int8_t> = ACL_INT8;
template <>
inline constexpr aclDataType kDtypeOf<std::uint8_t> = ACL_UINT8;
template <>
inline constexpr aclDataType kDtypeOf<std::int32_t> = ACL_INT32;
template <>
inline constexpr aclDataType kDtypeOf<std::int64_t> = ACL_INT64;

// Calls body.template operator()<T>() for the T among Types that the dtype stands for:
//   with_type<float, Fp16, Bf16>(x.dtype, [&]<class T>() -> Status { ... });
// The contract has seen to it that there is one; another dtype is a fault of ours.
template <class... Types, class Body>
Status with_type(aclDataType dtype, Body&& body) {
  Status status;
  const bool found =
      ((dtype == kDtypeOf<Types> && (status = body.template operator()<Types>(), true)) || ...);
  if (!found)
    return fail(stream_error::kInternal, TextCode::internal, "no code for dtype {}; please report it",
                name_of(dtype));
  return status;
}

// One FP32, FP16 or BF16 value, widened, and rounded to nearest even.
inline float load_number(const std::byte* at, aclDataType dtype) {
  if (dtype == ACL_FLOAT) return *reinterpret_cast<const float*>(at);
  if (dtype == ACL_FLOAT16) return to_float(*reinterpret_cast<const Fp16*>(at));
  return to_float(*reinterpret_cast<const Bf16*>(at));
}
inline void store_number(float value, std::byte* at, aclDataType dtype) {
  if (dtype == ACL_FLOAT)
    *reinterpret_cast<float*>(at) = value;
  else if (dtype == ACL_FLOAT16)
    *reinterpret_cast<Fp16*>(at) = to_fp16(value);
  else
    *reinterpret_cast<Bf16*>(at) = to_bf16(value);
}

}  // namespace moeyard::ops
