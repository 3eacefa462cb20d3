// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/variant.h"

namespace moeyard::kernels {

enum class GroupScore : std::uint8_t { largest, sum_of_two_largest };

// The indices of the k largest of n values, largest first, equal values by rising index:
//
//   ids [k]   into value [n]
//
// With kept_groups < groups the values form groups of n / groups neighbours, and only those of the kept_groups groups
// of largest score (equal scores: smaller group) take part.
//
// 0 and -0 are equal; a NaN is smaller than everything else, and all NaNs are equal.
//   scratch   top_k_scratch_bytes(n, groups), aligned to 4
//
// 0 <= k <= values that take part; groups divides n; sum_of_two_largest needs groups of at least 2.
// Threads: calls with different scratch and ids may overlap in time. Errors: none.
struct TopK {
  const float* value;
  std::int64_t n;
  std::int64_t k;
  std::int64_t groups;
  std::int64_t kept_groups;
  GroupScore group_score;
  std::byte* scratch;
  std::int32_t* ids;
};

inline constexpr std::int64_t kTopKBlock = 16;  // one vector of the widest target

constexpr std::int64_t top_k_scratch_bytes(std::int64_t n, std::int64_t groups) {
  const std::int64_t values = n + kTopKBlock, padded_groups = groups + kTopKBlock;
  // Keys and maxima of blocks; keys, indices and scores of groups.
  return 4 * (values + (values > padded_groups ? values : padded_groups) + 3 * padded_groups);
}

using TopKFn = void (*)(const TopK&);

// The variants that this machine can run, fastest first.
std::span<const Variant<TopKFn>> top_k_variants();

}  // namespace moeyard::kernels
