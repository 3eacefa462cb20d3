// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// What dispatch and combine demand alike of the attributes that they share, as rules of their contracts.
#pragma once
#include <algorithm>
#include <array>

#include "comm/registry.h"
#include "contract/contract.h"
#include "ops/dispatch/ep_group.h"
#include "ops/dispatch/ep_layout.h"

namespace moeyard::ops::ep_rules {

using contract::Figure;
using contract::figure;
using contract::Rule;
using contract::rule;
using contract::Stage;

inline constexpr std::int64_t kMaxInt32 = INT64_C(0x7FFFFFFF);
inline constexpr Products kMeshes =
    kHost | kA3 | k950;  // products that have shared experts, and triples in assistInfo

template <class T, std::size_t... kCounts>
constexpr auto join(const std::array<T, kCounts>&... parts) {
  std::array<T, (kCounts + ...)> all{};
  std::size_t at = 0;
  const auto append = [&](const auto& part) {
    for (const T& item : part) all[at++] = item;
  };
  (append(parts), ...);
  return all;
}

inline bool is_hierarchy(const EpAttributes& a) { return algorithm_of(a) == CommAlg::hierarchy; }
inline bool in_range(std::int64_t value, std::int64_t low, std::int64_t high) {
  return low <= value && value <= high;
}

// Experts of this rank, and rows that it must have room for. In a shrunk group it may be set aside for shared experts or
// not, whatever it was before.
template <class A>
std::int64_t local_experts(const A& a) {
  const EpLayout layout(a);
  return a.elastic_info.present() ? layout.width() : layout.experts_on(a.ep_rank_id);
}
template <class A>
std::int64_t capacity(const A& a) {
  const EpLayout layout(a);
  const auto of_rank = [&](std::int64_t rank) {
    return layout.capacity(rank, a.bs(), a.topk(), a.global_bs);
  };
  if (!a.elastic_info.present()) return of_rank(a.ep_rank_id);
  return std::max(of_rank(0), of_rank(a.ep_world_size - 1));
}

// Ranks whose rows this one receives beside its own.
template <class A>
std::int64_t tp_ranks(const A& a) {
  return a.tp_world_size == 2 ? 2 : 1;
}

// A has bs(), topk(), hidden(), active_mask and elastic_info beside the attributes.
//
// Names, sizes of the group, experts: rules of Stage::nulls and Stage::attributes.
template <class A>
constexpr auto null_rules() {
  return std::to_array<Rule>({
      rule<A>(
          Stage::nulls, kEverywhere, "groupEp", "name a communicator",
          [](const A& a) { return !a.group_ep.empty(); }, "pass what HcclGetCommName gives",
          ACLNN_ERR_PARAM_NULLPTR),
  });
}

template <class A>
constexpr auto attribute_rules() {
  return std::to_array<Rule>({
      rule<A>(Stage::attributes, kHost, "epWorldSize", "be at least 1",
              [](const A& a) { return a.ep_world_size >= 1; }),
      rule<A>(Stage::attributes, kHost, "epWorldSize", "be below 2^31",
              [](const A& a) { return a.ep_world_size <= kMaxInt32; }),
      rule<A>(
          Stage::attributes, kA2, "epWorldSize",
          "be in [1, 384], with more than 8 ranks a multiple of 8, and at most 64 with the hierarchy "
          "algorithm",
          [](const A& a) {
            const std::int64_t w = a.ep_world_size;
            return in_range(w, 1, 384) && (w <= 8 || w % 8 == 0) && (w <= 64 || !is_hierarchy(a));
          },
          "make a communicator of one of these sizes, or set MOEYARD_SOC to the product that the program "
          "runs on"),
      rule<A>(
          Stage::attributes, kA3, "epWorldSize",
          "be in [2, 768], with commAlg hierarchy a multiple of 16 in [16, 256]",
          [](const A& a) {
            const std::int64_t w = a.ep_world_size;
            return is_hierarchy(a) ? in_range(w, 16, 256) && w % 16 == 0 : in_range(w, 2, 768);
          },
          "make a communicator of one of these sizes, or pass another commAlg"),
      rule<A>(
          Stage::attributes, k950, "epWorldSize", "be in [2, 1024]",
          [](const A& a) { return in_range(a.ep_world_size, 2, 1024); },
          "make a communicator of one of these sizes"),
      rule<A>(Stage::attributes, kEverywhere, "epRankId", "be in [0, epWorldSize)",
              [](const A& a) { return in_range(a.ep_rank_id, 0, a.ep_world_size - 1); }),
      rule<A>(
          Stage::attributes, kA2 | k950, "tpWorldSize", "be 0 or 1, as this product has no TP domain",
          [](const A& a) { return in_range(a.tp_world_size, 0, 1); }, "pass 0"),
      rule<A>(Stage::attributes, kHost | kA3, "tpWorldSize", "be in [0, 2]",
              [](const A& a) { return in_range(a.tp_world_size, 0, 2); }),
      rule<A>(Stage::attributes, kHost | kA3, "tpRankId", "be 0 or 1 with tpWorldSize 2",
              [](const A& a) { return a.tp_world_size != 2 || in_range(a.tp_rank_id, 0, 1); }),
      rule<A>(
          Stage::attributes, kHost | kA3, "groupTp",
          "name another communicator than groupEp with tpWorldSize 2",
          [](const A& a) {
            return a.tp_world_size != 2 || (!a.group_tp.empty() && a.group_tp != a.group_ep);
          },
          "pass that of the two ranks of the TP domain"),
      rule<A>(Stage::attributes, kHost | kA3, "commAlg", "not be fullmesh_v2 or hierarchy with tpWorldSize 2",
              [](const A& a) {
                const CommAlg algorithm = algorithm_of(a);
                return a.tp_world_size != 2 ||
                       (algorithm != CommAlg::fullmesh_v2 && algorithm != CommAlg::hierarchy);
              }),
      rule<A>(Stage::attributes, kHost | kA3, "elasticInfoOptional", "be null with tpWorldSize 2",
              [](const A& a) { return a.tp_world_size != 2 || !a.elastic_info.present(); }),
      rule<A>(Stage::attributes, kEverywhere, "expertShardType", "be 0",
              [](const A& a) { return a.expert_shard_type == 0; }),
      rule<A>(Stage::attributes, kEverywhere, "zeroExpertNum", "be in [0, 2^31 - 1)",
              [](const A& a) { return in_range(a.zero_expert_num, 0, kMaxInt32 - 1); }),
      rule<A>(Stage::attributes, kEverywhere, "copyExpertNum", "be in [0, 2^31 - 1)",
              [](const A& a) { return in_range(a.copy_expert_num, 0, kMaxInt32 - 1); }),
      rule<A>(Stage::attributes, kEverywhere, "constExpertNum", "be in [0, 2^31 - 1)",
              [](const A& a) { return in_range(a.const_expert_num, 0, kMaxInt32 - 1); }),
      rule<A>(Stage::attributes, kEverywhere, "moeExpertNum", "be at least 1 and below 2^31 - 1",
              [](const A& a) { return in_range(a.moe_expert_num, 1, kMaxInt32 - 1); }),
      rule<A>(
          Stage::attributes, kDevices, "moeExpertNum",
          "be at most 1024, with the hierarchy algorithm at most 512",
          [](const A& a) { return a.moe_expert_num <= (is_hierarchy(a) ? 512 : 1024); },
          "spread the experts over several groups, or use another algorithm"),
      rule<A>(Stage::attributes, kEverywhere, "moeExpertNum",
              "add up to less than 2^31 - 1 with zeroExpertNum, copyExpertNum and constExpertNum",
              [](const A& a) { return a.total_experts() < kMaxInt32; }),
      rule<A>(Stage::attributes, kA2, "constExpertNum", "be 0 on this product",
              [](const A& a) { return a.const_expert_num == 0; }),
      rule<A>(Stage::attributes, kA2 | kA3, "commAlg",
              "not be hierarchy with zeroExpertNum, copyExpertNum or constExpertNum above 0",
              [](const A& a) { return !is_hierarchy(a) || a.special_experts() == 0; }),
      rule<A>(Stage::attributes, kMeshes, "sharedExpertRankNum", "be in [0, epWorldSize)",
              [](const A& a) { return in_range(a.shared_expert_rank_num, 0, a.ep_world_size - 1); }),
      rule<A>(Stage::attributes, kHost, "sharedExpertNum", "be at least 0",
              [](const A& a) { return a.shared_expert_num >= 0; }),
      rule<A>(Stage::attributes, kA3 | k950, "sharedExpertNum", "be in [0, 4]",
              [](const A& a) { return in_range(a.shared_expert_num, 0, 4); }),
      rule<A>(Stage::attributes, kMeshes, "sharedExpertRankNum",
              "be 0 with sharedExpertNum 0 or 1, else a multiple of sharedExpertNum above 0",
              [](const A& a) {
                if (a.shared_expert_rank_num == 0) return a.shared_expert_num <= 1;
                return a.shared_expert_num > 0 && a.shared_expert_rank_num % a.shared_expert_num == 0;
              }),
      rule<A>(Stage::attributes, kA3, "sharedExpertRankNum", "be 0 with commAlg hierarchy",
              [](const A& a) { return !is_hierarchy(a) || a.shared_expert_rank_num == 0; }),
      rule<A>(
          Stage::attributes, kMeshes, "moeExpertNum", "be a multiple of epWorldSize - sharedExpertRankNum",
          [](const A& a) { return a.moe_expert_num % (a.ep_world_size - a.shared_expert_rank_num) == 0; },
          "add experts that no token goes to, or change the number of ranks"),
      rule<A>(
          Stage::attributes, kA2, "moeExpertNum", "be a multiple of epWorldSize",
          [](const A& a) { return a.moe_expert_num % a.ep_world_size == 0; },
          "add experts that no token goes to, or change the number of ranks"),
      rule<A>(Stage::attributes, kHost | kA3, "moeExpertNum",
              "be epWorldSize - sharedExpertRankNum, one for each rank, with tpWorldSize 2",
              [](const A& a) { return a.tp_world_size != 2 || EpLayout(a).width() == 1; }),
      rule<A>(Stage::attributes, kA3 | k950, "epWorldSize",
              "be at most 2048 / experts per rank, with commAlg hierarchy at most 512 / experts per "
              "rank and 24 of them",
              [](const A& a) {
                const std::int64_t local = EpLayout(a).experts_on(a.shared_expert_rank_num);
                if (is_hierarchy(a)) return local <= 24 && local * a.ep_world_size <= 512;
                return local * a.ep_world_size <= 2048;
              }),
  });
}

// Before all shapes, whose rules would blame a tensor for a wrong number of ranks. A group that does not exist
// has a code of its own, in find_ep_group.
template <class A>
constexpr auto group_rules() {
  return std::to_array<Rule>({
      rule<A>(
          Stage::attributes, kEverywhere, "epWorldSize", "be the number of ranks of groupEp",
          [](const A& a) {
            const auto group = comm::find_group(a.group_ep);
            return !group || group->size == a.ep_world_size;
          },
          "pass what HcclGetRankSize gives"),
      rule<A>(
          Stage::attributes, kHost | kA3, "tpWorldSize", "be the number of ranks of groupTp",
          [](const A& a) {
            const auto group = a.tp_world_size == 2 ? comm::find_group(a.group_tp) : std::nullopt;
            return !group || group->size == a.tp_world_size;
          },
          "pass what HcclGetRankSize gives"),
  });
}

// Slots are numbered by 32 bits; more could not be multiplied by epWorldSize either.
template <class A>
bool slots_can_be_numbered(const A& a) {
  std::int64_t per_token, slots;
  return !__builtin_add_overflow(a.topk(), a.shared_expert_num, &per_token) &&
         !__builtin_mul_overflow(a.bs(), std::max<std::int64_t>(per_token, 1), &slots) && slots <= kMaxInt32;
}

// For sizes that are worked out before the rules have passed: whether the numbers in them stay far below 2^63.
template <class A>
bool can_be_sized(const A& a) {
  constexpr std::int64_t kMost = INT64_C(1) << 24;
  return in_range(a.ep_world_size, 1, kMost) && in_range(a.ep_rank_id, 0, a.ep_world_size - 1) &&
         in_range(a.shared_expert_rank_num, 0, a.ep_world_size - 1) &&
         in_range(a.moe_expert_num, 1, kMaxInt32) && in_range(a.shared_expert_num, 0, kMaxInt32) &&
         a.global_bs >= 0 && a.expert_ids.rank == 2 && a.bs() >= 0 && a.topk() >= 0 &&
         in_range(a.hidden(), 0, INT64_C(1) << 48) && slots_can_be_numbered(a);
}

// Those that know the tensors' shapes.
template <class A>
constexpr auto shape_rules() {
  return std::to_array<Rule>({
      rule<A>(
          Stage::shapes, kA2, "BS", "be in [1, 256], with the hierarchy algorithm in [1, 512]",
          [](const A& a) { return in_range(a.bs(), 1, is_hierarchy(a) ? 512 : 256); },
          "split the tokens over several calls"),
      rule<A>(
          Stage::shapes, kA3, "BS", "be in [1, 512], with fullmesh_v2 and hierarchy in [1, 256]",
          [](const A& a) {
            const CommAlg algorithm = algorithm_of(a);
            const bool narrow = algorithm == CommAlg::hierarchy || algorithm == CommAlg::fullmesh_v2;
            return in_range(a.bs(), 1, narrow ? 256 : 512);
          },
          "split the tokens over several calls"),
      rule<A>(
          Stage::shapes, k950, "BS", "be in [1, 512]", [](const A& a) { return in_range(a.bs(), 1, 512); },
          "split the tokens over several calls"),
      rule<A>(Stage::shapes, kA2, "H", "be in (0, 10240] and a multiple of 32",
              [](const A& a) { return in_range(a.hidden(), 1, 10240) && a.hidden() % 32 == 0; }),
      rule<A>(Stage::shapes, kA3 | k950, "H",
              "be in [1024, 8192], with commAlg hierarchy in [1024, 7168] and a multiple of 32",
              [](const A& a) {
                if (is_hierarchy(a)) return in_range(a.hidden(), 1024, 7168) && a.hidden() % 32 == 0;
                return in_range(a.hidden(), 1024, 8192);
              }),
      rule<A>(Stage::shapes, kHost, "H", "be at least 1", [](const A& a) { return a.hidden() >= 1; }),
      rule<A>(Stage::shapes, kHost, "K", "be at least 1", [](const A& a) { return a.topk() >= 1; }),
      rule<A>(Stage::shapes, kDevices, "K", "be in [1, 16], with fullmesh_v2 in [1, 12]",
              [](const A& a) {
                return in_range(a.topk(), 1, algorithm_of(a) == CommAlg::fullmesh_v2 ? 12 : 16);
              }),
      rule<A>(
          Stage::shapes, kEverywhere, "K",
          "be at most the number of experts, moeExpertNum + zeroExpertNum + "
          "copyExpertNum + constExpertNum",
          [](const A& a) { return a.topk() <= a.total_experts(); }, "route each token to fewer experts"),
      rule<A>(Stage::shapes, kA3, "globalBs", "be 0 or BS * epWorldSize with commAlg hierarchy",
              [](const A& a) { return !is_hierarchy(a) || a.global_bs <= a.bs() * a.ep_world_size; }),
      rule<A>(Stage::shapes, kA3, "xActiveMaskOptional", "have 1 dimension with commAlg hierarchy",
              [](const A& a) { return !is_hierarchy(a) || a.active_mask.rank != 2; }),
      rule<A>(Stage::shapes, kA2, "xActiveMaskOptional", "be null with the hierarchy algorithm",
              [](const A& a) { return !is_hierarchy(a) || !a.active_mask.present(); }),
      rule<A>(Stage::shapes, k950 | kHost, "xActiveMaskOptional", "have 1 dimension with commAlg ccu",
              [](const A& a) { return algorithm_of(a) != CommAlg::ccu || a.active_mask.rank != 2; }),
  });
}

// What ranks with different numbers of tokens demand: checked once the tensors are known to be matrices.
template <class A>
constexpr auto token_rules() {
  return std::to_array<Rule>({
      rule<A>(Stage::attributes, kEverywhere, "expertIds",
              "have fewer than 2^31 slots, BS * (K + sharedExpertNum)",
              [](const A& a) { return slots_can_be_numbered(a); }),
      rule<A>(
          Stage::attributes, kEverywhere, "globalBs",
          "be 0, or a multiple of epWorldSize and at least BS * epWorldSize",
          [](const A& a) {
            return a.global_bs == 0 ||
                   (a.global_bs % a.ep_world_size == 0 && a.global_bs >= a.bs() * a.ep_world_size);
          },
          "pass the largest BS of all ranks times epWorldSize, the same on all ranks"),
      rule<A>(
          Stage::attributes, kEverywhere, "xActiveMaskOptional",
          "be null where ranks have different BS (globalBs above BS * epWorldSize)",
          [](const A& a) { return !a.active_mask.present() || a.global_bs <= a.bs() * a.ep_world_size; },
          "give all ranks the same BS, or pass no mask"),
  });
}

// What must be equal on all ranks.
template <class A>
constexpr auto shared_facts() {
  return std::to_array<Figure>({
      figure<A>("epWorldSize", {}, [](const A& a) { return a.ep_world_size; }),
      figure<A>("moeExpertNum", {}, [](const A& a) { return a.moe_expert_num; }),
      figure<A>("sharedExpertNum", {}, [](const A& a) { return a.shared_expert_num; }),
      figure<A>("sharedExpertRankNum", {}, [](const A& a) { return a.shared_expert_rank_num; }),
      figure<A>("expertShardType", {}, [](const A& a) { return a.expert_shard_type; }),
      figure<A>("globalBs", {}, [](const A& a) { return a.global_bs; }),
      figure<A>("BS (with globalBs 0)", "pass the largest BS of all ranks times epWorldSize as globalBs",
                [](const A& a) { return a.global_bs == 0 ? a.bs() : 0; }),
      figure<A>("commAlg (as a number)", {},
                [](const A& a) { return static_cast<std::int64_t>(algorithm_of(a)); }),
      figure<A>("zeroExpertNum", {}, [](const A& a) { return a.zero_expert_num; }),
      figure<A>("copyExpertNum", {}, [](const A& a) { return a.copy_expert_num; }),
      figure<A>("constExpertNum", {}, [](const A& a) { return a.const_expert_num; }),
      figure<A>("tpWorldSize", {}, [](const A& a) { return a.tp_world_size <= 1 ? 1 : a.tp_world_size; }),
      figure<A>("the first version of the operator (1: yes)", {},
                [](const A& a) -> std::int64_t { return a.first_version; }),
      figure<A>("K", {}, [](const A& a) { return a.topk(); }),
      figure<A>("H", {}, [](const A& a) { return a.hidden(); }),
  });
}

template <class A>
constexpr auto dispatch_facts() {
  return join(
      shared_facts<A>(),
      std::to_array<Figure>({
          figure<A>("quantMode", {}, [](const A& a) { return a.quant_mode; }),
          figure<A>("dtype of x (as a number)", {}, [](const A& a) -> std::int64_t { return a.x.dtype; }),
          figure<A>("dtype of expandXOut (as a number)", {},
                    [](const A& a) -> std::int64_t { return a.expand_x.dtype; }),
          figure<A>("dtype of scalesOptional (as a number)", {},
                    [](const A& a) -> std::int64_t {
                      return a.scales_travel() ? a.scale_matrix().dtype : ACL_DT_UNDEFINED;
                    }),
          figure<A>("columns of scalesOptional", {},
                    [](const A& a) { return a.scales_travel() ? a.scale_matrix().dim(1) : 0; }),
      }));
}

template <class A>
constexpr auto combine_facts() {
  return join(shared_facts<A>(),
              std::to_array<Figure>({
                  figure<A>("commQuantMode", {}, [](const A& a) { return a.comm_quant_mode; }),
                  figure<A>("dtype of expandX (as a number)", {},
                            [](const A& a) -> std::int64_t { return a.expand_x.dtype; }),
              }));
}

template <class A>
constexpr auto shared_needs() {
  return std::to_array<Figure>({
      figure<A>("HCCL_BUFFSIZE", "MiB of the window of the communicator, set before it is made",
                [](const A& a) { return needed_window_mb(a, a.bs(), a.topk(), a.hidden()); }),
  });
}

}  // namespace moeyard::ops::ep_rules
