// Moeyard. SPDX-License-Identifier: Apache-2.0
// Reductions over dimensions, and running sums: numbers are added up in fp32 in rising order and rounded once, integers wrap
// around.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/parallel.h"
#include "ops/atb/lines.h"
#include "ops/atb/operation.h"
#include "ops/typed.h"

namespace moeyard::ops::atb {
namespace {

template <class T>
using Sum = std::conditional_t<std::is_integral_v<T>, std::int64_t, float>;

template <class T>
Sum<T> widened(T value) {
  if constexpr (std::is_integral_v<T>)
    return value;
  else
    return to_float(value);
}
template <class T>
void store(Sum<T> value, T* to) {
  if constexpr (std::is_integral_v<T>)
    *to = static_cast<T>(value);
  else
    store_number(value, reinterpret_cast<std::byte*>(to), kDtypeOf<T>);
}
std::int64_t add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
float add(float a, float b) { return a + b; }

enum class Reduction { largest, smallest, sum };

// A NaN makes the result NaN.
template <Reduction kKind, class S>
S reduced(S a, S b) {
  if constexpr (kKind == Reduction::sum) return add(a, b);
  if (a != a) return a;
  return (kKind == Reduction::largest ? b > a : b < a) || b != b ? b : a;
}

// The dimensions of a tensor that are reduced, or those that are not.
struct Axes {
  std::int64_t sizes[kMaxRank], strides[kMaxRank], count = 1;
  int rank = 0;
  Axes(const TensorView& x, std::int64_t mask, bool wanted) {
    for (int axis = 0; axis < x.rank; ++axis) {
      if (((mask >> axis) & 1) != (wanted ? 1 : 0)) continue;
      sizes[rank] = x.dim(axis);
      strides[rank++] = x.strides[axis];
      count *= x.dim(axis);
    }
  }
  std::int64_t offset(std::int64_t i) const {
    std::int64_t at = 0;
    for (int axis = rank - 1; axis >= 0; --axis) {
      at += i % sizes[axis] * strides[axis];
      i /= sizes[axis];
    }
    return at;
  }
};

// integers[0]: a bit for each dimension that is reduced.
template <Reduction kKind>
Status reduce(const Call& call, std::byte* /*workspace*/) {
  const TensorView &x = call[0], &out = call[1];
  const Axes kept(x, call.integers[0], false), gone(x, call.integers[0], true);
  return with_type<float, Fp16, Bf16, std::int32_t, std::int64_t>(x.dtype, [&]<class T>() -> Status {
    parallel_for(kept.count, std::max<std::int64_t>(1, 8192 / gone.count), [&](Range range) {
      for (std::int64_t i = range.begin; i < range.end; ++i) {
        const T* from = x.begin_as<T>() + kept.offset(i);
        Sum<T> value = widened(*from);
        for (std::int64_t j = 1; j < gone.count; ++j)
          value = reduced<kKind>(value, widened(from[gone.offset(j)]));
        store<T>(value, out.begin_as<T>() + i);
      }
    });
    return {};
  });
}

// integers: the dimension, whether each element's own value is left out, whether sums begin at the end.
Status running_sum(const Call& call, std::byte* /*workspace*/) {
  const TensorView &x = call[0], &out = call[1];
  const Lines lines(x, call.integers[0], call.integers[0] + 1);
  const bool exclusive = call.integers[1] != 0, reverse = call.integers[2] != 0;
  return with_type<float, Fp16, Bf16, std::int32_t, std::int64_t>(x.dtype, [&]<class T>() -> Status {
    parallel_for(lines.count(), lines.grain(), [&](Range range) {
      for (std::int64_t line = range.begin; line < range.end; ++line) {
        Sum<T> sum = 0;
        for (std::int64_t i = 0; i < lines.n; ++i) {
          const std::int64_t at = lines.begin(line) + (reverse ? lines.n - 1 - i : i) * lines.inner;
          const Sum<T> before = sum;
          sum = add(sum, widened(x.begin_as<T>()[at]));
          store<T>(exclusive ? before : sum, out.begin_as<T>() + at);
        }
      }
    });
    return {};
  });
}

}  // namespace

std::span<const Entry> reductions() {
  static constexpr Entry kEntries[] = {
      {MOEYARD_ATB_REDUCE_MAX, reduce<Reduction::largest>},
      {MOEYARD_ATB_REDUCE_MIN, reduce<Reduction::smallest>},
      {MOEYARD_ATB_REDUCE_SUM, reduce<Reduction::sum>},
      {MOEYARD_ATB_RUNNING_SUM, running_sum},
  };
  return kEntries;
}

}  // namespace moeyard::ops::atb
