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
//   copy       to[i] = a[i]                           add       to[i] = a[i] + factor * b[i]
//   scale      to[i] = factor * a[i]                  multiply  to[i] = a[i] * b[i]
//   relu       to[i] = max(a[i], 0)                   divide    to[i] = a[i] / b[i]
//   sigmoid    to[i] = 1 / (1 + exp(-a[i]))           swiglu    to[i] = a[i] / (1 + exp(-a[i])) * b[i]
//   silu       to[i] = a[i] / (1 + exp(-factor * a[i]))
//   gelu_tanh  to[i] = 0.5 a[i] (1 + tanh(sqrt(2 / pi) (a[i] + 0.044715 a[i]^3)))
//   gelu_erf   to[i] = 0.5 a[i] (1 + erf(a[i] / sqrt(2)))
//
// Operand element i lies at data + i * step elements; step 0 repeats one value. Types: FP32, FP16, BF16, each operand its
// own. `to` may be a or b element for element, but not overlap them otherwise. b is read by the operations that have it.
// Threads: calls on disjoint ranges may overlap in time. Errors: none.
enum class ElementOp : std::uint8_t {
  copy,
  scale,
  relu,
  sigmoid,
  silu,
  gelu_tanh,
  gelu_erf,
  add,
  multiply,
  divide,
  swiglu,
};
constexpr bool has_two_operands(ElementOp op) { return op >= ElementOp::add; }

struct Elements {
  struct Operand {
    std::byte* data = nullptr;
    aclDataType dtype = ACL_FLOAT;
    std::int64_t step = 1;
  };
  ElementOp op;
  Operand a, b, to;
  float factor = 1;
};

using ElementsFn = void (*)(const Elements&, Range elements);

// The variants that this machine can run, fastest first.
std::span<const Variant<ElementsFn>> elements_variants();

}  // namespace moeyard::kernels
