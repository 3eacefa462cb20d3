// Moeyard. SPDX-License-Identifier: Apache-2.0
// To INT8 and back: round(x / scale) + offset, to nearest even and cut to [-128, 127].
#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "ops/atb/lines.h"
#include "ops/atb/operation.h"
#include "ops/typed.h"

namespace moeyard::ops::atb {
namespace {

std::int8_t to_int8(float value) {
  if (std::isnan(value)) return 0;
  return static_cast<std::int8_t>(std::clamp(std::nearbyint(value), -128.0f, 127.0f));
}

constexpr std::int64_t kElementsPerTask = 8192;

Status quantise(const Call& call, std::byte* /*workspace*/) {
  const TensorView &x = call[0], &out = call[1];
  const auto scale = static_cast<float>(call.numbers[0]), offset = static_cast<float>(call.numbers[1]);
  parallel_for(x.numel(), kElementsPerTask, [&](Range range) {
    for (std::int64_t i = range.begin; i < range.end; ++i)
      out.begin_as<std::int8_t>()[i] =
          to_int8(std::nearbyint(load_number(x.data + bytes_of(x.dtype, i), x.dtype) / scale) + offset);
  });
  return {};
}

// Scales and offsets of the last dimension, or one of all; no offsets: 0.
struct Channels {
  explicit Channels(const Call& call) : scales(call[1]), offsets(call[2]), n(call[1].numel()) {}
  float scale(std::int64_t i) const {
    return load_number(scales.data + bytes_of(scales.dtype, i % n), scales.dtype);
  }
  float offset(std::int64_t i) const {
    return offsets.present() ? offsets.begin_as<std::int8_t>()[i % n] : 0.0f;
  }
  const TensorView &scales, &offsets;
  const std::int64_t n;
};

Status quantise_per_channel(const Call& call, std::byte* /*workspace*/) {
  const TensorView &x = call[0], &out = call[3];
  const Channels channels(call);
  parallel_for(x.numel(), kElementsPerTask, [&](Range range) {
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      const float value = load_number(x.data + bytes_of(x.dtype, i), x.dtype);
      out.begin_as<std::int8_t>()[i] =
          to_int8(std::nearbyint(value / channels.scale(i)) + channels.offset(i));
    }
  });
  return {};
}

Status dequantise_per_channel(const Call& call, std::byte* /*workspace*/) {
  const TensorView &x = call[0], &out = call[3];
  const Channels channels(call);
  parallel_for(x.numel(), kElementsPerTask, [&](Range range) {
    for (std::int64_t i = range.begin; i < range.end; ++i)
      store_number((x.begin_as<std::int8_t>()[i] - channels.offset(i)) * channels.scale(i),
                   out.data + bytes_of(out.dtype, i), out.dtype);
  });
  return {};
}

// A row of fp32 values with a scale of its own: its largest value becomes 127. A row of zeros has the scale 0.
void quantise_row(const float* values, std::int64_t n, std::int8_t* to, float* scale) {
  float largest = 0;
  for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(values[i]));
  *scale = largest / 127.0f;
  for (std::int64_t i = 0; i < n; ++i) to[i] = largest == 0 ? 0 : to_int8(values[i] / *scale);
}

// With an offset, the row's smallest value becomes -128 and its largest 127.
void quantise_row(const float* values, std::int64_t n, std::int8_t* to, float* scale, float* offset) {
  const auto [least, most] = std::minmax_element(values, values + n);
  *scale = (*most - *least) / 255.0f;
  *offset = *scale == 0 ? 0.0f : 127.0f - *most / *scale;
  for (std::int64_t i = 0; i < n; ++i) to[i] = *scale == 0 ? 0 : to_int8(values[i] / *scale + *offset);
}

std::int64_t wide_workspace(const Call& call) { return call[1].numel() * 4; }

// integers[0]: whether rows have an offset.
Status quantise_rows(const Call& call, std::byte* workspace) {
  const TensorView& x = call[0];
  const std::int64_t n = x.dim(x.rank - 1);
  parallel_for(x.numel() / n, std::max<std::int64_t>(1, kElementsPerTask / n), [&](Range range) {
    for (std::int64_t row = range.begin; row < range.end; ++row) {
      float* values = reinterpret_cast<float*>(workspace) + row * n;
      for (std::int64_t i = 0; i < n; ++i)
        values[i] = load_number(x.data + bytes_of(x.dtype, row * n + i), x.dtype);
      std::int8_t* to = call[1].begin_as<std::int8_t>() + row * n;
      float* scale = call[2].begin_as<float>() + row;
      if (call.integers[0] != 0)
        quantise_row(values, n, to, scale, call[3].begin_as<float>() + row);
      else
        quantise_row(values, n, to, scale);
    }
  });
  return {};
}

Status quantise_swiglu(const Call& call, std::byte* workspace) {
  const TensorView& x = call[0];
  const std::int64_t n = x.dim(x.rank - 1) / 2;
  parallel_for(x.numel() / n / 2, std::max<std::int64_t>(1, kElementsPerTask / n), [&](Range range) {
    for (std::int64_t row = range.begin; row < range.end; ++row) {
      float* values = reinterpret_cast<float*>(workspace) + row * n;
      const std::byte* from = x.data + bytes_of(x.dtype, row * 2 * n);
      for (std::int64_t i = 0; i < n; ++i) {
        const double a = load_number(from + bytes_of(x.dtype, i), x.dtype),
                     b = load_number(from + bytes_of(x.dtype, n + i), x.dtype);
        values[i] = static_cast<float>(a / (1 + std::exp(-a)) * b);
      }
      quantise_row(values, n, call[1].begin_as<std::int8_t>() + row * n, call[2].begin_as<float>() + row);
    }
  });
  return {};
}

}  // namespace

std::span<const Entry> quantising() {
  static constexpr Entry kEntries[] = {
      {MOEYARD_ATB_QUANTISE, quantise},
      {MOEYARD_ATB_QUANTISE_PER_CHANNEL, quantise_per_channel},
      {MOEYARD_ATB_DEQUANTISE_PER_CHANNEL, dequantise_per_channel},
      {MOEYARD_ATB_QUANTISE_ROWS, quantise_rows, wide_workspace},
      {MOEYARD_ATB_QUANTISE_SWIGLU, quantise_swiglu, wide_workspace},
  };
  return kEntries;
}

}  // namespace moeyard::ops::atb
