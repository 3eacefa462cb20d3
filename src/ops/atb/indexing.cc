// Moeyard. SPDX-License-Identifier: Apache-2.0
// Elements that indices name, or that get them.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/parallel.h"
#include "ops/atb/indices.h"
#include "ops/atb/lines.h"
#include "ops/atb/operation.h"
#include "ops/typed.h"

namespace moeyard::ops::atb {
namespace {

struct SortParts {
  Scratch scratch;
  Part<std::int32_t> order;
  Part<float> values;
  explicit SortParts(const Call& call)
      : order(scratch.add<std::int32_t>(call[0].numel())), values(scratch.add<float>(call[0].numel())) {}
};
std::int64_t sort_workspace(const Call& call) { return SortParts(call).scratch.bytes(); }

// The largest of each row, equal ones by their place, NaN behind everything else.
Status sort(const Call& call, std::byte* workspace) {
  const SortParts parts(call);
  const TensorView &x = call[0], &out = call[1], &indices = call[2];
  const std::int64_t n = x.dim(x.rank - 1), kept = call.integers[0];
  parallel_for(x.numel() / n, std::max<std::int64_t>(1, 1024 / n), [&](Range range) {
    for (std::int64_t row = range.begin; row < range.end; ++row) {
      std::int32_t* order = parts.order.in(workspace) + row * n;
      float* values = parts.values.in(workspace) + row * n;
      for (std::int64_t i = 0; i < n; ++i) {
        order[i] = static_cast<std::int32_t>(i);
        values[i] = load_number(x.data + bytes_of(x.dtype, row * n + i), x.dtype);
      }
      std::partial_sort(order, order + kept, order + n, larger_first(values));
      const std::int64_t bytes = bytes_of(x.dtype, 1);
      for (std::int64_t i = 0; i < kept; ++i) {
        std::memcpy(out.data + (row * kept + i) * bytes, x.data + (row * n + order[i]) * bytes,
                    static_cast<std::size_t>(bytes));
        indices.begin_as<std::int32_t>()[row * kept + i] = order[i];
      }
    }
  });
  return {};
}

// An index that is no place of the new dimension names nothing.
Status one_hot(const Call& call, std::byte* /*workspace*/) {
  const TensorView &indices = call[0], &out = call[3];
  const Lines lines(out, call.integers[0], call.integers[0] + 1);
  return with_type<float, Fp16, Bf16, std::int32_t, std::int64_t>(out.dtype, [&]<class T>() -> Status {
    const T one = *call[1].begin_as<T>(), zero = *call[2].begin_as<T>();
    parallel_for(lines.count(), lines.grain(), [&](Range range) {
      for (std::int64_t line = range.begin; line < range.end; ++line) {
        T* to = out.begin_as<T>() + lines.begin(line);
        for (std::int64_t d = 0; d < lines.n; ++d) to[d * lines.inner] = zero;
        const std::int64_t index = index_at(indices, line);
        if (index >= 0 && index < lines.n) to[index * lines.inner] = one;
      }
    });
    return {};
  });
}

struct IndexAddParts {
  Scratch scratch;
  PlacesByIndex places;
  explicit IndexAddParts(const Call& call)
      : places(scratch, call[1].numel(), call[0].dim(static_cast<int>(call.integers[0]))) {}
};
std::int64_t index_add_workspace(const Call& call) { return IndexAddParts(call).scratch.bytes(); }

// out[outer, r, inner] = x[outer, r, inner] + alpha * updates[outer, i, inner] of all i whose index is r, in fp32.
Status index_add(const Call& call, std::byte* workspace) {
  const TensorView &x = call[0], &indices = call[1], &updates = call[2], &out = call[4];
  const aclDataType dtype = x.dtype;
  const Lines rows(x, call.integers[0], call.integers[0] + 1);
  MOEYARD_TRY(check_indices(call.name, indices, rows.n, "the size of the dimension"));
  const IndexAddParts parts(call);
  parts.places.sort(workspace, indices, indices.numel());
  const float alpha = load_number(call[3].data, dtype);
  constexpr std::int64_t kBlock = 512;
  parallel_for(rows.outer * rows.n, std::max<std::int64_t>(1, 8192 / rows.inner), [&](Range range) {
    float sum[kBlock];
    for (std::int64_t row = range.begin; row < range.end; ++row) {
      const auto places = parts.places.of(workspace, row % rows.n);
      if (places.empty() && out.data == x.data) continue;
      for (std::int64_t begin = 0; begin < rows.inner; begin += kBlock) {
        const std::int64_t width = std::min(kBlock, rows.inner - begin), at = row * rows.inner + begin;
        for (std::int64_t i = 0; i < width; ++i)
          sum[i] = load_number(x.data + bytes_of(dtype, at + i), dtype);
        for (const std::int32_t place : places) {
          const std::int64_t from = (row / rows.n * indices.numel() + place) * rows.inner + begin;
          for (std::int64_t i = 0; i < width; ++i)
            sum[i] += alpha * load_number(updates.data + bytes_of(dtype, from + i), dtype);
        }
        for (std::int64_t i = 0; i < width; ++i)
          store_number(sum[i], out.data + bytes_of(dtype, at + i), dtype);
      }
    }
  });
  return {};
}

bool is_narrow(aclDataType dtype) { return dtype == ACL_FLOAT16 || dtype == ACL_BF16; }

// Sums of 16-bit numbers are rounded once.
std::int64_t scatter_workspace(const Call& call) {
  return call.integers[1] != 0 && is_narrow(call[0].dtype) ? call[0].numel() * 4 : 0;
}

// The first element of x that a line of the indices can name: their shapes differ.
std::int64_t begin_in(const TensorView& x, const TensorView& indices, int axis, std::int64_t line) {
  std::int64_t begin = 0;
  for (int i = indices.rank - 1; i >= 0; --i) {
    if (i == axis) continue;
    begin += line % indices.dim(i) * x.strides[i];
    line /= indices.dim(i);
  }
  return begin;
}

// Lines of x have no elements in common, so each is one thread's.
template <class T>
void scatter_line(const TensorView& indices, const T* updates, std::int64_t first, std::int64_t n,
                  std::int64_t step, T* x, std::int64_t x_step, bool adds, float* wide) {
  const auto target = [&](std::int64_t i) { return index_at(indices, first + i * step) * x_step; };
  if constexpr (std::is_same_v<T, Fp16> || std::is_same_v<T, Bf16>) {
    if (adds) {
      for (std::int64_t i = 0; i < n; ++i) wide[target(i)] = to_float(x[target(i)]);
      for (std::int64_t i = 0; i < n; ++i) wide[target(i)] += to_float(updates[first + i * step]);
      for (std::int64_t i = 0; i < n; ++i)
        store_number(wide[target(i)], reinterpret_cast<std::byte*>(x + target(i)), kDtypeOf<T>);
      return;
    }
  } else if (adds) {
    using Sum = std::conditional_t<std::is_integral_v<T>, std::uint64_t, float>;  // wraps around
    for (std::int64_t i = 0; i < n; ++i)
      x[target(i)] =
          static_cast<T>(static_cast<Sum>(x[target(i)]) + static_cast<Sum>(updates[first + i * step]));
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) x[target(i)] = updates[first + i * step];
}

Status scatter_elements(const Call& call, std::byte* workspace) {
  const TensorView &x = call[0], &indices = call[1], &updates = call[2], &out = call[3];
  const int axis = static_cast<int>(call.integers[0]);
  MOEYARD_TRY(check_indices(call.name, indices, x.dim(axis), "the size of the dimension"));
  if (out.data != x.data)
    std::memcpy(out.data, x.data, static_cast<std::size_t>(bytes_of(x.dtype, x.numel())));
  const Lines lines(indices, axis, axis + 1);
  return with_type<float, Fp16, Bf16, std::int8_t, std::int32_t, std::int64_t>(
      x.dtype, [&]<class T>() -> Status {
        parallel_for(lines.count(), lines.grain(), [&](Range range) {
          for (std::int64_t line = range.begin; line < range.end; ++line) {
            const std::int64_t begin = begin_in(out, indices, axis, line);
            float* wide = workspace == nullptr ? nullptr : reinterpret_cast<float*>(workspace) + begin;
            scatter_line<T>(indices, updates.begin_as<T>(), lines.begin(line), lines.n, lines.inner,
                            out.begin_as<T>() + begin, out.strides[axis], call.integers[1] != 0, wide);
          }
        });
        return {};
      });
}

}  // namespace

std::span<const Entry> indexing() {
  static constexpr Entry kEntries[] = {
      {MOEYARD_ATB_SORT, sort, sort_workspace},
      {MOEYARD_ATB_ONE_HOT, one_hot},
      {MOEYARD_ATB_INDEX_ADD, index_add, index_add_workspace},
      {MOEYARD_ATB_SCATTER_ELEMENTS, scatter_elements, scatter_workspace},
  };
  return kEntries;
}

}  // namespace moeyard::ops::atb
