// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace moeyard {

inline constexpr int kMaxRank = 8;  // dimensions that operators accept

// How an operator sees a tensor: a copy of everything that aclCreateTensor was told, the data itself
// excepted. A default-made view stands for a tensor that the caller did not give.
//
// Element (i0, i1, ...) lives at data + (offset + i0 * strides[0] + i1 * strides[1] + ...) elements; strides
// and offset count elements, as CANN's do.
struct TensorView {
  std::byte* data = nullptr;
  aclDataType dtype = ACL_DT_UNDEFINED;
  aclFormat format = ACL_FORMAT_UNDEFINED;
  std::int32_t rank =
      -1;  // -1: absent; may exceed kMaxRank, then shape and strides hold the first kMaxRank only
  std::int64_t offset = 0;
  std::int64_t shape[kMaxRank] = {};
  std::int64_t strides[kMaxRank] = {};

  bool present() const { return rank >= 0; }
  std::span<const std::int64_t> dims() const {
    return {shape, static_cast<std::size_t>(std::min(rank, kMaxRank))};
  }
  std::int64_t dim(int axis) const { return shape[axis]; }

  std::int64_t numel() const {  // 1 for a scalar tensor
    std::int64_t n = 1;
    for (const std::int64_t size : dims()) n *= size;
    return n;
  }
  // Whether the elements lie one after the other in row-major order (axes of one element don't matter).
  bool contiguous() const { return contiguous_from(0); }
  // Whether the axes from `first` on are dense: with first = 1, each row of a matrix is.
  bool contiguous_from(int first) const {
    std::int64_t expected = 1;
    for (int axis = rank - 1; axis >= first; --axis) {
      if (shape[axis] != 1 && strides[axis] != expected) return false;
      if (__builtin_mul_overflow(expected, shape[axis], &expected)) return false;
    }
    return true;
  }

  std::byte* begin() const { return data + bytes_of(dtype, offset); }
  template <class T>
  T* begin_as() const {
    return reinterpret_cast<T*>(begin());
  }
  // Element of a 1-D or 2-D view; T has the size of an element.
  template <class T>
  T& at(std::int64_t i) const {
    return reinterpret_cast<T*>(data)[offset + i * strides[0]];
  }
  template <class T>
  T& at(std::int64_t i, std::int64_t j) const {
    return reinterpret_cast<T*>(data)[offset + i * strides[0] + j * strides[1]];
  }

  // Bytes from one row (index of axis 0) to the next; whole-byte elements, or 4-bit ones with even strides.
  std::int64_t row_stride_bytes() const { return strides[0] * find_dtype(dtype)->bits / 8; }

  // Lowest and highest element offset (from data) that any index reaches; low > high when there are no
  // elements.
  struct Extent {
    std::int64_t low, high;
  };
  Extent extent() const;

  // Whether sizes, strides, offset and all that follows from them stay below `limit` elements, so that arithmetic with them
  // cannot overflow. A size of 0 counts as 1: no other size hides behind it.
  bool within(std::int64_t limit) const;

  // Whether two different indices may reach the same element (a broadcast view, say). Exact for views made by
  // slicing and transposing; other overlaps of strides count as overlapping, too.
  bool overlaps_itself() const;

  std::string describe() const;  // "BF16[512,7168]", with strides where it is not contiguous
};

// An aclTensorList as an operator sees it. A null entry is an absent view.
struct TensorListView {
  bool given = false;
  std::vector<TensorView> items;

  std::int64_t size() const { return static_cast<std::int64_t>(items.size()); }
  const TensorView& operator[](std::int64_t i) const { return items[static_cast<std::size_t>(i)]; }
};

// An aclScalar as an operator sees it.
struct ScalarView {
  bool given = false;
  bool is_number = false;  // of a type that we can read
  bool is_integer = false;
  double number = 0;
  std::int64_t integer = 0;  // the same, if it is one

  static constexpr ScalarView of(std::int64_t value) {
    return {true, true, true, static_cast<double>(value), value};
  }
};

// An aclIntArray as an operator sees it.
struct IntArrayView {
  bool given = false;
  std::vector<std::int64_t> items;

  std::int64_t size() const { return static_cast<std::int64_t>(items.size()); }
  std::int64_t operator[](std::int64_t i) const { return items[static_cast<std::size_t>(i)]; }
};

}  // namespace moeyard
