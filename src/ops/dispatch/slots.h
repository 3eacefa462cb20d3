// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "base/tensor_view.h"
#include "ops/dispatch/ep_layout.h"

namespace moeyard::ops {

// Where a slot's row goes: its destination and its place among the rows that this rank sends there.
struct Target {
  std::int32_t destination;  // -1: no row is sent
  std::int32_t index;
};

// What wrong data does, decided by the product and MOEYARD_LENIENT in phase one.
struct SlotPolicy {
  bool lenient;          // an unknown id switches its slot off, an unordered mask is counted
  bool refuses_repeats;  // a token that names one real expert twice
};
SlotPolicy slot_policy();

// A rank's expertIds and mask, slot by slot: those of a token are its K experts and then the shared experts.
class Slots {
 public:
  Slots(const TensorView& expert_ids, const TensorView& active_mask, const EpLayout& layout,
        std::int64_t rank, SlotPolicy policy)
      : ids_(expert_ids), mask_(active_mask), layout_(layout), rank_(rank), policy_(policy) {}

  std::int64_t tokens() const { return ids_.dim(0); }
  std::int64_t topk() const { return ids_.dim(1); }
  std::int64_t per_token() const { return topk() + layout_.shared_experts(); }
  std::int64_t id(std::int64_t t, std::int64_t k) const { return ids_.at<std::int32_t>(t, k); }

  // Numbers every slot that is sent among those of its destination, in ascending order of t * K + k, and
  // counts them: targets [tokens * per_token], counts [destinations]. Fails with 507015 for the first slot or
  // mask entry that is wrong.
  Status scan(const char* function, std::span<Target> targets, std::span<std::int32_t> counts);

  // After scan().
  bool token_active(std::int64_t t) const;
  bool slot_active(std::int64_t t, std::int64_t k) const {
    return mask_.rank == 2 ? mask_.at<std::uint8_t>(t, k) != 0 : t < active_tokens_;
  }
  // With a 1-D mask (or none) tokens from here on are inactive.
  std::int64_t active_tokens() const { return active_tokens_; }

 private:
  Status count_active(const char* function);
  std::string describe_ids() const;
  Status check_ids(const char* function, std::int64_t t) const;

  const TensorView& ids_;
  const TensorView& mask_;
  const EpLayout& layout_;
  const std::int64_t rank_;
  const SlotPolicy policy_;
  std::int64_t active_tokens_ = 0;
};

}  // namespace moeyard::ops
