// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// Blocks of x and w are widened to fp32 in an order that the inner loop reads front to back:
//   x block   [row][k], kMatmulDepth values from row to row
//   w panel   [sliver][k][column], a sliver is two vectors wide
// The inner loop keeps up to 6 rows of one sliver's sums in registers: 12 sums, 2 of w and 1 of x of 16 registers.

#include "kernels/matmul_tile/pack.inl"

inline constexpr int kRegisterRows = 6;
inline constexpr std::int64_t kFewRows = 2 * kRegisterRows;

HWY_INLINE std::int64_t sliver_width() {
  return 2 * static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<float>()));
}

// Adds the products of `depth` values of k to kRows rows of a sliver. Names instead of arrays, as vectors of some
// targets have no size that arrays could use.
template <int kRows>
HWY_INLINE void add_products(const float* HWY_RESTRICT x, const float* HWY_RESTRICT w, std::int64_t depth,
                             float* HWY_RESTRICT sum, bool from_zero) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  using V = hn::Vec<decltype(d)>;
  const auto start = [&](int row, std::size_t at) HWY_ATTR {
    return row < kRows && !from_zero ? hn::LoadU(d, sum + row * kMatmulColumns + at) : hn::Zero(d);
  };
  V a0 = start(0, 0), a1 = start(1, 0), a2 = start(2, 0), a3 = start(3, 0), a4 = start(4, 0),
    a5 = start(5, 0);
  V b0 = start(0, lanes), b1 = start(1, lanes), b2 = start(2, lanes), b3 = start(3, lanes),
    b4 = start(4, lanes), b5 = start(5, lanes);
  for (std::int64_t k = 0; k < depth; ++k, w += 2 * lanes) {
    const V wa = hn::LoadU(d, w);
    const V wb = hn::LoadU(d, w + lanes);
    const auto step = [&](int row, V& a, V& b) HWY_ATTR {
      const V value = hn::Set(d, x[row * kMatmulDepth + k]);
      a = hn::MulAdd(value, wa, a);
      b = hn::MulAdd(value, wb, b);
    };
    step(0, a0, b0);
    if constexpr (kRows > 1) step(1, a1, b1);
    if constexpr (kRows > 2) step(2, a2, b2);
    if constexpr (kRows > 3) step(3, a3, b3);
    if constexpr (kRows > 4) step(4, a4, b4);
    if constexpr (kRows > 5) step(5, a5, b5);
  }
  const auto finish = [&](int row, V a, V b) HWY_ATTR {
    if (row >= kRows) return;
    hn::StoreU(a, d, sum + row * kMatmulColumns);
    hn::StoreU(b, d, sum + row * kMatmulColumns + lanes);
  };
  finish(0, a0, b0);
  finish(1, a1, b1);
  finish(2, a2, b2);
  finish(3, a3, b3);
  finish(4, a4, b4);
  finish(5, a5, b5);
}

HWY_INLINE void add_products(std::int64_t rows, const float* x, const float* w, std::int64_t depth,
                             float* sum, bool from_zero) {
  switch (rows) {
    case 1:
      return add_products<1>(x, w, depth, sum, from_zero);
    case 2:
      return add_products<2>(x, w, depth, sum, from_zero);
    case 3:
      return add_products<3>(x, w, depth, sum, from_zero);
    case 4:
      return add_products<4>(x, w, depth, sum, from_zero);
    case 5:
      return add_products<5>(x, w, depth, sum, from_zero);
    default:
      return add_products<6>(x, w, depth, sum, from_zero);
  }
}

// INT8: |x * w| <= 2^14, so that kMatmulDepth <= 2^10 products of a block add up exactly in fp32.
HWY_INLINE void add_products(std::int64_t rows, const float* x, const float* w, std::int64_t depth,
                             std::int32_t* sum, bool from_zero) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const std::int64_t width = sliver_width();
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  HWY_ALIGN float block[kRegisterRows * kMatmulColumns];
  add_products(rows, x, w, depth, block, true);
  for (std::int64_t r = 0; r < std::min<std::int64_t>(rows, kRegisterRows); ++r)
    for (std::int64_t c = 0; c < width; c += lanes) {
      std::int32_t* to = sum + r * kMatmulColumns + c;
      const auto exact = hn::ConvertTo(di, hn::LoadU(d, block + r * kMatmulColumns + c));
      hn::StoreU(from_zero ? exact : hn::Add(hn::LoadU(di, to), exact), di, to);
    }
}

template <class T, class Sum>
HWY_INLINE void matmul(const MatmulTile& p, Sum* sum) {
  auto* x_block = reinterpret_cast<float*>(p.scratch);
  float* w_panel = x_block + kMatmulRows * kMatmulDepth;
  const std::int64_t width = sliver_width();
  // Few rows: the time goes into reading w, so the columns of one sliver are read end to end where that is the order
  // in memory, as prefetchers like it.
  const bool by_sliver = p.rows <= kFewRows && p.w_k_step == 1;
  const std::int64_t panel_columns = by_sliver ? width : kMatmulColumns;
  for (std::int64_t c = 0; c < p.columns; c += panel_columns)
    for (std::int64_t k = 0; k < p.depth; k += kMatmulDepth) {
      const std::int64_t depth = std::min(kMatmulDepth, p.depth - k);
      const std::int64_t columns = std::min(panel_columns, p.columns - c);
      if (c == 0 || p.depth > kMatmulDepth) pack_x<T>(p, k, depth, x_block);
      pack_w<T>(p, k, depth, c, columns, w_panel);
      for (std::int64_t s = 0; s * width < columns; ++s)
        for (std::int64_t r = 0; r < p.rows; r += kRegisterRows)
          add_products(p.rows - r, x_block + r * kMatmulDepth, w_panel + s * width * depth, depth,
                       sum + r * kMatmulColumns + c + s * width, k == 0);
    }
  if (p.depth == 0) std::fill(sum, sum + p.rows * kMatmulColumns, Sum{});
}

void matmul_tile(const MatmulTile& p) {
  if (p.dtype == ACL_FLOAT) matmul<float>(p, static_cast<float*>(p.sum));
  if (p.dtype == ACL_FLOAT16) matmul<Fp16>(p, static_cast<float*>(p.sum));
  if (p.dtype == ACL_BF16) matmul<Bf16>(p, static_cast<float*>(p.sum));
  if (p.dtype == ACL_INT8) matmul<std::int8_t>(p, static_cast<std::int32_t*>(p.sum));
}
