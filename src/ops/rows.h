// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/tensor_view.h"

namespace moeyard::ops {

// Rows of a tensor of any rank: its last axis, the leading axes flattened in row-major order.
inline std::int64_t rows_of(const TensorView& view) {
  std::int64_t rows = 1;
  for (int axis = 0; axis + 1 < view.rank; ++axis) rows *= view.shape[axis];
  return rows;
}

// Elements of a row, 1 of a scalar.
inline std::int64_t columns_of(const TensorView& view) {
  return view.rank > 0 ? view.shape[view.rank - 1] : 1;
}

// Elements from the tensor's data to a row.
inline std::int64_t row_offset(const TensorView& view, std::int64_t row) {
  std::int64_t at = view.offset;
  for (int axis = view.rank - 2; axis > 0; --axis) {
    at += row % view.shape[axis] * view.strides[axis];
    row /= view.shape[axis];
  }
  if (view.rank >= 2) at += row * view.strides[0];
  return at;
}

inline std::byte* row_begin(const TensorView& view, std::int64_t row) {
  return view.data + bytes_of(view.dtype, row_offset(view, row));
}

// Elements from one to the next along the last axis.
inline std::int64_t step_of(const TensorView& view) {
  return view.rank > 0 ? view.strides[view.rank - 1] : 1;
}

// Copies the first `rows` rows of a tensor to dense ones that lie one after the other, on several threads.
void load_rows(const TensorView& view, std::int64_t rows, std::byte* dense);
// And back.
void store_rows(const TensorView& view, std::int64_t rows, std::byte* dense);

}  // namespace moeyard::ops
