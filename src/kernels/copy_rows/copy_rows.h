// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/parallel.h"
#include "kernels/variant.h"

namespace moeyard::kernels {

// Copies every token's row to the places that its slots name:
//
//   *place_of_slot[t * slots_per_token + j] = rows[t]     for each place that is not null
//
//   rows           row_stride bytes from row to row, row_bytes bytes each
//   place_of_slot  [T * slots_per_token]     disjoint from each other and from rows
//
// streaming: write past the caches, for more data than they hold; the writes are in memory when the call
// returns. Errors: none. Threads: calls on disjoint tokens may overlap in time.
struct CopyRows {
  const std::byte* rows;
  std::int64_t row_stride;
  std::int64_t row_bytes;
  std::byte* const* place_of_slot;
  std::int64_t slots_per_token;
  bool streaming;
};

using CopyRowsFn = void (*)(const CopyRows&, Range tokens);

// The variants that this machine can run, fastest first.
std::span<const Variant<CopyRowsFn>> copy_rows_variants();

}  // namespace moeyard::kernels
