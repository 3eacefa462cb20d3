// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "hccl/types.h"

#include "base/errors.h"

namespace moeyard::hccl {
namespace {

constexpr Products kNone{0};
constexpr Products kNewer = kHost | k950;  // what A2 and A3 lack
constexpr Products kNotA2{static_cast<std::uint8_t>(kEverywhere.bits & ~kA2.bits)};

// clang-format off
constexpr TypeInfo kTypes[] = {
    // type                   name      bytes  moves        reduces      reduces_v    multiplies
    {HCCL_DATA_TYPE_INT8,    "INT8",    1,     kEverywhere, kEverywhere, kEverywhere, true},
    {HCCL_DATA_TYPE_INT16,   "INT16",   2,     kEverywhere, kEverywhere, kEverywhere, false},
    {HCCL_DATA_TYPE_INT32,   "INT32",   4,     kEverywhere, kEverywhere, kEverywhere, true},
    {HCCL_DATA_TYPE_FP16,    "FP16",    2,     kEverywhere, kEverywhere, kEverywhere, true},
    {HCCL_DATA_TYPE_FP32,    "FP32",    4,     kEverywhere, kEverywhere, kEverywhere, true},
    {HCCL_DATA_TYPE_INT64,   "INT64",   8,     kEverywhere, kEverywhere, kNotA2,      true},
    {HCCL_DATA_TYPE_UINT64,  "UINT64",  8,     kEverywhere, kNewer,      kNewer,      true},
    {HCCL_DATA_TYPE_UINT8,   "UINT8",   1,     kEverywhere, kNone,       kNone,       false},
    {HCCL_DATA_TYPE_UINT16,  "UINT16",  2,     kEverywhere, kNone,       kNone,       false},
    {HCCL_DATA_TYPE_UINT32,  "UINT32",  4,     kEverywhere, kNone,       kNone,       false},
    {HCCL_DATA_TYPE_FP64,    "FP64",    8,     kEverywhere, kNewer,      kNewer,      true},
    {HCCL_DATA_TYPE_BFP16,   "BFP16",   2,     kEverywhere, kEverywhere, kEverywhere, false},
    {HCCL_DATA_TYPE_INT128,  "INT128",  16,    kNone,       kNone,       kNone,       false},
    {HCCL_DATA_TYPE_HIF8,    "HIF8",    1,     kNewer,      kNone,       kNone,       false},
    {HCCL_DATA_TYPE_FP8E4M3, "FP8E4M3", 1,     kNewer,      kNone,       kNone,       false},
    {HCCL_DATA_TYPE_FP8E5M2, "FP8E5M2", 1,     kNewer,      kNone,       kNone,       false},
    {HCCL_DATA_TYPE_FP8E8M0, "FP8E8M0", 1,     kNewer,      kNone,       kNone,       false},
};
// clang-format on

constexpr std::string_view kOps[] = {"SUM", "PROD", "MAX", "MIN"};  // by HcclReduceOp

Status unsupported(std::string_view function, const TypeInfo& type, std::string_view what) {
  return fail(HCCL_E_NOT_SUPPORT, TextCode::hccl_parameter,
              "{}: dataType {}{} is not supported on {}; use another type", function, type.name, what,
              moeyard::name_of(product()));
}

}  // namespace

Result<const TypeInfo*> find_type(std::string_view function, HcclDataType type) {
  for (const TypeInfo& row : kTypes)
    if (row.type == type) return &row;
  return fail(HCCL_E_PARA, TextCode::hccl_parameter,
              "{}: dataType {} is no HcclDataType; see hccl/hccl_types.h", function, static_cast<int>(type));
}

std::string_view name_of(HcclReduceOp op) { return kOps[op]; }

Result<const TypeInfo*> check_move(std::string_view function, HcclDataType type) {
  const TypeInfo* row = MOEYARD_TRY(find_type(function, type));
  if (!row->moves.has(product())) return unsupported(function, *row, "");
  return row;
}

Result<const TypeInfo*> check_reduction(std::string_view function, HcclDataType type, HcclReduceOp op,
                                        Reduction reduction) {
  const TypeInfo* row = MOEYARD_TRY(find_type(function, type));
  if (static_cast<unsigned>(op) >= std::size(kOps))
    return fail(HCCL_E_PARA, TextCode::hccl_parameter,
                "{}: op is {}, it must be SUM (0), PROD (1), MAX (2) or MIN (3)", function,
                static_cast<int>(op));
  const bool scatter_v = reduction == Reduction::reduce_scatter_v;
  if (!(scatter_v ? row->reduces_v : row->reduces).has(product()))
    return unsupported(function, *row, " of a reduction");
  const bool may_multiply = row->multiplies && (!scatter_v || kNewer.has(product()));
  if (op == HCCL_REDUCE_PROD && !may_multiply) return unsupported(function, *row, " with op PROD");
  return row;
}

}  // namespace moeyard::hccl
