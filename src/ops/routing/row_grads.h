// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstring>

#include "kernels/scale_dot/scale_dot.h"
#include "ops/routing/row_moves.h"

namespace moeyard::ops {

// How a slot used a row: out[token] += weight * (rows[row] + bias).
struct RowUse {
  std::int64_t token;
  std::int64_t row;  // not a row of the matrix: none, the bias alone
  float weight;
  const std::byte* bias;  // null: none
};

// Gradients of sums of weighted rows:
//
//   rows_grad[row]  = grad[token] * weight, of the last slot that names the row; zeros where none does
//   dot_of(slot)    = sum over h of (rows[row][h] + bias[h]) * grad[token][h]
class RowGrads {
 public:
  RowGrads() = default;
  RowGrads(std::int64_t rows, Scratch& scratch) : slot_of_row_(scratch.add<std::int32_t>(rows)) {}

  // row_of(slot) gives a row, or any other number for none; use_of(slot) the whole, for all slots; dot(slot, value)
  // takes a weight's gradient.
  template <class RowOf, class UseOf, class Dot>
  void with_weights(std::int64_t slots, RowOf&& row_of, UseOf&& use_of, const Matrix& grad,
                    const Matrix& rows, const Matrix& rows_grad, aclDataType dtype, Dot&& dot,
                    std::byte* workspace) const {
    static const kernels::ScaleDotFn scale_dot = kernels::scale_dot_variants().front().run;
    const std::int32_t* owner = find_owners(slots, row_of, rows_grad.rows, workspace);
    parallel_for(slots, rows_per_task(2 * grad.row_bytes), [&](Range range) {
      for (std::int64_t slot = range.begin; slot < range.end; ++slot) {
        const RowUse use = use_of(slot);
        const bool has_row = 0 <= use.row && use.row < rows_grad.rows;
        std::byte* out = has_row && owner[use.row] == slot ? rows_grad.row(use.row) : nullptr;
        dot(slot, scale_dot({grad.row(use.token), has_row ? rows.row(use.row) : nullptr, use.bias, use.weight,
                             out, dtype, grad.columns}));
      }
    });
    parallel_for(rows_grad.rows, rows_per_task(rows_grad.row_bytes), [&](Range range) {
      for (std::int64_t row = range.begin; row < range.end; ++row)
        if (owner[row] < 0) std::memset(rows_grad.row(row), 0, static_cast<std::size_t>(rows_grad.row_bytes));
    });
  }

  // All weights 1: copies.
  template <class RowOf, class TokenOf>
  void without_weights(std::int64_t slots, RowOf&& row_of, TokenOf&& token_of, const Matrix& grad,
                       const Matrix& rows_grad, std::byte* workspace) const {
    std::int32_t* index = find_owners(slots, row_of, rows_grad.rows, workspace);
    for (std::int64_t row = 0; row < rows_grad.rows; ++row)
      if (index[row] >= 0) index[row] = static_cast<std::int32_t>(token_of(index[row]));
    gather_rows(grad, index, rows_grad, Others::zero);
  }

 private:
  template <class RowOf>
  std::int32_t* find_owners(std::int64_t slots, RowOf&& row_of, std::int64_t rows,
                            std::byte* workspace) const {
    std::int32_t* owner = slot_of_row_.in(workspace);
    std::fill_n(owner, rows, -1);
    for (std::int64_t slot = 0; slot < slots; ++slot)
      if (const std::int64_t row = row_of(slot); 0 <= row && row < rows)
        owner[row] = static_cast<std::int32_t>(slot);
    return owner;
  }

  Part<std::int32_t> slot_of_row_;
};

}  // namespace moeyard::ops
