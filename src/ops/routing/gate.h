// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/parallel.h"
#include "base/tensor_view.h"
#include "kernels/normalise/normalise.h"
#include "kernels/top_k/top_k.h"

namespace moeyard::ops {

// What all gating operators share: scores of a row of router logits, the choice of k experts, and the weights of the
// chosen ones. An operator calls the steps for each row of a piece with the piece's scratch.

// fp32 rows and indices of one row at a time, in the workspace. A piece is some rows that one thread goes through.
class GateScratch {
 public:
  // How a problem is cut: rows in pieces, and the bytes of workspace that each needs.
  struct Layout {
    std::int64_t rows = 0, experts = 0, topk = 0, groups = 1;
    std::int64_t pieces = 0;
    std::int64_t piece_bytes = 0;
    std::int64_t workspace_bytes() const { return pieces * piece_bytes; }
    Range rows_of(std::int64_t piece) const { return {rows * piece / pieces, rows * (piece + 1) / pieces}; }
  };
  static Layout layout(std::int64_t rows, std::int64_t experts, std::int64_t topk, std::int64_t groups);

  GateScratch(const Layout& layout, std::byte* workspace, std::int64_t piece);
  float* score;         // [experts] normalised logits
  float* value;         // [experts] what experts are chosen by
  float* bias;          // [experts] widened
  float* weight;        // [topk]
  std::int32_t* ids;    // [topk]
  std::byte* choosing;  // top_k's own
};

// Calls body(scratch, rows) for every piece, in parallel.
template <class Body>
void for_each_piece(const GateScratch::Layout& layout, std::byte* workspace, Body&& body) {
  parallel_for(layout.pieces, 1, [&](Range pieces) {
    for (std::int64_t piece = pieces.begin; piece < pieces.end; ++piece)
      body(GateScratch(layout, workspace, piece), layout.rows_of(piece));
  });
}

// One row of a tensor as fp32 scores.
void normalise_row(const TensorView& x, std::int64_t row, kernels::Normalisation kind, float* to);

// to[j] = round to the tensor's dtype of from[j], for one row of FP32, FP16 or BF16.
void write_row(const float* from, const TensorView& to, std::int64_t row);
void write_row(const std::int32_t* from, const TensorView& to, std::int64_t row);  // INT32

}  // namespace moeyard::ops
