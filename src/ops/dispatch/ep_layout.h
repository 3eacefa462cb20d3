// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "ops/dispatch/ep_attributes.h"

namespace moeyard::ops {

// Whether ranks are set aside for shared experts, which A2 does not know.
bool has_shared_ranks(const EpAttributes& attributes);

// What an id in expertIds stands for.
enum class ExpertKind : std::uint8_t { real, zero, copy, constant, unknown };

// Where experts live and how many rows their ranks must hold: the one place that knows.
//
// Ranks below shared_ranks hold a replica of a shared expert each, the others local_moe_experts real ones. A
// row's destination is the number rank * width + local expert.
class EpLayout {
 public:
  explicit EpLayout(const EpAttributes& attributes);
  // What is left of it when ranks have gone: so many ranks, of them with shared experts, and real experts. Special experts
  // keep their ids, those in between stand for nothing.
  EpLayout(const EpAttributes& attributes, std::int64_t ranks, std::int64_t shared_ranks,
           std::int64_t experts);

  std::int64_t ranks() const { return ranks_; }
  std::int64_t width() const { return width_; }  // most experts on a rank
  std::int64_t destinations() const { return ranks_ * width_; }
  std::int64_t shared_experts() const { return shared_experts_; }  // 0 where no rank is set aside for them
  std::int64_t known_experts() const { return first_unknown_; }
  std::int64_t shared_ranks() const { return shared_ranks_; }
  std::int64_t real_experts() const { return moe_experts_; }
  std::int64_t first_special() const { return first_zero_; }
  std::int64_t experts_on(std::int64_t rank) const { return rank < shared_ranks_ ? 1 : local_moe_experts_; }

  ExpertKind kind_of(std::int64_t id) const {
    if (id < 0 || id >= first_unknown_) return ExpertKind::unknown;
    if (id < moe_experts_) return ExpertKind::real;
    if (id < first_zero_) return ExpertKind::unknown;
    if (id < first_copy_) return ExpertKind::zero;
    return id < first_const_ ? ExpertKind::copy : ExpertKind::constant;
  }
  std::int64_t const_index(std::int64_t id) const { return id - first_const_; }

  std::int64_t destination_of_expert(std::int64_t expert) const {
    return (shared_ranks_ + expert / local_moe_experts_) * width_ + expert % local_moe_experts_;
  }
  // The replica of a shared expert that serves token t of the `tokens` of `source`.
  std::int64_t destination_of_shared(std::int64_t shared, std::int64_t source, std::int64_t t,
                                     std::int64_t tokens) const {
    if (in_chunks_) return rank_of_chunk(source, t, tokens) * width_;
    return (shared * replicas_ + source % replicas_) * width_;
  }

  // Version 1: the shared-expert ranks get a part each of a source's tokens, in order, but keep their own. Of those, the
  // first chunk_end(rank, rank', tokens) are said to come from the ranks up to rank'.
  bool keeps_own_tokens(std::int64_t rank) const { return in_chunks_ && rank < shared_ranks_; }
  std::int64_t chunk_end(std::int64_t source, std::int64_t shared_rank, std::int64_t tokens) const {
    return (shared_rank + 1 + source) * tokens / shared_ranks_ - source * tokens / shared_ranks_;
  }

  // Row of the smooth factors: shared experts come first.
  std::int64_t scale_rows() const { return shared_experts_ + moe_experts_; }
  std::int64_t scale_row_of_expert(std::int64_t expert) const { return shared_experts_ + expert; }

  // Rows that a rank must have room for when its own token count is `tokens`; ids of a token are distinct.
  std::int64_t capacity(std::int64_t rank, std::int64_t tokens, std::int64_t topk,
                        std::int64_t global_bs) const;

 private:
  std::int64_t rank_of_chunk(std::int64_t source, std::int64_t t, std::int64_t tokens) const {
    if (source < shared_ranks_) return source;
    std::int64_t rank = 0;
    while (t >= chunk_end(source, rank, tokens)) ++rank;
    return rank;
  }

  std::int64_t ranks_, moe_experts_, shared_experts_, shared_ranks_, replicas_, local_moe_experts_, width_;
  std::int64_t first_zero_, first_copy_, first_const_, first_unknown_;
  bool in_chunks_;
};

}  // namespace moeyard::ops
