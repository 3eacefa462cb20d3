// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "contract/contract.h"

// Rules of the operators that know slots by sorted indices.
namespace moeyard::ops {

inline constexpr Products kNot950 = kHost | kA2 | kA3 | k310P | kKirin;

template <class Args>
constexpr contract::Rule not_padded_rule(Products on, std::int32_t code) {
  return contract::rule<Args>(
      contract::Stage::attributes, on, "paddedMode", "be 0", [](const Args& a) { return !a.padded_mode; },
      "CANN's operator does not pad either", code);
}

template <class Args, class Holds>
constexpr contract::Rule window_rule(Holds holds) {
  return contract::rule<Args>(contract::Stage::attributes, kEverywhere, "rangeOptional",
                              "be {start, end} with 0 <= start <= end <= T*K", holds,
                              "null, an empty list or {0, 0} stand for all rows");
}

}  // namespace moeyard::ops
