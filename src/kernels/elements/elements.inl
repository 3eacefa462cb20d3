// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/vector_math.inl"

inline constexpr std::int64_t kBlock = 512;  // fp32 values of two operands: 4 KiB of L1

template <class T>
HWY_INLINE void widen_block(const T* from, std::int64_t step, float* to, std::int64_t n) {
  if (step == 0)
    std::fill_n(to, n, to_float(*from));
  else
    map_row(from, step, to, n, [](auto /*d*/, auto x) HWY_ATTR { return x; });
}

HWY_INLINE void widen_block(const Elements::Operand& operand, std::int64_t begin, float* to, std::int64_t n) {
  const std::int64_t at = begin * operand.step;
  if (operand.dtype == ACL_FLOAT)
    widen_block(reinterpret_cast<const float*>(operand.data) + at, operand.step, to, n);
  if (operand.dtype == ACL_FLOAT16)
    widen_block(reinterpret_cast<const Fp16*>(operand.data) + at, operand.step, to, n);
  if (operand.dtype == ACL_BF16)
    widen_block(reinterpret_cast<const Bf16*>(operand.data) + at, operand.step, to, n);
}

HWY_INLINE void round_block(const float* from, const Elements::Operand& operand, std::int64_t begin,
                            std::int64_t n) {
  const std::int64_t at = begin * operand.step;
  if (operand.dtype == ACL_FLOAT)
    round_row(from, reinterpret_cast<float*>(operand.data) + at, operand.step, n);
  if (operand.dtype == ACL_FLOAT16)
    round_row(from, reinterpret_cast<Fp16*>(operand.data) + at, operand.step, n);
  if (operand.dtype == ACL_BF16) round_row(from, reinterpret_cast<Bf16*>(operand.data) + at, operand.step, n);
}

HWY_INLINE void apply_unary(const Elements& p, float* a, std::int64_t n) {
  const float factor = p.factor;
  switch (p.op) {
    case ElementOp::scale:
      for (std::int64_t i = 0; i < n; ++i) a[i] = factor * a[i];
      return;
    case ElementOp::relu:
      return map_row(a, 1, a, n, [](auto d, auto x) HWY_ATTR { return relu_of(d, x); });
    case ElementOp::sigmoid:
      return map_row(a, 1, a, n, [](auto d, auto x) HWY_ATTR { return sigmoid_of(d, x); });
    case ElementOp::silu:
      return map_row(a, 1, a, n,
                     [factor](auto d, auto x) HWY_ATTR { return silu_of(d, x, hn::Set(d, -factor)); });
    case ElementOp::gelu_tanh:
      return map_row(a, 1, a, n, [](auto d, auto x) HWY_ATTR { return gelu_tanh_of(d, x); });
    case ElementOp::gelu_erf:
      return map_row(a, 1, a, n, [](auto d, auto x) HWY_ATTR { return gelu_erf_of(d, x); });
    default:
      return;
  }
}

HWY_INLINE void apply_binary(const Elements& p, float* a, const float* b, std::int64_t n) {
  if (p.op == ElementOp::add) {
    for (std::int64_t i = 0; i < n; ++i) a[i] = a[i] + p.factor * b[i];
  } else if (p.op == ElementOp::divide) {
    for (std::int64_t i = 0; i < n; ++i) a[i] = a[i] / b[i];
  } else {
    if (p.op == ElementOp::swiglu)
      map_row(a, 1, a, n, [](auto d, auto x) HWY_ATTR { return silu_of(d, x, hn::Set(d, -1.0f)); });
    for (std::int64_t i = 0; i < n; ++i) a[i] = a[i] * b[i];
  }
}

void elements(const Elements& p, Range range) {
  HWY_ALIGN float a[kBlock];
  HWY_ALIGN float b[kBlock];
  for (std::int64_t begin = range.begin; begin < range.end; begin += kBlock) {
    const std::int64_t n = std::min(kBlock, range.end - begin);
    widen_block(p.a, begin, a, n);
    if (has_two_operands(p.op)) {
      widen_block(p.b, begin, b, n);
      apply_binary(p, a, b, n);
    } else {
      apply_unary(p, a, n);
    }
    round_block(a, p.to, begin, n);
  }
}
