// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/rows.h"

#include <algorithm>

#include "base/parallel.h"

namespace moeyard::ops {
namespace {

constexpr std::int64_t kElementsPerTask = 65536;  // strided copies of a few tens of microseconds

template <class T, bool kLoad>
void copy_elements(const TensorView& view, std::int64_t rows, std::byte* copy) {
  const std::int64_t columns = columns_of(view), step = step_of(view);
  const std::int64_t grain = std::max<std::int64_t>(kElementsPerTask / std::max<std::int64_t>(columns, 1), 1);
  parallel_for(rows, grain, [&](Range range) {
    for (std::int64_t row = range.begin; row < range.end; ++row) {
      T* strided = reinterpret_cast<T*>(row_begin(view, row));
      T* dense = reinterpret_cast<T*>(copy) + row * columns;
      for (std::int64_t i = 0; i < columns; ++i) {
        if constexpr (kLoad)
          dense[i] = strided[i * step];
        else
          strided[i * step] = dense[i];
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
void copy_nibbles(const TensorView& view, std::int64_t rows, std::byte* copy) {
  const std::int64_t columns = columns_of(view), step = step_of(view);
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t i = 0; i < columns; ++i) {
      const Nibble strided(view.data, row_offset(view, row) + i * step), dense(copy, row * columns + i);
      if constexpr (kLoad)
        dense.store(strided.load());
      else
        strided.store(dense.load());
    }
}

template <bool kLoad>
void copy_rows(const TensorView& view, std::int64_t rows, std::byte* dense) {
  switch (find_dtype(view.dtype)->bits) {
    case 4:
      return copy_nibbles<kLoad>(view, rows, dense);
    case 8:
      return copy_elements<std::uint8_t, kLoad>(view, rows, dense);
    case 16:
      return copy_elements<std::uint16_t, kLoad>(view, rows, dense);
    case 32:
      return copy_elements<std::uint32_t, kLoad>(view, rows, dense);
    default:
      return copy_elements<std::uint64_t, kLoad>(view, rows, dense);
  }
}

}  // namespace

void load_rows(const TensorView& view, std::int64_t rows, std::byte* dense) {
  copy_rows<true>(view, rows, dense);
}

void store_rows(const TensorView& view, std::int64_t rows, std::byte* dense) {
  copy_rows<false>(view, rows, dense);
}

}  // namespace moeyard::ops
