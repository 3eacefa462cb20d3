// Moeyard. SPDX-License-Identifier: Apache-2.0
// Widens blocks of the operands into the order of the inner loop; see matmul_tile.inl.

HWY_INLINE float widened(std::int8_t value) { return value; }
template <class T>
HWY_INLINE float widened(T value) {
  return to_float(value);
}

template <class D>
HWY_INLINE hn::Vec<D> load_widened(D d, const std::int8_t* from) {
  const hn::RebindToSigned<D> di;
  return hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(hn::Rebind<std::int8_t, D>(), from)));
}
template <class D, class T>
HWY_INLINE hn::Vec<D> load_widened(D d, const T* from) {
  return load_float(d, from);
}

// x[all rows][k, k + depth), block_row values from row to row
template <class T>
HWY_INLINE void pack_x(const MatmulTile& p, std::int64_t k, std::int64_t depth, float* block,
                       std::int64_t block_row) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t r = 0; r < p.rows; ++r) {
    const T* from = reinterpret_cast<const T*>(p.x_rows[r]) + k * p.x_step;
    float* to = block + r * block_row;
    std::int64_t i = 0;
    if (p.x_step == 1)
      for (; i + lanes <= depth; i += lanes) hn::StoreU(load_widened(d, from + i), d, to + i);
    for (; i < depth; ++i) to[i] = widened(from[i * p.x_step]);
  }
}

// Element by element: for steps that no vector load follows, and for what is left beside full vectors. Columns beyond
// `columns` become zero.
template <class T>
HWY_INLINE void pack_elements(const T* from, std::int64_t k_step, std::int64_t column_step,
                              std::int64_t k_begin, std::int64_t k_end, std::int64_t columns,
                              std::int64_t width, float* sliver) {
  for (std::int64_t k = k_begin; k < k_end; ++k)
    for (std::int64_t c = 0; c < width; ++c)
      sliver[k * width + c] = c < columns ? widened(from[k * k_step + c * column_step]) : 0.0f;
}

// Whether widen_columns is there for T and this distance of columns, and how many k it widens at once. Vectors of some
// targets have no lane count that is known while compiling, and the scalar one has no blocks of 4.
template <class T>
inline constexpr std::int64_t kNeighbours = std::is_same_v<T, Bf16> ? 8 : 4;

#if HWY_HAVE_SCALABLE || HWY_TARGET == HWY_SCALAR

template <class T>
HWY_INLINE bool widens_columns(std::int64_t /*column_step*/) {
  return false;
}
template <class D, class T, class Take>
HWY_INLINE void widen_columns(D, const T*, std::int64_t, Take&&) {}

#else

template <class T>
HWY_INLINE bool widens_columns(std::int64_t column_step) {
  return !std::is_same_v<T, Bf16> || column_step % 2 == 0;
}

// Blocks of 4 lanes: 4 neighbours from columns c, c + 4, c + 8 ... that lie column_step apart.
template <class D, class T>
HWY_INLINE hn::Vec<D> load_blocks(D d, const T* from, std::int64_t column_step) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    if constexpr (std::is_same_v<hn::TFromD<D>, float>)
      return load_widened(d, from);
    else
      return hn::LoadU(d, from);
  } else {
    const hn::Half<D> half;
    const auto columns = static_cast<std::int64_t>(hn::MaxLanes(half));
    return hn::Combine(d, load_blocks(half, from + columns * column_step, column_step),
                       load_blocks(half, from, column_step));
  }
}

// Transposes blocks of 4 x 4 lanes: hands out, in order, the vectors of neighbour 0, 1, 2 and 3 of all columns.
template <class D, class T, class Take>
HWY_INLINE void transpose_blocks(D d, const T* from, std::int64_t column_step, Take&& take) {
  const hn::Repartition<double, D> pairs;
  const auto c0 = load_blocks(d, from, column_step);
  const auto c1 = load_blocks(d, from + column_step, column_step);
  const auto c2 = load_blocks(d, from + 2 * column_step, column_step);
  const auto c3 = load_blocks(d, from + 3 * column_step, column_step);
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, c0, c1));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, c2, c3));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, c0, c1));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, c2, c3));
  take(0, hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)));
  take(1, hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)));
  take(2, hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)));
  take(3, hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)));
}

// A vector's worth of columns whose k are next to each other: hands out kNeighbours vectors, of rising k.
template <class D, class T, class Take>
HWY_INLINE void widen_columns(D d, const T* from, std::int64_t column_step, Take&& take) {
  transpose_blocks(d, from, column_step, take);
}

// BF16 moves in pairs and is widened afterwards: an even k is the low half of its pair.
template <class D, class Take>
HWY_INLINE void widen_columns(D d, const Bf16* from, std::int64_t column_step, Take&& take) {
  const U32Of<D> d32;
  transpose_blocks(d32, reinterpret_cast<const std::uint32_t*>(from), column_step / 2,
                   [&](std::int64_t i, auto pair) HWY_ATTR {
                     take(2 * i, hn::BitCast(d, hn::ShiftLeft<16>(pair)));
                     take(2 * i + 1, hn::BitCast(d, hn::And(pair, hn::Set(d32, 0xFFFF0000u))));
                   });
}

#endif

// k that one cache line holds. Columns often lie a multiple of 4 KiB apart, so that the lines of more than 8 of them push
// each other out of L1: a line is used up before the next vector of columns is touched.
template <class T>
inline constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));

// Asks for what lies ahead of a line of `columns` columns: processors follow fewer streams by themselves.
template <class T>
HWY_INLINE void prefetch_ahead(const T* from, std::int64_t column_step, std::int64_t columns) {
  constexpr std::int64_t kAhead = 4 * kLine<T>;
  for (std::int64_t c = 0; c < columns; ++c) hwy::Prefetch(from + c * column_step + kAhead);
}

// A whole sliver of w whose columns lie one after the other, the k of a column next to each other. Returns how many k it
// has done.
template <class T>
HWY_INLINE std::int64_t pack_transposed(const T* from, std::int64_t column_step, std::int64_t depth,
                                        float* sliver) {
  if (!widens_columns<T>(column_step)) return 0;
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t whole = depth / kNeighbours<T> * kNeighbours<T>;
  for (std::int64_t line = 0; line < whole; line += kLine<T>)
    for (std::int64_t half = 0; half < 2; ++half) {
      prefetch_ahead(from + half * lanes * column_step + line, column_step, lanes);
      for (std::int64_t k = line; k < std::min(line + kLine<T>, whole); k += kNeighbours<T>) {
        float* to = sliver + (2 * k + half) * lanes;
        widen_columns(d, from + half * lanes * column_step + k, column_step,
                      [&](std::int64_t i, auto values)
                          HWY_ATTR { hn::StoreU(values, d, to + 2 * i * lanes); });
      }
    }
  return whole;
}

// Whole slivers of w whose columns are neighbours: row by row, as w lies in memory. Returns how many columns it has done.
template <class T>
HWY_INLINE std::int64_t pack_rows(const T* from, std::int64_t k_step, std::int64_t depth,
                                  std::int64_t columns, float* panel) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t width = 2 * lanes;
  const std::int64_t whole = columns / width * width;
  for (std::int64_t k = 0; k < depth; ++k, from += k_step)
    for (std::int64_t c = 0; c < whole; c += width) {
      float* to = panel + c * depth + k * width;
      hn::StoreU(load_widened(d, from + c), d, to);
      hn::StoreU(load_widened(d, from + c + lanes), d, to + lanes);
    }
  return whole;
}

// w[k, k + depth)[column, column + columns)
template <class T>
HWY_INLINE void pack_w(const MatmulTile& p, std::int64_t k, std::int64_t depth, std::int64_t column,
                       std::int64_t columns, float* panel) {
  const std::int64_t width = 2 * static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  const T* from = reinterpret_cast<const T*>(p.w) + k * p.w_k_step + column * p.w_column_step;
  std::int64_t c = p.w_column_step == 1 ? pack_rows(from, p.w_k_step, depth, columns, panel) : 0;
  for (; c < columns; c += width) {
    const T* sliver_from = from + c * p.w_column_step;
    float* sliver = panel + c * depth;
    const std::int64_t here = std::min(width, columns - c);
    const bool transposed = here == width && p.w_k_step == 1;
    const std::int64_t done = transposed ? pack_transposed(sliver_from, p.w_column_step, depth, sliver) : 0;
    pack_elements(sliver_from, p.w_k_step, p.w_column_step, done, depth, here, width, sliver);
  }
}
