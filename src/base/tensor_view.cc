// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "base/tensor_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace moeyard {

TensorView::Extent TensorView::extent() const {
  Extent reach{offset, offset};
  for (int axis = 0; axis < std::min(rank, kMaxRank); ++axis) {
    if (shape[axis] <= 0) return {0, -1};
    const std::int64_t last = (shape[axis] - 1) * strides[axis];
    (last < 0 ? reach.low : reach.high) += last;
  }
  return reach;
}

bool TensorView::within(std::int64_t limit) const {
  const auto below = [limit](std::int64_t value) { return -limit < value && value < limit; };
  if (!below(offset)) return false;
  std::int64_t elements = 1, reach = std::abs(offset);
  for (int axis = 0; axis < std::min(rank, kMaxRank); ++axis) {
    const std::int64_t size = std::max<std::int64_t>(shape[axis], 1);
    std::int64_t last;
    if (!below(strides[axis])) return false;
    if (__builtin_mul_overflow(elements, size, &elements) || elements >= limit) return false;
    if (__builtin_mul_overflow(size - 1, std::abs(strides[axis]), &last) || last >= limit) return false;
    reach += last;
    if (reach >= limit) return false;
  }
  return true;
}

bool TensorView::overlaps_itself() const {
  // Axes by rising stride: each must step over everything that the smaller ones reach.
  std::int64_t axis_stride[kMaxRank];
  std::int64_t axis_size[kMaxRank];
  int axes = 0;
  for (int axis = 0; axis < std::min(rank, kMaxRank); ++axis) {
    if (shape[axis] <= 0) return false;
    if (shape[axis] == 1) continue;
    const std::int64_t stride = std::abs(strides[axis]);
    int place = axes++;
    for (; place > 0 && axis_stride[place - 1] > stride; --place) {
      axis_stride[place] = axis_stride[place - 1];
      axis_size[place] = axis_size[place - 1];
    }
    axis_stride[place] = stride;
    axis_size[place] = shape[axis];
  }
  std::int64_t reach = 0;
  for (int axis = 0; axis < axes; ++axis) {
    if (axis_stride[axis] <= reach) return true;
    reach += (axis_size[axis] - 1) * axis_stride[axis];
  }
  return false;
}

std::string TensorView::describe() const {
  if (!present()) return "null";
  std::string text = fmt::format("{}[{}]", name_of(dtype), fmt::join(dims(), ","));
  if (rank > kMaxRank) text += fmt::format(" with {} dimensions", rank);
  if (rank <= kMaxRank && !contiguous())
    text += fmt::format(" strides ({})", fmt::join(std::span(strides, static_cast<std::size_t>(rank)), ","));
  return text;
}

}  // namespace moeyard
