// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "hccl/reduce.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/numbers.h"
#include "kernels/convert/convert.h"

namespace moeyard::hccl {
namespace {

// 2048 fp32 sums, as many widened elements and rounded results take 20 KiB: with an input's tile they fit a 32 KiB L1.
constexpr std::int64_t kTile = 2048;

template <class T>
constexpr aclDataType kDtype = ACL_DT_UNDEFINED;
template <>
constexpr aclDataType kDtype<Fp16> = ACL_FLOAT16;
template <>
constexpr aclDataType kDtype<Bf16> = ACL_BF16;

// What elements of a type are summed up in.
template <class T>
constexpr bool kIsHalf = std::is_same_v<T, Fp16> || std::is_same_v<T, Bf16>;
template <class T>
using Sum = std::conditional_t<kIsHalf<T>, float, T>;

void convert(const void* from, aclDataType from_dtype, void* to, aclDataType to_dtype, std::int64_t n) {
  static const kernels::ConvertFn run = kernels::convert_variants().front().run;
  run({static_cast<const std::byte*>(from), from_dtype, static_cast<std::byte*>(to), to_dtype}, {0, n});
}

// n elements as their sums' type: in `room` if that is another one, else where they are.
template <class T>
const Sum<T>* widen(const T* values, std::int64_t n, Sum<T>* room) {
  if constexpr (kIsHalf<T>) {
    convert(values, kDtype<T>, room, ACL_FLOAT, n);
    return room;
  } else {
    return values;
  }
}

// n sums rounded to their elements' type, likewise.
template <class T>
const T* narrow(const Sum<T>* sums, std::int64_t n, T* room) {
  if constexpr (kIsHalf<T>) {
    convert(sums, ACL_FLOAT, room, kDtype<T>, n);
    return room;
  } else {
    return sums;
  }
}

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

struct Plus {
  template <class T>
  static T apply(T a, T b) {
    return wrapped(a, b, [](auto x, auto y) { return x + y; });
  }
};
struct Times {
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
  alignas(64) Sum<T> sums[kTile];
  alignas(64) Sum<T> widened[kIsHalf<T> ? kTile : 1];
  alignas(64) T narrowed[kIsHalf<T> ? kTile : 1];
  for (std::int64_t begin = elements.begin; begin < elements.end; begin += kTile) {
    const std::int64_t n = std::min(kTile, elements.end - begin);
    const auto tile_of = [&](const std::byte* at) { return reinterpret_cast<const T*>(at) + begin; };
    std::memcpy(sums, widen<T>(tile_of(inputs[0]), n, widened), n * sizeof(Sum<T>));
    for (const std::byte* input : inputs.subspan(1)) {
      const Sum<T>* values = widen<T>(tile_of(input), n, widened);
      for (std::int64_t i = 0; i < n; ++i) sums[i] = Op::apply(sums[i], values[i]);
    }
    const T* results = narrow<T>(sums, n, narrowed);
    for (std::byte* output : outputs) std::memcpy(output + begin * sizeof(T), results, n * sizeof(T));
  }
}

template <class T>
ReduceFn of_type(HcclReduceOp op) {
  constexpr ReduceFn table[] = {reduce<T, Plus>, reduce<T, Times>, reduce<T, Maximum>, reduce<T, Minimum>};
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
