// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ops/routing/row_moves.h"
#include "ops/routing/slot_order.h"

namespace moeyard::ops {

// Adds up rows that each name a token, in any order and number, token by token and by rising row: what the padded modes
// do. A row with an id that is no token counts nowhere.
class TokenSums {
 public:
  TokenSums() = default;
  TokenSums(std::int64_t rows, Scratch& scratch)
      : order_(rows, scratch), terms_(scratch.add<kernels::Term>(rows)) {}

  const SlotOrder& order() const { return order_; }
  // Sorts the rows by their token ids [rows].
  void sort(const std::int32_t* token_ids, std::byte* workspace) const { order_.sort(token_ids, workspace); }
  // out[t] = sum of weight_of(row) * rows[row], after sort().
  template <class WeightOf>
  void add_up(const Matrix& rows, const std::int32_t* token_ids, WeightOf&& weight_of, const Matrix& out,
              const RowSums& sums, std::byte* workspace) const {
    kernels::Term* terms = terms_.in(workspace);
    const std::int32_t* order = order_.slot_of_row(workspace);
    parallel_for(order_.slots(), rows_per_task(sizeof(kernels::Term)), [&](Range range) {
      for (std::int64_t k = range.begin; k < range.end; ++k)
        terms[k] = weighted_row(rows.row(order[k]), weight_of(order[k]));
    });
    const std::int64_t rows_per_token = order_.slots() / std::max<std::int64_t>(out.rows, 1) + 1;
    parallel_for(out.rows, rows_per_task(rows_per_token * out.row_bytes), [&](Range tokens) {
      std::int64_t begin = order_.rows_below(token_ids, tokens.begin, workspace);
      for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
        std::int64_t end = begin;
        while (end < order_.slots() && token_ids[order[end]] == t) ++end;
        sums(t, terms + begin, end - begin);
        begin = end;
      }
    });
  }

 private:
  SlotOrder order_;
  Part<kernels::Term> terms_;
};

}  // namespace moeyard::ops
