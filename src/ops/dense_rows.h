// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/tensor_view.h"
#include "ops/scratch.h"

namespace moeyard::ops {

// Rows whose elements lie one after the other: row i of (rows, columns), or row (i / block, i % block) of
// three dimensions.
struct Rows {
  std::byte* data = nullptr;
  std::int64_t stride = 0;
  std::int64_t block = INT64_MAX, block_stride = 0;
  std::byte* operator[](std::int64_t i) const {
    return i < block ? data + i * stride : data + i / block * block_stride + i % block * stride;
  }
};

// Rows of a view whose last dimension may not be dense. Kernels work on dense rows: those of any other view
// are gathered into the workspace first, or scattered from there afterwards.
class DenseRows {
 public:
  DenseRows() = default;
  // A view of 2 or 3 dimensions, of whole-byte elements or of dense rows of 4-bit ones that begin on a byte, or an absent
  // one. `rows` at most are ever used.
  DenseRows(const TensorView& view, std::int64_t rows, Scratch& scratch);

  Rows rows(const TensorView& view, std::byte* workspace) const;
  void gather(const TensorView& view, std::int64_t count,
              std::byte* workspace) const;  // nothing to do in place
  void scatter(const TensorView& view, std::int64_t count,
               std::byte* workspace) const;  // nothing to do in place

 private:
  bool in_place_ = true;
  Part<std::byte> copy_;
};

}  // namespace moeyard::ops
