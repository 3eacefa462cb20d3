// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/routing/row_moves.h"

#include "kernels/gather_rows/gather_rows.h"

namespace moeyard::ops {

void gather_rows(const Matrix& from, const std::int32_t* index, const Matrix& to, Others others) {
  static const kernels::GatherRowsFn run = kernels::gather_rows_variants().front().run;
  const kernels::GatherRows rows{from.data,      from.stride, from.rows, to.row_bytes,
                                 index,          to.data,     to.stride, others == Others::zero,
                                 is_streamed(to)};
  parallel_for(to.rows, rows_per_task(to.row_bytes), [&](Range range) { run(rows, range); });
}

RowScatter::RowScatter(const Matrix& to)
    : to_(to), copy_rows_(kernels::copy_rows_variants().front().run), streaming_(is_streamed(to)) {}

void RowScatter::copy(const std::byte* row, std::byte* const* places, std::size_t count) const {
  copy_rows_({row, 0, to_.row_bytes, places, static_cast<std::int64_t>(count), streaming_}, {0, 1});
}

RowSums::RowSums(const Matrix& out, aclDataType dtype, bool round_products)
    : out_(out),
      dtype_(dtype),
      round_products_(round_products),
      streaming_(is_streamed(out)),
      weighted_sum_(kernels::weighted_sum_variants().front().run) {}

void RowSums::operator()(std::int64_t out_row, const kernels::Term* terms, std::int64_t count) const {
  const auto terms_of_token = static_cast<std::int32_t>(count);
  weighted_sum_({terms, count, &terms_of_token, dtype_, out_.columns, out_.row(out_row), 0, streaming_,
                 round_products_},
                {0, 1});
}

void add_up_slots(const Matrix& rows, const std::int32_t* index, std::int64_t topk, kernels::Term* terms,
                  const RowSums& sums, const Matrix& out) {
  parallel_for(out.rows, rows_per_task((topk + 1) * out.row_bytes), [&](Range tokens) {
    for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
      kernels::Term* const first = terms + t * topk;
      kernels::Term* term = first;
      for (std::int64_t slot = t * topk; slot < (t + 1) * topk; ++slot)
        if (const std::int64_t row = index[slot]; 0 <= row && row < rows.rows)
          *term++ = weighted_row(rows.row(row), 1);
      sums(t, first, term - first);
    }
  });
}

}  // namespace moeyard::ops
