// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/dense_rows.h"

#include <algorithm>

#include "ops/rows.h"

namespace moeyard::ops {
namespace {

Rows rows_in_place(const TensorView& view) {
  const std::int64_t outer = bytes_of(view.dtype, view.strides[0]);
  if (view.rank == 2) return {view.begin(), outer};
  return {view.begin(), bytes_of(view.dtype, view.strides[1]), std::max<std::int64_t>(view.dim(1), 1), outer};
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
  if (in_place_) return rows_in_place(view);
  return {copy_.in(workspace), bytes_of(view.dtype, view.dim(view.rank - 1))};
}

void DenseRows::gather(const TensorView& view, std::int64_t count, std::byte* workspace) const {
  if (!in_place_) load_rows(view, count, copy_.in(workspace));
}

void DenseRows::scatter(const TensorView& view, std::int64_t count, std::byte* workspace) const {
  if (!in_place_) store_rows(view, count, copy_.in(workspace));
}

}  // namespace moeyard::ops
