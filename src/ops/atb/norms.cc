// Moeyard. SPDX-License-Identifier: Apache-2.0
// Softmax and the root mean square norm, in fp32 and rounded once.
#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "kernels/normalise/normalise.h"
#include "ops/atb/operation.h"
#include "ops/typed.h"

namespace moeyard::ops::atb {
namespace {

constexpr std::int64_t kElementsPerTask = 8192;

// [outer, n, inner], a row being the n elements that belong together.
struct Rows {
  std::int64_t outer = 1, n = 1, inner = 1;
  Rows(const TensorView& view, std::int64_t first, std::int64_t last) {
    for (int axis = 0; axis < view.rank; ++axis)
      (axis < first ? outer : axis < last ? n : inner) *= view.dim(axis);
  }
};

std::int64_t softmax_workspace(const Call& call) { return call[0].numel() * 4; }

Status softmax(const Call& call, std::byte* workspace) {
  static const kernels::NormaliseFn normalise = kernels::normalise_variants().front().run;
  const TensorView &x = call[0], &out = call[1];
  const Rows rows(x, call.integers[0], call.integers[1]);
  parallel_for(rows.outer * rows.inner, std::max<std::int64_t>(1, kElementsPerTask / rows.n),
               [&](Range range) {
                 for (std::int64_t row = range.begin; row < range.end; ++row) {
                   const std::int64_t at = row / rows.inner * rows.n * rows.inner + row % rows.inner;
                   float* result = reinterpret_cast<float*>(workspace) + row * rows.n;
                   normalise({x.data + bytes_of(x.dtype, at), x.dtype, rows.inner, result, rows.n,
                              kernels::Normalisation::softmax});
                   for (std::int64_t i = 0; i < rows.n; ++i)
                     store_number(result[i], out.data + bytes_of(out.dtype, at + i * rows.inner), out.dtype);
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

}  // namespace

std::span<const Entry> norms() {
  static constexpr Entry kEntries[] = {
      {MOEYARD_ATB_SOFTMAX, softmax, softmax_workspace},
      {MOEYARD_ATB_RMS_NORM, rms_norm},
  };
  return kEntries;
}

}  // namespace moeyard::ops::atb
