// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/row_matrix.h"

#include <algorithm>
#include <cstring>

#include "base/parallel.h"

namespace moeyard::ops {
namespace {

constexpr std::int64_t kElementsPerTask = 65536;  // strided copies of a few tens of microseconds

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

// Elements from the first one to index `i` of axes [first, last), numbered in row-major order.
std::int64_t offset_of(const TensorView& view, int first, int last, std::int64_t i) {
  std::int64_t at = 0;
  for (int axis = last - 1; axis >= first; --axis) {
    at += i % view.shape[axis] * view.strides[axis];
    i /= view.shape[axis];
  }
  return at;
}

// Between the tensor and the dense copy, whole runs of the last axis at a time.
template <class T, bool kLoad>
void copy_elements(const TensorView& view, std::byte* copy) {
  const int last = std::max(view.rank - 1, 0);
  const std::int64_t run = view.rank == 0 ? 1 : view.shape[last];
  const std::int64_t stride = view.rank == 0 ? 1 : view.strides[last];
  if (run == 0) return;
  const std::int64_t grain = std::max<std::int64_t>(kElementsPerTask / run, 1);
  parallel_for(view.numel() / run, grain, [&](Range runs) {
    for (std::int64_t i = runs.begin; i < runs.end; ++i) {
      T* strided = view.begin_as<T>() + offset_of(view, 0, last, i);
      T* dense = reinterpret_cast<T*>(copy) + i * run;
      for (std::int64_t j = 0; j < run; ++j) {
        if constexpr (kLoad)
          dense[j] = strided[j * stride];
        else
          strided[j * stride] = dense[j];
      }
    }
  });
}

// Elements of 4 bits, the first of two in the low bits.
struct Nibble {
  std::byte* const byte;
  const unsigned shift;
  Nibble(std::byte* data, std::int64_t i) : byte(data + (i >> 1)), shift((i & 1) != 0 ? 4 : 0) {}
  std::byte load() const { return (*byte >> shift) & std::byte{0xF}; }
  void store(std::byte value) const { *byte = (*byte & (std::byte{0xF0} >> shift)) | (value << shift); }
};

// One after the other: neighbours share a byte.
template <bool kLoad>
void copy_nibbles(const TensorView& view, std::byte* copy) {
  for (std::int64_t i = 0; i < view.numel(); ++i) {
    const Nibble strided(view.data, view.offset + offset_of(view, 0, view.rank, i)), dense(copy, i);
    if constexpr (kLoad)
      dense.store(strided.load());
    else
      strided.store(dense.load());
  }
}

bool is_packed(const TensorView& view) { return find_dtype(view.dtype)->bits < 8; }

template <bool kLoad>
void copy(const TensorView& view, std::byte* dense) {
  if (is_packed(view)) return copy_nibbles<kLoad>(view, dense);
  switch (bytes_of(view.dtype, 1)) {
    case 1:
      return copy_elements<std::uint8_t, kLoad>(view, dense);
    case 2:
      return copy_elements<std::uint16_t, kLoad>(view, dense);
    case 4:
      return copy_elements<std::uint32_t, kLoad>(view, dense);
    default:
      return copy_elements<std::uint64_t, kLoad>(view, dense);
  }
}

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
  if (!in_place_) copy<true>(view, copy_.in(workspace));
  return at(view, workspace);
}

void RowMatrix::store(const TensorView& view, std::byte* workspace) const {
  if (!in_place_) copy<false>(view, copy_.in(workspace));
}

}  // namespace moeyard::ops
