// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "base/parallel.h"
#include "kernels/variant.h"

namespace moeyard::kernels {

// Computes in fp32 and rounds once, to nearest even:
//
//   copy      to[i] = a[i]
//   sigmoid   to[i] = 1 / (1 + exp(-a[i]))
//   multiply  to[i] = a[i] * b[i]
//   swiglu    to[i] = a[i] / (1 + exp(-a[i])) * b[i]
//
// Operand element i lies at data + i * step elements; step 0 repeats one value. Types: FP32, FP16, BF16, each operand its
// own. `to` may be a or b element for element, but not overlap them otherwise. b is read by the operations that have it.
// Threads: calls on disjoint ranges may overlap in time. Errors: none.
enum class ElementOp : std::uint8_t { copy, sigmoid, multiply, swiglu };

struct Elements {
  struct Operand {
    std::byte* data = nullptr;
    aclDataType dtype = ACL_FLOAT;
    std::int64_t step = 1;
  };
  ElementOp op;
  Operand a, b, to;
};

using ElementsFn = void (*)(const Elements&, Range elements);

// The variants that this machine can run, fastest first.
std::span<const Variant<ElementsFn>> elements_variants();

}  // namespace moeyard::kernels
