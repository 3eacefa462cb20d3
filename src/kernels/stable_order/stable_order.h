// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace moeyard::kernels {

// Sorts items by their keys, equal keys in the order of the items:
//
//   item_of_row[r]  the item in place r of that order
//   row_of_item[i]  its inverse; null: not wanted
//
//   keys     [n], each in [0, key_limit)
//   scratch  [stable_order_scratch(n)]
//
// n < 2^31. Threads: spreads over those of parallel_for by itself. Errors: none.
struct StableOrder {
  const std::uint32_t* keys;
  std::int64_t n;
  std::int64_t key_limit;
  std::int32_t* item_of_row;
  std::int32_t* row_of_item;
  std::int32_t* scratch;
};

std::int64_t stable_order_scratch(std::int64_t n);
void stable_order(const StableOrder& p);

}  // namespace moeyard::kernels
