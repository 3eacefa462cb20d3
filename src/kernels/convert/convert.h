// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "base/parallel.h"
#include "kernels/variant.h"

namespace moeyard::kernels {

// Converts between floating-point types:
//
//   to[i] = round to nearest even of from[i]
//
//   from  [n] from_dtype    to  [n] to_dtype, may be `from` itself when both types have the same size
//
// Types: FP32, FP16, BF16. Infinities are kept, a NaN stays a (quiet) NaN; FP32 to FP32 copies bits.
// Threads: calls on disjoint ranges may overlap in time. Errors: none.
struct Convert {
  const std::byte* from;
  aclDataType from_dtype;
  std::byte* to;
  aclDataType to_dtype;
};

using ConvertFn = void (*)(const Convert&, Range elements);

// The variants that this machine can run, fastest first.
std::span<const Variant<ConvertFn>> convert_variants();

}  // namespace moeyard::kernels
