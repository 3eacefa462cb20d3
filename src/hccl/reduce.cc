// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "hccl/reduce.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/numbers.h"

namespace moeyard::hccl {
namespace {

// 2048 fp32 sums and as many results: with one input's tile they fit a 32 KiB L1.
constexpr std::int64_t kTile = 2048;

// How elements of a type are kept while they are reduced: the accumulator, and the way in and out of it.
template <class T>
struct Kept {
  using Accumulator = T;
  static T load(T value) { return value; }
  static T round(T value) { return value; }
};
template <>
struct Kept<Fp16> {
  using Accumulator = float;
  static float load(Fp16 value) { return to_float(value); }
  static Fp16 round(float value) { return to_fp16(value); }
};
template <>
struct Kept<Bf16> {
  using Accumulator = float;
  static float load(Bf16 value) { return to_float(value); }
  static Bf16 round(float value) { return to_bf16(value); }
};

// Integers as unsigned ones that are not promoted to int: they wrap, where int would overflow.
template <class T, class F>
T wrapped(T a, T b, F f) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::conditional_t<sizeof(T) <= 4, std::uint32_t, std::uint64_t>;
    return static_cast<T>(f(static_cast<U>(a), static_cast<U>(b)));
  } else {
    return f(a, b);
  }
}

struct Sum {
  template <class T>
  static T apply(T a, T b) {
    return wrapped(a, b, [](auto x, auto y) { return x + y; });
  }
};
struct Product {
  template <class T>
  static T apply(T a, T b) {
    return wrapped(a, b, [](auto x, auto y) { return x * y; });
  }
};
struct Maximum {
  template <class T>
  static T apply(T a, T b) {
    return (a < b || b != b) ? b : a;
  }
};
struct Minimum {
  template <class T>
  static T apply(T a, T b) {
    return (b < a || b != b) ? b : a;
  }
};

template <class T, class Op>
void reduce(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs, Range elements) {
  using A = typename Kept<T>::Accumulator;
  alignas(64) A sums[kTile];
  alignas(64) T results[kTile];
  for (std::int64_t begin = elements.begin; begin < elements.end; begin += kTile) {
    const std::int64_t n = std::min(kTile, elements.end - begin);
    const auto tile_of = [&](const std::byte* at) { return reinterpret_cast<const T*>(at) + begin; };
    const T* first = tile_of(inputs[0]);
    for (std::int64_t i = 0; i < n; ++i) sums[i] = Kept<T>::load(first[i]);
    for (const std::byte* input : inputs.subspan(1)) {
      const T* values = tile_of(input);
      for (std::int64_t i = 0; i < n; ++i)
        sums[i] = Op::apply(sums[i], static_cast<A>(Kept<T>::load(values[i])));
    }
    for (std::int64_t i = 0; i < n; ++i) results[i] = Kept<T>::round(sums[i]);
    for (std::byte* output : outputs) std::memcpy(output + begin * sizeof(T), results, n * sizeof(T));
  }
}

template <class T>
ReduceFn of_type(HcclReduceOp op) {
  constexpr ReduceFn table[] = {reduce<T, Sum>, reduce<T, Product>, reduce<T, Maximum>, reduce<T, Minimum>};
  return table[op];
}

}  // namespace

ReduceFn find_reduction(HcclDataType type, HcclReduceOp op) {
  switch (type) {
    case HCCL_DATA_TYPE_INT8:
      return of_type<std::int8_t>(op);
    case HCCL_DATA_TYPE_INT16:
      return of_type<std::int16_t>(op);
    case HCCL_DATA_TYPE_INT32:
      return of_type<std::int32_t>(op);
    case HCCL_DATA_TYPE_INT64:
      return of_type<std::int64_t>(op);
    case HCCL_DATA_TYPE_UINT64:
      return of_type<std::uint64_t>(op);
    case HCCL_DATA_TYPE_FP16:
      return of_type<Fp16>(op);
    case HCCL_DATA_TYPE_BFP16:
      return of_type<Bf16>(op);
    case HCCL_DATA_TYPE_FP32:
      return of_type<float>(op);
    case HCCL_DATA_TYPE_FP64:
      return of_type<double>(op);
    default:
      return nullptr;
  }
}

}  // namespace moeyard::hccl
