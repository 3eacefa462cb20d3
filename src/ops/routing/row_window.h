// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/parallel.h"
#include "base/tensor_view.h"

namespace moeyard::ops {

// The rows that one rank owns of all rows, as a list {start, end}. Null, empty and {0, 0}, the default when CANN's
// operators are made in a graph, say that there is no window.
inline bool has_window(const IntArrayView& range) {
  return range.size() > 0 && !(range.size() == 2 && range[0] == 0 && range[1] == 0);
}

// The window, or all of `rows`, for a list that is none or has two entries.
inline Range window_of(const IntArrayView& range, std::int64_t rows) {
  return has_window(range) && range.size() == 2 ? Range{range[0], range[1]} : Range{0, rows};
}

inline bool is_window(const IntArrayView& range, std::int64_t all_rows) {
  return !has_window(range) ||
         (range.size() == 2 && 0 <= range[0] && range[0] <= range[1] && range[1] <= all_rows);
}

}  // namespace moeyard::ops
