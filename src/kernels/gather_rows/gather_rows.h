// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/parallel.h"
#include "kernels/variant.h"

namespace moeyard::kernels {

// Copies to every row the one that its index names:
//
//   out[i] = rows[index[i]]     for each index in [0, row_count); else zeros, or out[i] keeps what it holds
//
//   rows   row_stride bytes from row to row, row_bytes bytes each
//   index  one per row of out
//   out    out_stride bytes from row to row, disjoint from rows
//
// Where a row has many readers, copy_rows reads it once. streaming: write past the caches, for more data than they
// hold; the writes are in memory when the call returns. Errors: none. Threads: calls on disjoint ranges of out may
// overlap in time.
struct GatherRows {
  const std::byte* rows;
  std::int64_t row_stride;
  std::int64_t row_count;
  std::int64_t row_bytes;
  const std::int32_t* index;
  std::byte* out;
  std::int64_t out_stride;
  bool zero_others;
  bool streaming;
};

using GatherRowsFn = void (*)(const GatherRows&, Range out_rows);

// The variants that this machine can run, fastest first.
std::span<const Variant<GatherRowsFn>> gather_rows_variants();

}  // namespace moeyard::kernels
