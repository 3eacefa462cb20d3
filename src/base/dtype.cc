// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "base/dtype.h"

#include <fmt/format.h>

namespace moeyard {
namespace {

constexpr DtypeInfo kDtypes[] = {
    {ACL_FLOAT, "FP32", 32},
    {ACL_FLOAT16, "FP16", 16},
    {ACL_INT8, "INT8", 8},
    {ACL_INT32, "INT32", 32},
    {ACL_UINT8, "UINT8", 8},
    {ACL_INT16, "INT16", 16},
    {ACL_UINT16, "UINT16", 16},
    {ACL_UINT32, "UINT32", 32},
    {ACL_INT64, "INT64", 64},
    {ACL_UINT64, "UINT64", 64},
    {ACL_DOUBLE, "FP64", 64},
    {ACL_BOOL, "BOOL", 8},
    {ACL_STRING, "STRING", 0},
    {ACL_COMPLEX64, "COMPLEX64", 64},
    {ACL_COMPLEX128, "COMPLEX128", 128},
    {ACL_BF16, "BF16", 16},
    {ACL_INT4, "INT4", 4},
    {ACL_UINT1, "UINT1", 1},
    {ACL_COMPLEX32, "COMPLEX32", 32},
    {ACL_HIFLOAT8, "HIFLOAT8", 8},
    {ACL_FLOAT8_E5M2, "FLOAT8_E5M2", 8},
    {ACL_FLOAT8_E4M3FN, "FLOAT8_E4M3FN", 8},
    {ACL_FLOAT8_E8M0, "FLOAT8_E8M0", 8},
    {ACL_FLOAT6_E3M2, "FLOAT6_E3M2", 6},
    {ACL_FLOAT6_E2M3, "FLOAT6_E2M3", 6},
    {ACL_FLOAT4_E2M1, "FLOAT4_E2M1", 4},
    {ACL_FLOAT4_E1M2, "FLOAT4_E1M2", 4},
};

}  // namespace

const DtypeInfo* find_dtype(aclDataType dtype) {
  // A table by value, filled once: this is asked for every tensor of every call.
  struct ByValue {
    const DtypeInfo* info[64] = {};
    ByValue() {
      for (const DtypeInfo& entry : kDtypes) info[entry.dtype] = &entry;
    }
  };
  static const ByValue table;
  return dtype >= 0 && dtype < 64 ? table.info[dtype] : nullptr;
}

std::string name_of(aclDataType dtype) {
  const DtypeInfo* info = find_dtype(dtype);
  return info != nullptr ? std::string(info->name) : fmt::format("dtype {}", static_cast<int>(dtype));
}

std::int64_t bytes_of(aclDataType dtype, std::int64_t n) {
  const DtypeInfo* info = find_dtype(dtype);
  return info != nullptr ? (n * info->bits + 7) >> 3 : 0;
}

std::string names_of(Dtypes dtypes) {
  std::string names;
  int left = __builtin_popcountll(dtypes.bits);
  for (const DtypeInfo& entry : kDtypes) {
    if (!dtypes.has(entry.dtype)) continue;
    if (!names.empty()) names += left == 1 ? " or " : ", ";
    names += entry.name;
    --left;
  }
  return names;
}

}  // namespace moeyard
