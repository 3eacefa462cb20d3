// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/streams.inl"

void copy_rows(const CopyRows& p, Range tokens) {
  for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
    const std::byte* row = p.rows + t * p.row_stride;
    // Slots innermost: the row comes from memory once and from the nearest cache for its other places.
    for (std::int64_t j = 0; j < p.slots_per_token; ++j) {
      std::byte* place = p.place_of_slot[t * p.slots_per_token + j];
      if (place != nullptr) copy_row(place, row, p.row_bytes, p.streaming);
    }
  }
  if (p.streaming) hwy::FlushStream();
}
