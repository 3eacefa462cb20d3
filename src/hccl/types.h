// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>

#include "base/product.h"
#include "base/status.h"
#include "hccl/hccl_types.h"

namespace moeyard::hccl {

// What is known of a data type: where collectives move it and reduce it.
struct TypeInfo {
  HcclDataType type;
  std::string_view name;
  std::int64_t bytes;
  Products moves;
  Products reduces;
  Products reduces_v;  // HcclReduceScatterV
  bool multiplies;     // HCCL_REDUCE_PROD
};

// The row of a type. HCCL_E_PARA: no type has this number.
Result<const TypeInfo*> find_type(std::string_view function, HcclDataType type);
std::string_view name_of(HcclReduceOp op);

// HCCL_E_PARA: no such type or operation; HCCL_E_NOT_SUPPORT: not on this product.
Result<const TypeInfo*> check_move(std::string_view function, HcclDataType type);
enum class Reduction { ordinary, reduce_scatter_v };
Result<const TypeInfo*> check_reduction(std::string_view function, HcclDataType type, HcclReduceOp op,
                                        Reduction reduction = Reduction::ordinary);

}  // namespace moeyard::hccl
