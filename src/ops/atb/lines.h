// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/tensor_view.h"

namespace moeyard::ops::atb {

inline std::int64_t product(const TensorView& view, std::int64_t first, std::int64_t last) {
  std::int64_t n = 1;
  for (std::int64_t axis = first; axis < last; ++axis) n *= view.dim(static_cast<int>(axis));
  return n;
}

// A dense tensor as [outer, n, inner]: lines of n elements that belong together, one of them per outer and inner.
struct Lines {
  std::int64_t outer, n, inner;
  Lines(const TensorView& view, std::int64_t first, std::int64_t last)
      : outer(product(view, 0, first)),
        n(product(view, first, last)),
        inner(product(view, last, view.rank)) {}
  std::int64_t count() const { return outer * inner; }
  // Element number of a line's first element; the others follow in steps of `inner`.
  std::int64_t begin(std::int64_t line) const { return line / inner * n * inner + line % inner; }
  // Lines for a thread to take at a time.
  std::int64_t grain() const { return std::max<std::int64_t>(1, 8192 / n); }
};

}  // namespace moeyard::ops::atb
