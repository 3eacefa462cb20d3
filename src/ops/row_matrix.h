// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/tensor_view.h"
#include "ops/scratch.h"

namespace moeyard::ops {

// Rows in memory as kernels take them: each dense, at one distance from the next.
struct Matrix {
  std::byte* data = nullptr;  // null: an absent tensor
  std::int64_t stride = 0;    // bytes
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_bytes = 0;

  std::byte* row(std::int64_t i) const { return data + i * stride; }
  template <class T>
  T* row_as(std::int64_t i) const {
    return reinterpret_cast<T*>(row(i));
  }
};

// A tensor as a matrix: its first axes number the rows, the others make up a row. A view that does not lie in memory like
// that is used through a copy in the workspace. Rows of 4-bit elements have an even number of them.
class RowMatrix {
 public:
  RowMatrix() = default;
  // `row_axes` 0: the whole tensor is one row. An absent view makes an absent matrix.
  RowMatrix(const TensorView& view, int row_axes, Scratch& scratch);

  Matrix at(const TensorView& view, std::byte* workspace) const;
  // With a copy: fills it from the tensor, before it is read or where a part of an output keeps what it holds.
  Matrix load(const TensorView& view, std::byte* workspace) const;
  // With a copy: writes it to the tensor.
  void store(const TensorView& view, std::byte* workspace) const;

 private:
  bool present_ = false, in_place_ = true;
  int row_axes_ = 0;
  std::int64_t rows_ = 1, columns_ = 1, stride_ = 0;  // elements
  Part<std::byte> copy_;
};

}  // namespace moeyard::ops
