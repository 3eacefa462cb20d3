// Moeyard. SPDX-License-Identifier: Apache-2.0
// Elements that only change their place.
#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "ops/atb/indices.h"
#include "ops/atb/lines.h"
#include "ops/atb/operation.h"
#include "ops/compute/strided.h"
#include "ops/typed.h"

namespace moeyard::ops::atb {
namespace {

template <class T>
void move_piece(const StridedRows::Piece& piece) {
  const auto* from = reinterpret_cast<const T*>(piece.begin[0]);
  auto* to = reinterpret_cast<T*>(piece.begin[1]);
  if (piece.step[0] == 1 && piece.step[1] == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(piece.n) * sizeof(T));
    return;
  }
  for (std::int64_t i = 0; i < piece.n; ++i) to[i * piece.step[1]] = from[i * piece.step[0]];
}

// Views of one shape.
void move(const TensorView& from, const TensorView& to) {
  StridedRows rows(to.dims());
  rows.add(from);
  rows.add(to);
  const std::int64_t bytes = bytes_of(to.dtype, 1);
  rows.for_each([bytes](const StridedRows::Piece& piece) {
    if (bytes == 1) move_piece<std::uint8_t>(piece);
    if (bytes == 2) move_piece<std::uint16_t>(piece);
    if (bytes == 4) move_piece<std::uint32_t>(piece);
    if (bytes == 8) move_piece<std::uint64_t>(piece);
  });
}

// The part of a tensor that begins at `begin` along an axis and has the shape of another one.
TensorView part_of(const TensorView& whole, int axis, std::int64_t begin, const TensorView& shape) {
  TensorView part = whole;
  part.offset += begin * whole.strides[axis];
  std::copy_n(shape.shape, whole.rank, part.shape);
  return part;
}

Status transpose(const Call& call, std::byte* /*workspace*/) {
  TensorView from = call[0];
  for (int axis = 0; axis < from.rank; ++axis) {
    const std::int64_t source = call.integers[static_cast<std::size_t>(axis)];
    from.shape[axis] = call[0].shape[source];
    from.strides[axis] = call[0].strides[source];
  }
  move(from, call[1]);
  return {};
}

Status slice(const Call& call, std::byte* /*workspace*/) {
  TensorView from = call[0];
  for (int axis = 0; axis < from.rank; ++axis)
    from.offset += call.integers[static_cast<std::size_t>(axis)] * from.strides[axis];
  std::copy_n(call[1].shape, from.rank, from.shape);
  move(from, call[1]);
  return {};
}

Status concat(const Call& call, std::byte* /*workspace*/) {
  const int axis = static_cast<int>(call.integers[0]);
  move(call[0], part_of(call[2], axis, 0, call[0]));
  move(call[1], part_of(call[2], axis, call[0].dim(axis), call[1]));
  return {};
}

Status split(const Call& call, std::byte* /*workspace*/) {
  const int axis = static_cast<int>(call.integers[0]);
  std::int64_t begin = 0;
  for (std::size_t i = 1; i < call.tensors.size(); ++i) {
    move(part_of(call[0], axis, begin, call[i]), call[i]);
    begin += call[i].dim(axis);
  }
  return {};
}

// out[batch, outer, j, inner] = x[batch, outer, indices[batch, j], inner]
Status gather(const Call& call, std::byte* /*workspace*/) {
  const TensorView &x = call[0], &indices = call[1], &out = call[2];
  const int axis = static_cast<int>(call.integers[0]), batch_dims = static_cast<int>(call.integers[1]);
  const std::int64_t size = x.dim(axis), outer = product(x, batch_dims, axis),
                     batches = product(x, 0, batch_dims), wanted = indices.numel() / batches;
  const std::int64_t bytes = bytes_of(x.dtype, product(x, axis + 1, x.rank));
  MOEYARD_TRY(check_indices(call.name, indices, size, "the size of the dimension"));
  parallel_for(batches * outer * wanted, std::max<std::int64_t>(1, 65536 / bytes), [&](Range range) {
    for (std::int64_t row = range.begin; row < range.end; ++row) {
      const std::int64_t j = row % wanted, group = row / wanted;  // group: batch and outer
      const std::int64_t index = index_at(indices, group / outer * wanted + j);
      std::memcpy(out.data + row * bytes, x.data + (group * size + index) * bytes,
                  static_cast<std::size_t>(bytes));
    }
  });
  return {};
}

}  // namespace

std::span<const Entry> moves() {
  static constexpr Entry kEntries[] = {
      {MOEYARD_ATB_TRANSPOSE, transpose}, {MOEYARD_ATB_SLICE, slice},   {MOEYARD_ATB_CONCAT, concat},
      {MOEYARD_ATB_SPLIT, split},         {MOEYARD_ATB_GATHER, gather},
  };
  return kEntries;
}

}  // namespace moeyard::ops::atb
