// Moeyard. SPDX-License-Identifier: Apache-2.0
// Element by element: what aclnn operators compute, through them, and the rest by plain loops.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/parallel.h"
#include "ops/atb/operation.h"
#include "ops/compute/arithmetic.h"
#include "ops/compute/cast.h"
#include "ops/compute/strided.h"
#include "ops/compute/swi_glu.h"
#include "ops/typed.h"

namespace moeyard::ops::atb {
namespace {

StridedRows rows_of(const Call& call) {
  StridedRows rows(call.last().dims());
  for (const TensorView& view : call.tensors) rows.add(view);
  return rows;
}

Status cast(const Call& call, std::byte* /*workspace*/) {
  return Cast::run({call.name, nullptr, 0}, {call[0], call[1].dtype, call[1]}, {});
}

template <kernels::ElementOp kOperation>
Status kernel(const Call& call, std::byte* /*workspace*/) {
  StridedRows rows = rows_of(call);
  run_elements(kOperation, rows, call[0].dtype, call[1].dtype, static_cast<float>(call.numbers[0]));
  return {};
}

Status swiglu(const Call& call, std::byte* /*workspace*/) {
  return SwiGlu::run({call.name, nullptr, 0}, {call[0], -1, call[1]}, {});
}

// Inputs dy [rows, half] and x [rows, 2 * half].
Status swiglu_backward(const Call& call, std::byte* /*workspace*/) {
  const TensorView &dy = call[0], &x = call[1], &dx = call[2];
  const aclDataType dtype = x.dtype;
  const std::int64_t half = dy.dim(dy.rank - 1), rows = dy.numel() / half;
  parallel_for(rows, std::max<std::int64_t>(1, 4096 / half), [&](Range range) {
    for (std::int64_t row = range.begin; row < range.end; ++row)
      for (std::int64_t i = 0; i < half; ++i) {
        const std::int64_t first = bytes_of(dtype, row * 2 * half + i),
                           second = first + bytes_of(dtype, half);
        const double a = load_number(x.data + first, dtype), b = load_number(x.data + second, dtype),
                     gradient = load_number(dy.data + bytes_of(dtype, row * half + i), dtype);
        const double sigmoid = 1 / (1 + std::exp(-a));
        const double slope = sigmoid + a * sigmoid * (1 - sigmoid);
        store_number(static_cast<float>(gradient * b * slope), dx.data + first, dtype);
        store_number(static_cast<float>(gradient * a * sigmoid), dx.data + second, dtype);
      }
  });
  return {};
}

template <Arithmetic kKind>
Status arithmetic(const Call& call, std::byte* /*workspace*/) {
  return ArithmeticOperator::run({call.name, nullptr, 0},
                                 {.kind = kKind, .self = call[0], .other = call[1], .out = call[2]}, {});
}

// In double, so that rounding to the output's type is the only error that can be seen.
template <double (*kFunction)(double)>
Status function(const Call& call, std::byte* /*workspace*/) {
  StridedRows rows = rows_of(call);
  const aclDataType dtype = call[0].dtype;
  rows.for_each([&](const StridedRows::Piece& piece) {
    for (std::int64_t i = 0; i < piece.n; ++i) {
      const double x = load_number(piece.begin[0] + bytes_of(dtype, i * piece.step[0]), dtype);
      store_number(static_cast<float>(kFunction(x)), piece.begin[1] + bytes_of(dtype, i * piece.step[1]),
                   dtype);
    }
  });
  return {};
}

enum class Truth { logical_not, logical_and, logical_or, less, greater, equal };

template <class Value>
bool truth(Truth kind, Value a, Value b) {
  switch (kind) {
    case Truth::logical_not:
      return a == 0;
    case Truth::logical_and:
      return a != 0 && b != 0;
    case Truth::logical_or:
      return a != 0 || b != 0;
    case Truth::less:
      return a < b;
    case Truth::greater:
      return a > b;
    case Truth::equal:
      return a == b;
  }
  return false;
}

template <class T>
auto value_of(T value) {
  if constexpr (std::is_integral_v<T>)
    return value;
  else
    return to_float(value);
}

// INT8 results of 0 and 1.
template <Truth kKind>
Status compare(const Call& call, std::byte* /*workspace*/) {
  StridedRows rows = rows_of(call);
  return with_type<float, Fp16, Bf16, std::int8_t, std::int32_t, std::int64_t>(
      call[0].dtype, [&]<class T>() -> Status {
        rows.for_each([&](const StridedRows::Piece& piece) {
          const std::size_t other = kKind == Truth::logical_not ? 0 : 1;
          const auto* a = reinterpret_cast<const T*>(piece.begin[0]);
          const auto* b = reinterpret_cast<const T*>(piece.begin[other]);
          auto* to = reinterpret_cast<std::int8_t*>(piece.begin[other + 1]);
          for (std::int64_t i = 0; i < piece.n; ++i)
            to[i * piece.step[other + 1]] =
                truth(kKind, value_of(a[i * piece.step[0]]), value_of(b[i * piece.step[other]])) ? 1 : 0;
        });
        return {};
      });
}

}  // namespace

std::span<const Entry> elementwise() {
  static constexpr Entry kEntries[] = {
      {MOEYARD_ATB_CAST, cast},
      {MOEYARD_ATB_SCALE, kernel<kernels::ElementOp::scale>},
      {MOEYARD_ATB_COS, function<std::cos>},
      {MOEYARD_ATB_SIN, function<std::sin>},
      {MOEYARD_ATB_TANH, function<std::tanh>},
      {MOEYARD_ATB_NOT, compare<Truth::logical_not>},
      {MOEYARD_ATB_ADD, arithmetic<Arithmetic::add>},
      {MOEYARD_ATB_SUBTRACT, arithmetic<Arithmetic::subtract>},
      {MOEYARD_ATB_MULTIPLY, arithmetic<Arithmetic::multiply>},
      {MOEYARD_ATB_DIVIDE, arithmetic<Arithmetic::divide>},
      {MOEYARD_ATB_AND, compare<Truth::logical_and>},
      {MOEYARD_ATB_OR, compare<Truth::logical_or>},
      {MOEYARD_ATB_LESS, compare<Truth::less>},
      {MOEYARD_ATB_GREATER, compare<Truth::greater>},
      {MOEYARD_ATB_EQUAL, compare<Truth::equal>},
      {MOEYARD_ATB_RELU, kernel<kernels::ElementOp::relu>},
      {MOEYARD_ATB_SIGMOID, kernel<kernels::ElementOp::sigmoid>},
      {MOEYARD_ATB_SILU, kernel<kernels::ElementOp::silu>},
      {MOEYARD_ATB_GELU_TANH, kernel<kernels::ElementOp::gelu_tanh>},
      {MOEYARD_ATB_GELU_ERF, kernel<kernels::ElementOp::gelu_erf>},
      {MOEYARD_ATB_LOG, function<std::log>},
      {MOEYARD_ATB_SWIGLU, swiglu},
      {MOEYARD_ATB_SWIGLU_BACKWARD, swiglu_backward},
  };
  return kEntries;
}

}  // namespace moeyard::ops::atb
