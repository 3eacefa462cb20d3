// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// What the halves of the split operators hand on to each other: messages (yOut, quantExpandXOut) and commands
// (commCmdInfoOut). Callers are told their sizes; only what is said here reads them.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>

#include "base/tensor_view.h"

namespace moeyard::ops {

// A row of yOut: the elements of a token as quantMode makes them, and behind them its scales.
struct DispatchMessage {
  std::int64_t elements;                   // of the row in all, tokenMsgSize
  std::int64_t scale_offset, scale_bytes;  // in bytes; where there are scales an element is a byte
};
DispatchMessage dispatch_message(std::int64_t quant_mode, std::int64_t hidden);

// A row of quantExpandXOut, in elements.
std::int64_t combine_message_elements(std::int64_t hidden);

// commCmdInfo as a list of commands of 16 words: a stamp, which says what they were made for, and then one per slot or row.
class Commands {
 public:
  static constexpr std::int64_t kWords = 16;
  using Stamp = std::array<std::int64_t, 7>;

  explicit Commands(const TensorView& info) : info_(info) {}

  std::int64_t count() const { return info_.dim(0) / kWords - 1; }
  std::int32_t& word(std::int64_t command, std::int64_t i) const { return at((command + 1) * kWords + i); }

  void stamp(const Stamp& facts) const {
    for (std::size_t i = 0; i < facts.size(); ++i)
      at(static_cast<std::int64_t>(i)) = static_cast<std::int32_t>(facts[i]);
  }
  bool has_stamp(const Stamp& facts) const {
    for (std::size_t i = 0; i < facts.size(); ++i)
      if (at(static_cast<std::int64_t>(i)) != static_cast<std::int32_t>(facts[i])) return false;
    return true;
  }
  void spoil_stamp() const { at(0) = 0; }

 private:
  std::int32_t& at(std::int64_t i) const { return info_.at<std::int32_t>(i); }
  const TensorView& info_;
};

// An output as the functions for the sizes assume it: dense, without memory.
TensorView assumed_output(aclDataType dtype, std::initializer_list<std::int64_t> shape);

}  // namespace moeyard::ops
