// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "ops/afd/context.h"

namespace moeyard::ops {

// The flags of one micro-batch in an attention worker's window, one per slot, counted as they are set.
class ResultFlags {
 public:
  ResultFlags(std::int32_t* flags, std::int64_t count, std::int64_t slots)
      : flags_(flags), count_(count), slots_(slots) {}

  bool all_set() {  // goes on where it stopped: a flag stays set until it is cleared here
    while (ready_ < count_ && is_set(flags_ + ready_)) ++ready_;
    return ready_ == count_;
  }
  void clear() const {
    for (std::int64_t i = 0; i < count_; ++i) set_flag(flags_ + i, 0);
  }
  std::string missing(std::uint64_t micro_batch) const {
    std::int64_t set = 0;
    for (std::int64_t i = 0; i < count_; ++i) set += is_set(flags_ + i) ? 1 : 0;
    return fmt::format("the result of token {}, slot {} of micro-batch {} ({} of {} came)", ready_ / slots_,
                       ready_ % slots_, micro_batch, set, count_);
  }

 private:
  std::int32_t* flags_;
  std::int64_t count_, slots_, ready_ = 0;
};

}  // namespace moeyard::ops
