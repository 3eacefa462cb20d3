// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/dispatch/ep_layout.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/product.h"

namespace moeyard::ops {

namespace {

constexpr std::int64_t kMostTokens = INT64_C(1) << 31;
constexpr std::int64_t kMostRows = INT64_C(1) << 40;  // no memory holds more, and multiples of it can be told

bool is_set_to(const char* variable, std::string_view wanted) {
  const char* value = std::getenv(variable);
  return value != nullptr && value == wanted;
}

}  // namespace

CommAlg algorithm_of(const EpAttributes& attributes) {
  const std::string& name = attributes.comm_alg;
  if (product() == Product::a2) {
    if (attributes.ep_world_size <= 8) return CommAlg::fullmesh;
    const bool by_environment = name.empty() || name == "0";
    const bool hierarchy =
        by_environment ? is_set_to("HCCL_INTRA_PCIE_ENABLE", "1") && is_set_to("HCCL_INTRA_ROCE_ENABLE", "0")
                       : name == "hierarchy";
    return hierarchy ? CommAlg::hierarchy : CommAlg::fullmesh;
  }
  if (name == "fullmesh_v2") return CommAlg::fullmesh_v2;
  if (name == "hierarchy") return CommAlg::hierarchy;
  return name == "ccu" ? CommAlg::ccu : CommAlg::fullmesh;
}

bool has_shared_ranks(const EpAttributes& a) {
  return product() != Product::a2 && a.shared_expert_rank_num > 0 && a.shared_expert_num > 0;
}

EpLayout::EpLayout(const EpAttributes& a)
    : EpLayout(a, a.ep_world_size, a.shared_expert_rank_num, a.moe_expert_num) {}

// Divisors may be 0 while the attributes are still being checked.
EpLayout::EpLayout(const EpAttributes& a, std::int64_t ranks, std::int64_t shared_ranks, std::int64_t experts)
    : ranks_(ranks), moe_experts_(experts) {
  const bool shared = has_shared_ranks(a) && shared_ranks > 0;
  shared_ranks_ = shared ? shared_ranks : 0;
  in_chunks_ = shared && a.first_version;
  shared_experts_ = shared ? a.shared_expert_num : 0;
  replicas_ = shared ? std::max<std::int64_t>(shared_ranks_ / shared_experts_, 1) : 1;
  local_moe_experts_ =
      std::max<std::int64_t>(moe_experts_ / std::max<std::int64_t>(ranks_ - shared_ranks_, 1), 1);
  width_ = local_moe_experts_;
  first_zero_ = a.moe_expert_num;
  first_copy_ = first_zero_ + a.zero_expert_num;
  first_const_ = first_copy_ + a.copy_expert_num;
  first_unknown_ = first_const_ + a.const_expert_num;
}

std::int64_t EpLayout::capacity(std::int64_t rank, std::int64_t tokens, std::int64_t topk,
                                std::int64_t global_bs) const {
  // globalBs may be anything: beyond what any memory holds, more makes no difference.
  const std::int64_t all_tokens =
      std::clamp<std::int64_t>(global_bs != 0 ? global_bs : tokens * ranks_, 0, kMostTokens);
  if (rank >= shared_ranks_) return std::min(all_tokens * std::min(local_moe_experts_, topk), kMostRows);
  return all_tokens / std::max<std::int64_t>(ranks_, 1) * ((ranks_ + replicas_ - 1) / replicas_);
}

}  // namespace moeyard::ops
