// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <numeric>

#include "aclnnop/aclnn_moe_token_permute_with_routing_map.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_routing_map.h"
#include "bench/permute/scenario.h"

namespace bench::permute {

Scenario::Scenario() : map(kTokens * kExperts, 0), row_of_slot(kRows) {
  std::mt19937 random(3);
  std::vector<std::int64_t> experts(kExperts);
  std::iota(experts.begin(), experts.end(), 0);
  for (std::int64_t t = 0; t < kTokens; ++t) {
    std::shuffle(experts.begin(), experts.end(), random);
    for (std::int64_t j = 0; j < kTopk; ++j)
      map[static_cast<std::size_t>(t * kExperts + experts[static_cast<std::size_t>(j)])] = 1;
  }
  std::vector<std::int64_t> used(kTokens, 0);
  for (std::int64_t e = 0; e < kExperts; ++e)
    for (std::int64_t t = 0; t < kTokens; ++t)
      if (map[static_cast<std::size_t>(t * kExperts + e)] != 0) {
        const auto slot = t * kTopk + used[static_cast<std::size_t>(t)]++;
        row_of_slot[static_cast<std::size_t>(slot)] = static_cast<std::int32_t>(token_of_row.size());
        token_of_row.push_back(static_cast<std::int32_t>(t));
      }
}

const Scenario& scenario() {
  static const Scenario one;
  return one;
}

Ours::Ours()
    : tokens({kTokens, kHidden}, ACL_BF16, 2),
      map({kTokens, kExperts}, ACL_BOOL, 1),
      probs({kTokens, kExperts}, ACL_BF16, 2),
      rows({kRows, kHidden}, ACL_BF16, 2),
      row_probs({kRows}, ACL_BF16, 2),
      index({kRows}, ACL_INT32, 4),
      out({kTokens, kHidden}, ACL_BF16, 2),
      out_index({kRows}, ACL_INT32, 4),
      token_id({kRows}, ACL_INT32, 4),
      slot_probs({kRows}, ACL_BF16, 2) {
  fill<moeyard::Bf16>(tokens), fill<moeyard::Bf16>(probs);
  std::memcpy(map.data<char>(), scenario().map.data(), scenario().map.size());
}

void Ours::permute() {
  stream.run(
      [&](std::uint64_t* size, aclOpExecutor** executor) {
        return aclnnMoeTokenPermuteWithRoutingMapGetWorkspaceSize(tokens, map, probs, kRows, false, rows,
                                                                  row_probs, index, size, executor);
      },
      aclnnMoeTokenPermuteWithRoutingMap);
}

void Ours::unpermute() {
  stream.run(
      [&](std::uint64_t* size, aclOpExecutor** executor) {
        return aclnnMoeTokenUnpermuteWithRoutingMapGetWorkspaceSize(
            rows, index, map, probs, false, nullptr, out, out_index, token_id, slot_probs, size, executor);
      },
      aclnnMoeTokenUnpermuteWithRoutingMap);
}

}  // namespace bench::permute
