// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/routing/gate.h"

#include <algorithm>

#include "base/numbers.h"
#include "ops/rows.h"

namespace moeyard::ops {
namespace {

constexpr std::int64_t kAlign = 64;
constexpr std::int64_t kLogitsPerPiece = 8192;  // some 10 us of exponentials and comparisons
constexpr std::int64_t kPiecesPerThread = 4;    // so that threads that start late still find work

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

template <class T>
T* take(std::byte*& at, std::int64_t n) {
  T* taken = reinterpret_cast<T*>(at);
  at += aligned(n * static_cast<std::int64_t>(sizeof(T)));
  return taken;
}

void store(float value, float* to) { *to = value; }
void store(float value, Fp16* to) { *to = to_fp16(value); }
void store(float value, Bf16* to) { *to = to_bf16(value); }

template <class T>
void write_rounded(const float* from, const TensorView& to, std::int64_t row) {
  T* out = reinterpret_cast<T*>(row_begin(to, row));
  const std::int64_t n = to.shape[to.rank - 1];
  for (std::int64_t j = 0; j < n; ++j) store(from[j], out + j * step_of(to));
}

}  // namespace

GateScratch::Layout GateScratch::layout(std::int64_t rows, std::int64_t experts, std::int64_t topk,
                                        std::int64_t groups) {
  Layout made{rows, experts, topk, groups};
  const std::int64_t wanted = (rows * experts + kLogitsPerPiece - 1) / kLogitsPerPiece;
  made.pieces = std::min({rows, wanted, kPiecesPerThread * parallel_threads()});
  made.piece_bytes = 3 * aligned(experts * 4) + 2 * aligned(topk * 4) +
                     aligned(kernels::top_k_scratch_bytes(experts, groups));
  return made;
}

GateScratch::GateScratch(const Layout& layout, std::byte* workspace, std::int64_t piece) {
  std::byte* at = workspace + piece * layout.piece_bytes;
  score = take<float>(at, layout.experts);
  value = take<float>(at, layout.experts);
  bias = take<float>(at, layout.experts);
  weight = take<float>(at, layout.topk);
  ids = take<std::int32_t>(at, layout.topk);
  choosing = at;
}

void normalise_row(const TensorView& x, std::int64_t row, kernels::Normalisation kind, float* to) {
  static const kernels::NormaliseFn normalise = kernels::normalise_variants().front().run;
  normalise({row_begin(x, row), x.dtype, step_of(x), to, x.shape[x.rank - 1], kind});
}

void write_row(const float* from, const TensorView& to, std::int64_t row) {
  if (to.dtype == ACL_FLOAT) write_rounded<float>(from, to, row);
  if (to.dtype == ACL_FLOAT16) write_rounded<Fp16>(from, to, row);
  if (to.dtype == ACL_BF16) write_rounded<Bf16>(from, to, row);
}

void write_row(const std::int32_t* from, const TensorView& to, std::int64_t row) {
  auto* out = reinterpret_cast<std::int32_t*>(row_begin(to, row));
  const std::int64_t n = to.shape[to.rank - 1];
  for (std::int64_t j = 0; j < n; ++j) out[j * step_of(to)] = from[j];
}

}  // namespace moeyard::ops
