// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// Blocks of x and w are widened to fp32 in an order that the inner loop reads front to back:
//   x block   [row][k]
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
// Not inlined: in a large function the compiler keeps fewer of the sums in registers.
template <int kRows>
HWY_NOINLINE void add_products(const float* HWY_RESTRICT x, std::int64_t x_row, const float* HWY_RESTRICT w,
                               std::int64_t depth, float* HWY_RESTRICT sum, bool from_zero) {
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
      const V value = hn::Set(d, x[row * x_row + k]);
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

HWY_INLINE void add_products(std::int64_t rows, const float* x, std::int64_t x_row, const float* w,
                             std::int64_t depth, float* sum, bool from_zero) {
  switch (rows) {
    case 1:
      return add_products<1>(x, x_row, w, depth, sum, from_zero);
    case 2:
      return add_products<2>(x, x_row, w, depth, sum, from_zero);
    case 3:
      return add_products<3>(x, x_row, w, depth, sum, from_zero);
    case 4:
      return add_products<4>(x, x_row, w, depth, sum, from_zero);
    case 5:
      return add_products<5>(x, x_row, w, depth, sum, from_zero);
    default:
      return add_products<6>(x, x_row, w, depth, sum, from_zero);
  }
}

// INT8: |x * w| <= 2^14, so that kMatmulDepth <= 2^10 products of a block add up exactly in fp32.
HWY_INLINE void add_products(std::int64_t rows, const float* x, std::int64_t x_row, const float* w,
                             std::int64_t depth, std::int32_t* sum, bool from_zero) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const std::int64_t width = sliver_width();
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  HWY_ALIGN float block[kRegisterRows * kMatmulColumns];
  add_products(rows, x, x_row, w, depth, block, true);
  for (std::int64_t r = 0; r < std::min<std::int64_t>(rows, kRegisterRows); ++r)
    for (std::int64_t c = 0; c < width; c += lanes) {
      std::int32_t* to = sum + r * kMatmulColumns + c;
      const auto exact = hn::ConvertTo(di, hn::LoadU(d, block + r * kMatmulColumns + c));
      hn::StoreU(from_zero ? exact : hn::Add(hn::LoadU(di, to), exact), di, to);
    }
}

// One row and four vectors of columns whose k are next to each other: w goes from memory through registers, as a panel
// would be read only once.
template <class T>
HWY_INLINE void add_row(const float* HWY_RESTRICT x, const T* HWY_RESTRICT w, std::int64_t column_step,
                        std::int64_t depth, float* HWY_RESTRICT sum) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  using V = hn::Vec<decltype(d)>;
  V a = hn::Zero(d), b = a, c = a, e = a;
  const std::int64_t whole = depth / kNeighbours<T> * kNeighbours<T>;
  for (std::int64_t line = 0; line < whole; line += kLine<T>) {
    const auto add = [&](V& to, std::int64_t vector) HWY_ATTR {
      prefetch_ahead(w + vector * lanes * column_step + line, column_step, lanes);
      for (std::int64_t k = line; k < std::min(line + kLine<T>, whole); k += kNeighbours<T>)
        widen_columns(d, w + vector * lanes * column_step + k, column_step,
                      [&](std::int64_t i, auto values)
                          HWY_ATTR { to = hn::MulAdd(hn::Set(d, x[k + i]), values, to); });
    };
    add(a, 0), add(b, 1), add(c, 2), add(e, 3);
  }
  HWY_ALIGN float left[HWY_MAX_BYTES / sizeof(float)];
  const auto add_left = [&](V& to, std::int64_t vector) HWY_ATTR {
    for (std::int64_t i = whole; i < depth; ++i) {
      for (std::int64_t lane = 0; lane < lanes; ++lane)
        left[lane] = widened(w[(vector * lanes + lane) * column_step + i]);
      to = hn::MulAdd(hn::Set(d, x[i]), hn::Load(d, left), to);
    }
    hn::StoreU(to, d, sum + vector * lanes);
  };
  add_left(a, 0), add_left(b, 1), add_left(c, 2), add_left(e, 3);
}

template <class T, class Sum>
HWY_INLINE void matmul(const MatmulTile& p, Sum* sum) {
  auto* x_block = reinterpret_cast<float*>(p.scratch);
  float* w_panel = x_block + kMatmulRows * kMatmulDepth;
  const std::int64_t width = sliver_width();
  const bool whole_x = p.rows * p.depth <= kMatmulRows * kMatmulDepth;  // then it is widened once
  const std::int64_t x_row = whole_x ? p.depth : kMatmulDepth;
  if (whole_x) pack_x<T>(p, 0, p.depth, x_block, x_row);
  std::int64_t c = 0;
  if constexpr (std::is_same_v<Sum, float>)
    if (p.rows == 1 && whole_x && p.w_k_step == 1 && widens_columns<T>(p.w_column_step))
      for (; c + 2 * width <= p.columns; c += 2 * width)
        add_row(x_block, reinterpret_cast<const T*>(p.w) + c * p.w_column_step, p.w_column_step, p.depth,
                sum + c);
  // Few rows: the time goes into reading w, so the columns of one sliver are read end to end where that is the order
  // in memory, as prefetchers like it.
  const bool by_sliver = p.rows <= kFewRows && p.w_k_step == 1;
  const std::int64_t panel_columns = by_sliver ? width : kMatmulColumns;
  for (; c < p.columns; c += panel_columns)
    for (std::int64_t k = 0; k < p.depth; k += kMatmulDepth) {
      const std::int64_t depth = std::min(kMatmulDepth, p.depth - k);
      const std::int64_t columns = std::min(panel_columns, p.columns - c);
      if (!whole_x) pack_x<T>(p, k, depth, x_block, x_row);
      const float* x = x_block + (whole_x ? k : 0);
      pack_w<T>(p, k, depth, c, columns, w_panel);
      for (std::int64_t s = 0; s * width < columns; ++s)
        for (std::int64_t r = 0; r < p.rows; r += kRegisterRows)
          add_products(p.rows - r, x + r * x_row, x_row, w_panel + s * width * depth, depth,
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
