// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/afd/collected.h"

#include <algorithm>
#include <array>

namespace moeyard::ops {
namespace {

constexpr int kDigitBits = 11;  // two digits hold every expert id, one holds those that occur in practice
constexpr std::int32_t kDigits = 1 << kDigitBits;

// One pass of a radix sort: stable by the digit of the expert that begins at `shift`.
void sort_by_digit(std::span<const RoutedSlot> from, std::span<RoutedSlot> to, int shift) {
  const auto digit = [shift](RoutedSlot slot) {
    return static_cast<std::size_t>((slot.expert() >> shift) & (kDigits - 1));
  };
  std::array<std::size_t, kDigits> place{};
  for (const RoutedSlot slot : from) ++place[digit(slot)];
  std::size_t sum = 0;
  for (std::size_t& count : place) sum += std::exchange(count, sum);
  for (const RoutedSlot slot : from) to[place[digit(slot)]++] = slot;
}

}  // namespace

std::span<const RoutedSlot> sort_by_expert(std::span<RoutedSlot> slots, std::span<RoutedSlot> other) {
  std::int32_t last_expert = 0;
  for (const RoutedSlot slot : slots) last_expert = std::max(last_expert, slot.expert());
  sort_by_digit(slots, other, 0);
  if (last_expert < kDigits) return other;
  sort_by_digit(other, slots, kDigitBits);
  return slots;
}

}  // namespace moeyard::ops
