// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/compute/strided.h"

#include <algorithm>

namespace moeyard::ops {

void StridedRows::add(std::byte* begin, aclDataType dtype, std::span<const std::int64_t> strides) {
  Operand& operand = operands_[count_++];
  operand = {begin, bytes_of(dtype, 1), {}};
  std::copy(strides.begin(), strides.end(), operand.strides.begin());
}

void StridedRows::add(const TensorView& view) {
  std::array<std::int64_t, kMaxRank> strides{};
  const std::size_t missing = axes_ - view.dims().size();
  for (std::size_t axis = 0; axis < view.dims().size(); ++axis)
    if (view.shape[axis] != 1) strides[missing + axis] = view.strides[axis];
  add(view.begin(), view.dtype, std::span(strides.data(), axes_));
}

// Joins each axis with the one before it where a step of the outer one is a whole run of the inner one, and drops axes of
// one element. At least one axis is left.
void StridedRows::join_axes() {
  if (axes_ == 0) shape_[axes_++] = 1;
  std::size_t last = 0;  // axes [0, last] are joined
  const auto joins = [&](std::size_t axis) {
    return std::all_of(operands_.begin(), operands_.begin() + static_cast<std::ptrdiff_t>(count_),
                       [&](const Operand& operand) {
                         return operand.strides[last] == operand.strides[axis] * shape_[axis];
                       });
  };
  for (std::size_t axis = 1; axis < axes_; ++axis) {
    if (shape_[axis] == 1) continue;
    const bool outer_is_one = shape_[last] == 1;
    if (!outer_is_one && !joins(axis)) {
      ++last;
      shape_[last] = shape_[axis];
    } else {
      shape_[last] = outer_is_one ? shape_[axis] : shape_[last] * shape_[axis];
    }
    for (Operand& operand : operands_) operand.strides[last] = operand.strides[axis];
  }
  axes_ = last + 1;
}

std::int64_t StridedRows::rows() const {
  std::int64_t rows = 1;
  for (std::size_t axis = 0; axis + 1 < axes_; ++axis) rows *= shape_[axis];
  return rows;
}

StridedRows::Piece StridedRows::piece(std::int64_t row, std::int64_t begin, std::int64_t n) const {
  Piece made{{}, {}, n};
  const std::size_t inner = axes_ - 1;
  for (std::size_t i = 0; i < count_; ++i) {
    const Operand& operand = operands_[i];
    std::int64_t at = begin * operand.strides[inner];
    std::int64_t rest = row;
    for (std::size_t axis = inner; axis-- > 0;) {
      at += rest % shape_[axis] * operand.strides[axis];
      rest /= shape_[axis];
    }
    made.begin[i] = operand.begin + at * operand.element_bytes;
    made.step[i] = operand.strides[inner];
  }
  return made;
}

bool broadcast(std::span<const std::int64_t> a, std::span<const std::int64_t> b,
               std::vector<std::int64_t>& shape) {
  shape.assign(std::max(a.size(), b.size()), 1);
  for (const auto& from : {a, b})
    for (std::size_t i = 0; i < from.size(); ++i) {
      const std::int64_t size = from[from.size() - 1 - i];
      std::int64_t& joint = shape[shape.size() - 1 - i];
      if (size != joint && size != 1 && joint != 1) return false;
      if (size != 1) joint = size;
    }
  return true;
}

void run_elements(kernels::ElementOp op, StridedRows& rows, aclDataType a, aclDataType b, aclDataType to,
                  float factor) {
  static const kernels::ElementsFn elements = kernels::elements_variants().front().run;
  rows.for_each([&](const StridedRows::Piece& piece) {
    elements({op,
              {piece.begin[0], a, piece.step[0]},
              {piece.begin[1], b, piece.step[1]},
              {piece.begin[2], to, piece.step[2]},
              factor},
             {0, piece.n});
  });
}

void run_elements(kernels::ElementOp op, StridedRows& rows, aclDataType a, aclDataType to, float factor) {
  static const kernels::ElementsFn elements = kernels::elements_variants().front().run;
  rows.for_each([&](const StridedRows::Piece& piece) {
    elements({op, {piece.begin[0], a, piece.step[0]}, {}, {piece.begin[1], to, piece.step[1]}, factor},
             {0, piece.n});
  });
}

}  // namespace moeyard::ops
