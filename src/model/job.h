// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "acl/acl.h"
#include "model/moe_layer.h"
#include "model/placement.h"
#include "model/rows.h"

namespace moeyard::model {

// How UpdateExpert picks one of several instances of an expert: its balanceMode.
enum class Balance : std::int64_t { by_rank = 0, by_token = 1 };

// Attention workers have the tokens, FFN workers the experts; ranks in this order.
struct Disaggregation {
  int attention_workers, ffn_workers;
  std::int64_t micro_batches;       // of an attention worker, under way at a time
  std::int64_t micro_batch_tokens;  // at most

  int ranks() const { return attention_workers + ffn_workers; }
};

// What all ranks work on.
struct Job {
  const MoeLayer& layer;
  const Rows& tokens;
  const Placement& placement;
  StoredType type;  // of weights, tokens and results on the devices: BF16 or F16
  int ranks;
  Balance balance;
  std::optional<Disaggregation> afd;  // none: every rank has tokens and experts

  aclDataType dtype() const { return type == StoredType::bf16 ? ACL_BF16 : ACL_FLOAT16; }
  // The first token_ranks() ranks have the tokens, the last expert_ranks() ones the experts.
  int token_ranks() const { return afd ? afd->attention_workers : ranks; }
  int expert_ranks() const { return afd ? afd->ffn_workers : ranks; }
  int first_expert_rank() const { return ranks - expert_ranks(); }
  // Rank r has the tokens [first_token(r), first_token(r + 1)).
  std::int64_t first_token(int rank) const {
    return std::min(rank, token_ranks()) * tokens.count / token_ranks();
  }
  std::int64_t tokens_of(int rank) const { return first_token(rank + 1) - first_token(rank); }
  std::span<const float> values_of(int rank) const {
    const auto width = static_cast<std::size_t>(tokens.width);
    return std::span(tokens.values).subspan(first_token(rank) * width, tokens_of(rank) * width);
  }
  std::int64_t most_tokens() const { return (tokens.count + ranks - 1) / ranks; }
  std::int64_t global_bs() const { return most_tokens() * ranks; }
  // Instances on each rank with experts; rank first_expert_rank() + i has those from i * local_instances() on.
  std::int64_t local_instances() const { return placement.instances() / expert_ranks(); }
  // Rows that a rank may receive, as a token's experts are distinct.
  std::int64_t capacity() const { return global_bs() * std::min(local_instances(), layer.config.topk); }

  // A rank's tokens in the type of the computation, [T, H].
  Result<std::vector<std::uint16_t>> rounded_tokens(int rank) const;
};

}  // namespace moeyard::model
