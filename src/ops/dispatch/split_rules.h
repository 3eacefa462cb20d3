// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// What the split operators demand beside what dispatch and combine do. Only 950 has them.
#pragma once
#include "ops/dispatch/ep_rules.h"

namespace moeyard::ops::ep_rules {

inline constexpr Products kSplit = kHost | k950;

template <class A>
constexpr auto split_attribute_rules() {
  return std::to_array<Rule>({
      rule<A>(Stage::attributes, k950, "epWorldSize", "be 2 or 8 in the split operators",
              [](const A& a) { return a.ep_world_size == 2 || a.ep_world_size == 8; }),
      rule<A>(Stage::attributes, k950, "moeExpertNum", "be 32 in the split operators",
              [](const A& a) { return a.moe_expert_num == 32; }),
      rule<A>(Stage::attributes, k950, "sharedExpertNum", "be 0 in the split operators",
              [](const A& a) { return a.shared_expert_num == 0; }),
      rule<A>(Stage::attributes, k950, "sharedExpertRankNum", "be 0 in the split operators",
              [](const A& a) { return a.shared_expert_rank_num == 0; }),
      rule<A>(Stage::attributes, k950, "commType", "be 2", [](const A& a) { return a.comm_type == 2; }),
      rule<A>(
          Stage::attributes, kEverywhere, "commAlg", "be null or empty",
          [](const A& a) { return a.comm_alg.empty(); }, "pass null"),
  });
}

template <class A>
constexpr auto split_shape_rules() {
  return std::to_array<Rule>({
      rule<A>(Stage::shapes, k950, "BS", "be 8, 16 or 256 in the split operators",
              [](const A& a) { return a.bs() == 8 || a.bs() == 16 || a.bs() == 256; }),
      rule<A>(Stage::shapes, k950, "K", "be 6 or 8 in the split operators",
              [](const A& a) { return a.topk() == 6 || a.topk() == 8; }),
      rule<A>(
          Stage::shapes, kHost, "K", "be at most moeExpertNum",
          [](const A& a) { return a.topk() <= a.moe_expert_num; }, "route each token to fewer experts"),
      rule<A>(Stage::shapes, k950, "H", "be 4096 or 7168 in the split operators",
              [](const A& a) { return a.hidden() == 4096 || a.hidden() == 7168; }),
  });
}

// Those of dispatch and combine, once x, expandX and expertIds are known to be matrices.
template <class A>
inline constexpr auto kSharedAttributes = attribute_rules<A>();
template <class A>
inline constexpr auto kSharedRest = join(group_rules<A>(), token_rules<A>(), shape_rules<A>());
template <class A>
inline constexpr auto kSplitRules = join(split_attribute_rules<A>(), split_shape_rules<A>());

// Whether a rule of dispatch and combine can be broken in an operator with such parameters and dimensions: it speaks of one
// of them, and neither of what halves don't have nor of what they allow less of.
template <class A, const auto& kParams, const auto& kDims>
constexpr bool can_be_broken(const Rule& rule) {
  const auto named = [&](const auto& one) { return one.name == rule.subject; };
  const bool is_about_it = std::any_of(std::begin(kParams), std::end(kParams), named) ||
                           std::any_of(std::begin(kDims), std::end(kDims), named);
  constexpr std::string_view kOfOthers[] = {"tpWorldSize", "zeroExpertNum", "commAlg "};
  const bool is_of_others =
      std::any_of(std::begin(kOfOthers), std::end(kOfOthers),
                  [&](std::string_view name) { return rule.must.find(name) != std::string_view::npos; });
  const std::uint8_t on = rule.on.bits & kSplit.bits;
  const bool is_narrower = std::any_of(kSplitRules<A>.begin(), kSplitRules<A>.end(), [&](const Rule& own) {
    return own.on.bits == k950.bits && own.subject == rule.subject;
  });
  return on != 0 && is_about_it && !is_of_others && !(on == k950.bits && is_narrower);
}

template <class A, const auto& kRules, const auto& kParams, const auto& kDims>
constexpr auto rules_about() {
  constexpr auto kWanted = can_be_broken<A, kParams, kDims>;
  std::array<Rule, std::count_if(kRules.begin(), kRules.end(), kWanted)> kept{};
  std::copy_if(kRules.begin(), kRules.end(), kept.begin(), kWanted);
  return kept;
}

// What of all these concerns an operator with such parameters and dimensions. `own_attributes` and `own_shapes` are its own.
template <class A, const auto& kParams, const auto& kDims, const auto& kOwnFirst, const auto& kOwnAttributes,
          const auto& kOwnShapes>
constexpr auto split_rules() {
  return join(null_rules<A>(), kOwnFirst, split_attribute_rules<A>(),
              rules_about<A, kSharedAttributes<A>, kParams, kDims>(), kOwnAttributes,
              rules_about<A, kSharedRest<A>, kParams, kDims>(), split_shape_rules<A>(), kOwnShapes);
}

inline constexpr contract::Codes kTilingCodes = {.format = ACLNN_ERR_INNER_TILING_ERROR,
                                                 .shape = ACLNN_ERR_INNER_TILING_ERROR,
                                                 .rule = ACLNN_ERR_INNER_TILING_ERROR};

}  // namespace moeyard::ops::ep_rules
