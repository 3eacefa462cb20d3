// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/dense_rows.h"

#include <algorithm>
#include <cstring>

#include "base/parallel.h"

namespace moeyard::ops {
namespace {

constexpr std::int64_t kElementsPerTask = 65536;  // strided copies of a few tens of microseconds

Rows rows_of(const TensorView& view) {
  const std::int64_t outer = bytes_of(view.dtype, view.strides[0]);
  if (view.rank == 2) return {view.begin(), outer};
  return {view.begin(), bytes_of(view.dtype, view.strides[1]), std::max<std::int64_t>(view.dim(1), 1), outer};
}

// Element i of a row on the dense side is element i * stride on the view's side.
template <class T, bool kGather>
void copy_rows(const TensorView& view, std::int64_t count, T* dense) {
  const std::int64_t columns = view.dim(view.rank - 1), stride = view.strides[view.rank - 1];
  const Rows rows = rows_of(view);
  parallel_for(count, std::max<std::int64_t>(kElementsPerTask / std::max<std::int64_t>(columns, 1), 1),
               [&](Range range) {
                 for (std::int64_t row = range.begin; row < range.end; ++row) {
                   T* strided = reinterpret_cast<T*>(rows[row]);
                   for (std::int64_t i = 0; i < columns; ++i) {
                     if constexpr (kGather)
                       dense[row * columns + i] = strided[i * stride];
                     else
                       strided[i * stride] = dense[row * columns + i];
                   }
                 }
               });
}

template <bool kGather>
void copy(const TensorView& view, std::int64_t count, std::byte* dense) {
  switch (bytes_of(view.dtype, 1)) {
    case 1:
      return copy_rows<std::uint8_t, kGather>(view, count, reinterpret_cast<std::uint8_t*>(dense));
    case 2:
      return copy_rows<std::uint16_t, kGather>(view, count, reinterpret_cast<std::uint16_t*>(dense));
    default:
      return copy_rows<std::uint32_t, kGather>(view, count, reinterpret_cast<std::uint32_t*>(dense));
  }
}

}  // namespace

DenseRows::DenseRows(const TensorView& view, std::int64_t rows, Scratch& scratch) {
  if (!view.present()) return;
  const std::int64_t columns = view.dim(view.rank - 1);
  in_place_ = columns <= 1 || view.strides[view.rank - 1] == 1;
  if (!in_place_) copy_ = scratch.add<std::byte>(rows * bytes_of(view.dtype, columns));
}

Rows DenseRows::rows(const TensorView& view, std::byte* workspace) const {
  if (!view.present()) return {};
  if (in_place_) return rows_of(view);
  return {copy_.in(workspace), bytes_of(view.dtype, view.dim(view.rank - 1))};
}

void DenseRows::gather(const TensorView& view, std::int64_t count, std::byte* workspace) const {
  if (!in_place_) copy<true>(view, count, copy_.in(workspace));
}

void DenseRows::scatter(const TensorView& view, std::int64_t count, std::byte* workspace) const {
  if (!in_place_) copy<false>(view, count, copy_.in(workspace));
}

}  // namespace moeyard::ops
