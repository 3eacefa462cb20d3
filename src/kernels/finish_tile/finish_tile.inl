// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/vector_math.inl"

// What a tile needs to know of its columns, widened once.
struct Columns {
  float scale[kFinishColumns];
  float bias[kFinishColumns];
  std::int32_t integer_bias[kFinishColumns];
  std::int32_t offset[kFinishColumns];
  bool scaled, biased;
};

// Bits 37 to 45, signed.
HWY_INLINE std::int32_t offset_of(std::uint64_t packed) {
  const auto bits = static_cast<std::int32_t>(packed >> 37 & 0x1FF);
  return bits >= 0x100 ? bits - 0x200 : bits;
}

HWY_INLINE void read_columns(const FinishTile& p, Columns& columns) {
  columns.scaled = p.scale.data != nullptr;
  columns.biased = p.bias.data != nullptr && p.bias.dtype != ACL_INT32;
  const bool integer_bias = p.bias.data != nullptr && p.bias.dtype == ACL_INT32;
  for (std::int64_t c = 0; c < p.columns; ++c) {
    const std::int64_t at = c * p.bias.step;
    columns.integer_bias[c] = integer_bias ? reinterpret_cast<const std::int32_t*>(p.bias.data)[at] : 0;
    if (columns.biased && p.bias.dtype == ACL_FLOAT)
      columns.bias[c] = reinterpret_cast<const float*>(p.bias.data)[at];
    if (columns.biased && p.bias.dtype == ACL_FLOAT16)
      columns.bias[c] = to_float(reinterpret_cast<const Fp16*>(p.bias.data)[at]);
    if (columns.biased && p.bias.dtype == ACL_BF16)
      columns.bias[c] = to_float(reinterpret_cast<const Bf16*>(p.bias.data)[at]);
  }
  for (std::int64_t c = 0; c < p.columns; ++c) {
    const std::int64_t at = c * p.scale.step;
    columns.offset[c] = 0;
    if (columns.scaled && p.scale.dtype == ACL_FLOAT)
      columns.scale[c] = reinterpret_cast<const float*>(p.scale.data)[at];
    if (columns.scaled && p.scale.dtype == ACL_BF16)
      columns.scale[c] = to_float(reinterpret_cast<const Bf16*>(p.scale.data)[at]);
    if (columns.scaled && p.scale.dtype == ACL_UINT64) {
      const std::uint64_t packed = reinterpret_cast<const std::uint64_t*>(p.scale.data)[at];
      columns.scale[c] = std::bit_cast<float>(static_cast<std::uint32_t>(packed));
      columns.offset[c] = offset_of(packed);
    }
  }
}

HWY_INLINE void activate(Activation activation, float* row, std::int64_t n) {
  switch (activation) {
    case Activation::none:
      return;
    case Activation::relu:
      return map_row(row, 1, row, n, [](auto d, auto f) HWY_ATTR { return relu_of(d, f); });
    case Activation::gelu_tanh:
      return map_row(row, 1, row, n, [](auto d, auto f) HWY_ATTR { return gelu_tanh_of(d, f); });
    case Activation::fast_gelu:
      return map_row(row, 1, row, n,
                     [](auto d, auto f) HWY_ATTR { return silu_of(d, f, hn::Set(d, -1.702f)); });
    case Activation::silu:
      return map_row(row, 1, row, n,
                     [](auto d, auto f) HWY_ATTR { return silu_of(d, f, hn::Set(d, -1.0f)); });
  }
}

HWY_INLINE void round_row(const float* row, const std::int32_t* offset, std::int8_t* to, std::int64_t step,
                          std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float value = row[i] == row[i] ? row[i] : 0.0f;
    const float bounded = std::min(std::max(value, -1024.0f), 1024.0f);  // offsets are within 256
    const std::int32_t rounded = static_cast<std::int32_t>(std::nearbyint(bounded)) + offset[i];
    to[i * step] = static_cast<std::int8_t>(std::min(std::max(rounded, -128), 127));
  }
}

// Sum and integer bias of row r, as fp32; where the result is INT32, straight there.
HWY_INLINE bool start_row(const FinishTile& p, const Columns& columns, std::int64_t r, float* row) {
  if (!p.integer_sum) {
    std::copy_n(static_cast<const float*>(p.sum) + r * p.sum_stride, p.columns, row);
    return false;
  }
  const std::int32_t* sum = static_cast<const std::int32_t*>(p.sum) + r * p.sum_stride;
  const auto added = [&](std::int64_t c) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(sum[c]) +
                                     static_cast<std::uint32_t>(columns.integer_bias[c]));
  };
  if (p.to_dtype == ACL_INT32) {
    auto* to = reinterpret_cast<std::int32_t*>(p.to_rows[r]);
    for (std::int64_t c = 0; c < p.columns; ++c) to[c * p.to_step] = added(c);
    return true;
  }
  for (std::int64_t c = 0; c < p.columns; ++c) row[c] = static_cast<float>(added(c));
  return false;
}

void finish_tile(const FinishTile& p) {
  Columns columns;
  read_columns(p, columns);
  HWY_ALIGN float row[kFinishColumns];
  for (std::int64_t r = 0; r < p.rows; ++r) {
    if (start_row(p, columns, r, row)) continue;
    if (columns.scaled)
      for (std::int64_t c = 0; c < p.columns; ++c) row[c] = row[c] * columns.scale[c];
    if (p.row_scale != nullptr) {
      const float scale = p.row_scale[r * p.row_scale_step];
      for (std::int64_t c = 0; c < p.columns; ++c) row[c] = row[c] * scale;
    }
    if (columns.biased)
      for (std::int64_t c = 0; c < p.columns; ++c) row[c] = row[c] + columns.bias[c];
    activate(p.activation, row, p.columns);
    std::byte* to = p.to_rows[r];
    if (p.to_dtype == ACL_FLOAT) round_row(row, reinterpret_cast<float*>(to), p.to_step, p.columns);
    if (p.to_dtype == ACL_FLOAT16) round_row(row, reinterpret_cast<Fp16*>(to), p.to_step, p.columns);
    if (p.to_dtype == ACL_BF16) round_row(row, reinterpret_cast<Bf16*>(to), p.to_step, p.columns);
    if (p.to_dtype == ACL_INT8)
      round_row(row, columns.offset, reinterpret_cast<std::int8_t*>(to), p.to_step, p.columns);
  }
}
