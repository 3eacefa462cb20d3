// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "acl/acl_base.h"

namespace moeyard::calls {

// How far two dense tensors of one type and shape are from each other.
struct Difference {
  // Of a bin: those that are 0, 1, 2, 3 to 4, 5 to 8 ... units in the last place away, the last bin has the rest. Integers
  // count as whole numbers. Beyond: one of both is no number, or the type has no order.
  static constexpr std::size_t kBins = 20;

  std::int64_t elements = 0;
  std::int64_t unwritten = 0;  // left out, as the operator does not write them
  std::int64_t different = 0;  // of other bits, but two numbers that are none are alike, and so are the zeros
  std::array<std::int64_t, kBins> ulps{};
  std::int64_t no_number = 0;  // one of the two is
  double largest_error = 0, largest_relative = 0, sum_of_errors = 0;
  std::int64_t first = -1;  // that differs, by its number in row-major order
  double first_got = 0, first_want = 0;

  std::uint64_t most_ulps = 0;
  bool within(std::uint64_t ulps_allowed) const { return no_number == 0 && most_ulps <= ulps_allowed; }
};

// Where `other` differs from `got` nothing was written: it is from a second run over memory of other content. Empty: all
// counts.
Difference compare(aclDataType dtype, std::int64_t elements, std::span<const std::byte> got,
                   std::span<const std::byte> want, std::span<const std::byte> other = {});

std::string name_of_bin(std::size_t bin);  // "3-4"

// The index of an element: "[2, 17]".
std::string index_text(std::int64_t element, std::span<const std::int64_t> shape);

}  // namespace moeyard::calls
