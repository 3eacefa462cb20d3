// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/row_matrix.h"

#include "ops/rows.h"

namespace moeyard::ops {
namespace {

// Axes [first, last) as one: its size, and the stride from one index to the next if there is such a one.
struct Collapsed {
  std::int64_t size = 1, stride = 0;
  bool possible = true;
};
Collapsed collapse(const TensorView& view, int first, int last) {
  Collapsed one;
  for (int axis = last - 1; axis >= first; --axis) {
    if (view.shape[axis] != 1) {
      if (one.size == 1)
        one.stride = view.strides[axis];
      else if (view.strides[axis] != one.stride * one.size)
        one.possible = false;
    }
    one.size *= view.shape[axis];
  }
  return one;
}

bool is_packed(const TensorView& view) { return find_dtype(view.dtype)->bits < 8; }

}  // namespace

RowMatrix::RowMatrix(const TensorView& view, int row_axes, Scratch& scratch)
    : present_(view.present()), row_axes_(row_axes) {
  if (!present_) return;
  const Collapsed rows = collapse(view, 0, row_axes), columns = collapse(view, row_axes, view.rank);
  rows_ = rows.size;
  columns_ = columns.size;
  stride_ = rows.stride;
  in_place_ = rows.possible && columns.possible && (columns.size <= 1 || columns.stride == 1) &&
              !(is_packed(view) && (stride_ % 2 != 0 || view.offset % 2 != 0));
  if (in_place_) return;
  stride_ = columns_;
  copy_ = scratch.add<std::byte>(bytes_of(view.dtype, rows_ * columns_));
}

Matrix RowMatrix::at(const TensorView& view, std::byte* workspace) const {
  if (!present_) return {};
  std::byte* data = in_place_ ? view.begin() : copy_.in(workspace);
  return {data, bytes_of(view.dtype, stride_), rows_, columns_, bytes_of(view.dtype, columns_)};
}

Matrix RowMatrix::load(const TensorView& view, std::byte* workspace) const {
  if (!in_place_) load_rows(view, rows_of(view), copy_.in(workspace));
  return at(view, workspace);
}

void RowMatrix::store(const TensorView& view, std::byte* workspace) const {
  if (!in_place_) store_rows(view, rows_of(view), copy_.in(workspace));
}

}  // namespace moeyard::ops
