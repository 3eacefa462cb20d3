// Moeyard. SPDX-License-Identifier: Apache-2.0
// Softmax, the root mean square norm and the layer norm, rounded once.
#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "kernels/normalise/normalise.h"
#include "ops/atb/lines.h"
#include "ops/atb/operation.h"
#include "ops/typed.h"

namespace moeyard::ops::atb {
namespace {

constexpr std::int64_t kElementsPerTask = 8192;

std::int64_t softmax_workspace(const Call& call) { return call[0].numel() * 4; }

Status softmax(const Call& call, std::byte* workspace) {
  static const kernels::NormaliseFn normalise = kernels::normalise_variants().front().run;
  const TensorView &x = call[0], &out = call[1];
  const Lines lines(x, call.integers[0], call.integers[1]);
  parallel_for(lines.count(), lines.grain(), [&](Range range) {
    for (std::int64_t line = range.begin; line < range.end; ++line) {
      const std::int64_t at = lines.begin(line);
      float* result = reinterpret_cast<float*>(workspace) + line * lines.n;
      normalise({x.data + bytes_of(x.dtype, at), x.dtype, lines.inner, result, lines.n,
                 kernels::Normalisation::softmax});
      for (std::int64_t i = 0; i < lines.n; ++i)
        store_number(result[i], out.data + bytes_of(out.dtype, at + i * lines.inner), out.dtype);
    }
  });
  return {};
}

Status rms_norm(const Call& call, std::byte* /*workspace*/) {
  const auto summands = static_cast<std::size_t>(call.integers[0]) + 1;
  const TensorView &x = call[0], &gamma = call[summands], &out = call[summands + 1];
  const bool has_sum = call.integers[1] != 0, has_rstd = call.integers[2] != 0;
  const aclDataType dtype = x.dtype;
  const std::int64_t n = gamma.numel(), rows = x.numel() / n;
  const auto sum_at = [&](std::int64_t row, std::int64_t i) {
    float sum = 0;
    for (std::size_t s = 0; s < summands; ++s)  // a bias has one row
      sum += load_number(call[s].data + bytes_of(dtype, call[s].numel() == n ? i : row * n + i), dtype);
    return sum;
  };
  parallel_for(rows, std::max<std::int64_t>(1, kElementsPerTask / n), [&](Range range) {
    for (std::int64_t row = range.begin; row < range.end; ++row) {
      double squares = 0;
      for (std::int64_t i = 0; i < n; ++i) squares += static_cast<double>(sum_at(row, i)) * sum_at(row, i);
      const double factor = 1 / std::sqrt(squares / static_cast<double>(n) + call.numbers[0]);
      if (has_rstd) call.last().begin_as<float>()[row] = static_cast<float>(factor);
      for (std::int64_t i = 0; i < n; ++i) {
        const float sum = sum_at(row, i);
        const std::int64_t at = bytes_of(dtype, row * n + i);
        const double weight = load_number(gamma.data + bytes_of(dtype, i), dtype) + call.numbers[1];
        store_number(static_cast<float>(sum * factor * weight), out.data + at, dtype);
        if (has_sum) store_number(sum, call.last().data + at, dtype);
      }
    }
  });
  return {};
}

// Inputs x, gamma, beta; gamma and beta have the last dimensions of x. integers[0]: the first axis of those that belong together.
Status layer_norm(const Call& call, std::byte* /*workspace*/) {
  const TensorView &x = call[0], &gamma = call[1], &beta = call[2], &out = call[3];
  const aclDataType dtype = x.dtype;
  const Lines lines(x, call.integers[0], x.rank);
  const std::int64_t weights = gamma.numel();
  parallel_for(lines.count(), lines.grain(), [&](Range range) {
    for (std::int64_t line = range.begin; line < range.end; ++line) {
      const std::int64_t begin = line * lines.n;
      const auto value = [&](std::int64_t i) {
        return double{load_number(x.data + bytes_of(dtype, begin + i), dtype)};
      };
      double sum = 0, squares = 0;
      for (std::int64_t i = 0; i < lines.n; ++i) sum += value(i);
      const double mean = sum / static_cast<double>(lines.n);
      for (std::int64_t i = 0; i < lines.n; ++i) squares += (value(i) - mean) * (value(i) - mean);
      const double factor = 1 / std::sqrt(squares / static_cast<double>(lines.n) + call.numbers[0]);
      for (std::int64_t i = 0; i < lines.n; ++i) {
        const std::int64_t weight = bytes_of(dtype, (begin + i) % weights);
        store_number(static_cast<float>((value(i) - mean) * factor * load_number(gamma.data + weight, dtype) +
                                        load_number(beta.data + weight, dtype)),
                     out.data + bytes_of(dtype, begin + i), dtype);
      }
    }
  });
  return {};
}

}  // namespace

std::span<const Entry> norms() {
  static constexpr Entry kEntries[] = {
      {MOEYARD_ATB_SOFTMAX, softmax, softmax_workspace},
      {MOEYARD_ATB_RMS_NORM, rms_norm},
      {MOEYARD_ATB_LAYER_NORM, layer_norm},
  };
  return kEntries;
}

}  // namespace moeyard::ops::atb
