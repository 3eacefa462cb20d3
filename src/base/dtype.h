// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "acl/acl_base.h"

namespace moeyard {

// What is known of an aclDataType: its name in messages and its bits in a tensor.
struct DtypeInfo {
  aclDataType dtype;
  std::string_view name;  // "BF16": ACL_BF16 without the prefix, with FP for FLOAT
  std::int64_t bits;      // 0: no storage (STRING, UNDEFINED)
};
const DtypeInfo* find_dtype(aclDataType dtype);  // null for a value that is not a type

std::string name_of(aclDataType dtype);  // also for unknown values: "dtype 99"

// Bytes that n neighbouring elements take; sub-byte types are packed and rounded up. n may be negative: an offset.
std::int64_t bytes_of(aclDataType dtype, std::int64_t n);

// A set of data types, as contracts name them: kBF16 | kFP16.
struct Dtypes {
  std::uint64_t bits = 0;
  constexpr bool has(aclDataType dtype) const {
    return dtype >= 0 && dtype < 64 && ((bits >> dtype) & 1) != 0;
  }
  constexpr Dtypes operator|(Dtypes other) const { return {bits | other.bits}; }
};
constexpr Dtypes only(aclDataType dtype) { return {std::uint64_t{1} << dtype}; }
std::string names_of(Dtypes dtypes);  // "FP16 or BF16"

inline constexpr Dtypes kFP32 = only(ACL_FLOAT), kFP16 = only(ACL_FLOAT16), kBF16 = only(ACL_BF16);
inline constexpr Dtypes kINT8 = only(ACL_INT8), kUINT8 = only(ACL_UINT8), kINT32 = only(ACL_INT32),
                        kINT64 = only(ACL_INT64), kUINT64 = only(ACL_UINT64), kBOOL = only(ACL_BOOL),
                        kINT4 = only(ACL_INT4);
inline constexpr Dtypes kHIF8 = only(ACL_HIFLOAT8), kE5M2 = only(ACL_FLOAT8_E5M2),
                        kE4M3 = only(ACL_FLOAT8_E4M3FN), kE8M0 = only(ACL_FLOAT8_E8M0),
                        kE2M1 = only(ACL_FLOAT4_E2M1), kE1M2 = only(ACL_FLOAT4_E1M2);
inline constexpr Dtypes kAnyDtype{~std::uint64_t{0}};  // rules speak of it
inline constexpr Dtypes kHalves = kFP16 | kBF16;
inline constexpr Dtypes kFloats = kFP32 | kFP16 | kBF16;

}  // namespace moeyard
