// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <utility>

#include "base/tensor_view.h"

namespace moeyard::ops::atb {

// Matrix `batch` of a tensor of 2 or 3 dimensions, the one at `batch_axis` numbering them; `transposed`: its other way round.
inline TensorView matrix_of(const TensorView& view, std::int64_t batch, int batch_axis, bool transposed) {
  TensorView matrix = view;
  if (view.rank == 3) {
    matrix.offset += batch * view.strides[batch_axis];
    const int row = batch_axis == 0 ? 1 : 0;
    matrix.shape[0] = view.shape[row];
    matrix.strides[0] = view.strides[row];
    matrix.shape[1] = view.shape[2];
    matrix.strides[1] = view.strides[2];
    matrix.rank = 2;
  }
  if (transposed) {
    std::swap(matrix.shape[0], matrix.shape[1]);
    std::swap(matrix.strides[0], matrix.strides[1]);
  }
  return matrix;
}

}  // namespace moeyard::ops::atb
