// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
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

}  // namespace moeyard::ops
