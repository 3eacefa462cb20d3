// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <span>

#include "base/parallel.h"
#include "hccl/hccl_types.h"

namespace moeyard::hccl {

// Reduces the elements of a range:
//
//   outputs[o][i] = inputs[0][i] op inputs[1][i] op ...     for every o and each i of the range, in ascending
//   k
//
// FP16 and BFP16 are added, multiplied and compared in fp32 and rounded once at the end; integers wrap
// around; the maximum or minimum of a NaN and anything is a NaN. An output may be an input: element i is read
// before it is written. Threads: calls on disjoint ranges may overlap in time.
using ReduceFn = void (*)(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
                          Range elements);

// For the types and operations that check_reduction lets pass.
ReduceFn find_reduction(HcclDataType type, HcclReduceOp op);

}  // namespace moeyard::hccl
