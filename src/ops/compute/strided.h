// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "base/tensor_view.h"
#include "kernels/elements/elements.h"

namespace moeyard::ops {

// Element-wise work over tensors of any strides: the axes of a common shape are joined where all operands allow it, and
// what remains is rows, which threads share.
inline constexpr std::size_t kMostOperands = 3;

class StridedRows {
 public:
  // A piece of a row: where it begins in each operand, and elements from one to the next there.
  struct Piece {
    std::array<std::byte*, kMostOperands> begin;
    std::array<std::int64_t, kMostOperands> step;
    std::int64_t n;
  };

  explicit StridedRows(std::span<const std::int64_t> shape) : axes_(shape.size()) {
    std::copy(shape.begin(), shape.end(), shape_.begin());
  }

  // An operand by its strides (elements, 0 repeats) along the axes of the shape.
  void add(std::byte* begin, aclDataType dtype, std::span<const std::int64_t> strides);
  // A tensor of that shape, or one that is broadcast to it: fewer axes or sizes of 1.
  void add(const TensorView& view);

  // Calls body(piece) for pieces that cover all elements, in parallel.
  template <class Body>
  void for_each(Body&& body) {
    join_axes();
    const std::int64_t row = shape_[axes_ - 1];
    if (row == 0 || rows() == 0) return;
    const std::int64_t pieces = (row + kPieceElements - 1) / kPieceElements;  // of a row
    const std::int64_t grain = std::max<std::int64_t>(1, kPieceElements / row);
    parallel_for(rows() * pieces, grain, [&](Range range) {
      for (std::int64_t i = range.begin; i < range.end; ++i) {
        const std::int64_t begin = i % pieces * kPieceElements;
        body(piece(i / pieces, begin, std::min(kPieceElements, row - begin)));
      }
    });
  }

 private:
  static constexpr std::int64_t kPieceElements = 16384;  // some 10 us of memory traffic
  struct Operand {
    std::byte* begin;
    std::int64_t element_bytes;
    std::array<std::int64_t, kMaxRank> strides;
  };

  void join_axes();
  std::int64_t rows() const;
  Piece piece(std::int64_t row, std::int64_t begin, std::int64_t n) const;

  std::array<std::int64_t, kMaxRank> shape_{};
  std::size_t axes_;
  std::array<Operand, kMostOperands> operands_{};
  std::size_t count_ = 0;
};

// The shape that both are broadcast to, row-major axes aligned at the last one; false if there is none.
bool broadcast(std::span<const std::int64_t> a, std::span<const std::int64_t> b,
               std::vector<std::int64_t>& shape);

// Runs an element operation on pieces whose operands are a (and b), then the result.
void run_elements(kernels::ElementOp op, StridedRows& rows, aclDataType a, aclDataType b, aclDataType to,
                  float factor = 1);
void run_elements(kernels::ElementOp op, StridedRows& rows, aclDataType a, aclDataType to, float factor = 1);

inline constexpr std::int64_t kTinyElements =
    4096;  // below that, waking the stream's thread costs more than the work

}  // namespace moeyard::ops
