// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/streams.inl"

void gather_rows(const GatherRows& p, Range out_rows) {
  for (std::int64_t i = out_rows.begin; i < out_rows.end; ++i) {
    const std::int64_t row = p.index[i];
    std::byte* to = p.out + i * p.out_stride;
    if (0 <= row && row < p.row_count)
      copy_row(to, p.rows + row * p.row_stride, p.row_bytes, p.streaming);
    else if (p.zero_others)
      std::memset(to, 0, static_cast<std::size_t>(p.row_bytes));
  }
  if (p.streaming) hwy::FlushStream();
}
