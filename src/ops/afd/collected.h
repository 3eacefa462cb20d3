// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>

#include "ops/afd/context.h"

namespace moeyard::ops {

// Micro-batches that are ready to be batched, one per collected session: what a scheduler collected, or all sessions'
// descriptors of one micro-batch.
class Collected {
 public:
  static Collected by_scheduler(const ScheduleContext& context) {
    Collected made(context);
    made.count_ = context.ffn.out_num;
    made.ids_ = words_at(context.ffn.expert_ids_buf);
    made.ids_stride_ = made.slots_;
    made.sessions_ = words_at(context.ffn.session_ids_buf);
    made.micro_batches_ = words_at(context.ffn.micro_batch_ids_buf);
    return made;
  }
  static Collected all_sessions(const ScheduleContext& context) {
    Collected made(context);
    const FfnWindow window = ffn_window(context);
    made.count_ = context.common.session_num;
    made.polled_ = static_cast<std::int32_t>(context.ffn.polling_index);
    made.ids_ = words_at(context.ffn.token_info_buf + window.descriptor(0, context.ffn.polling_index)) + 2;
    made.ids_stride_ = static_cast<std::int64_t>(window.descriptor(1, 0) / 4);
    return made;
  }

  std::int64_t count() const { return count_; }
  std::int64_t slots() const { return slots_; }  // of each
  const std::int32_t* expert_ids(std::int64_t c) const { return ids_ + c * ids_stride_; }
  std::int32_t session(std::int64_t c) const {
    return sessions_ == nullptr ? static_cast<std::int32_t>(c) : sessions_[c];
  }
  std::int32_t micro_batch(std::int64_t c) const {
    return micro_batches_ == nullptr ? polled_ : micro_batches_[c];
  }

 private:
  explicit Collected(const ScheduleContext& context)
      : slots_(static_cast<std::int64_t>(ffn_window(context).slots_of_descriptor())) {}

  std::int64_t count_ = 0, slots_, ids_stride_ = 0;
  const std::int32_t* ids_ = nullptr;
  const std::int32_t *sessions_ = nullptr, *micro_batches_ = nullptr;  // null: session c, micro-batch polled_
  std::int32_t polled_ = 0;
};

// A slot that holds a token for an expert, as one number that sorts by expert and then by the slot's position among
// all collected slots.
class RoutedSlot {
 public:
  RoutedSlot() = default;
  RoutedSlot(std::int32_t expert, std::int64_t position)
      : bits_(static_cast<std::uint64_t>(expert) << kPositionBits | static_cast<std::uint64_t>(position)) {}
  std::int32_t expert() const { return static_cast<std::int32_t>(bits_ >> kPositionBits); }
  std::int64_t position() const {
    return static_cast<std::int64_t>(bits_ & ((std::uint64_t{1} << kPositionBits) - 1));
  }

 private:
  static constexpr int kPositionBits = 44;  // 64 less the 20 of kExpertIdLimit
  std::uint64_t bits_;
};

// Sorts slots, given in ascending position, by expert. `other` is as long; the result is in one of the two.
std::span<const RoutedSlot> sort_by_expert(std::span<RoutedSlot> slots, std::span<RoutedSlot> other);

}  // namespace moeyard::ops
