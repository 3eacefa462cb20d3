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

void elements(const Elements& p, Range range) {
  HWY_ALIGN float a[kBlock];
  HWY_ALIGN float b[kBlock];
  for (std::int64_t begin = range.begin; begin < range.end; begin += kBlock) {
    const std::int64_t n = std::min(kBlock, range.end - begin);
    widen_block(p.a, begin, a, n);
    if (p.op == ElementOp::multiply || p.op == ElementOp::swiglu) widen_block(p.b, begin, b, n);
    if (p.op == ElementOp::sigmoid)
      map_row(a, 1, a, n, [](auto d, auto x) HWY_ATTR { return sigmoid_of(d, x); });
    if (p.op == ElementOp::swiglu) map_row(a, 1, a, n, [](auto d, auto x) HWY_ATTR { return silu_of(d, x); });
    if (p.op == ElementOp::multiply || p.op == ElementOp::swiglu)
      for (std::int64_t i = 0; i < n; ++i) a[i] = a[i] * b[i];
    round_block(a, p.to, begin, n);
  }
}
