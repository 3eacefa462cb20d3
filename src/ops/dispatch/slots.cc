// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/dispatch/slots.h"

#include <algorithm>

#include "base/errors.h"
#include "base/settings.h"

namespace moeyard::ops {

SlotPolicy slot_policy() {
  return {.lenient = settings().lenient, .refuses_repeats = product() != Product::host};
}

Status Slots::scan(const char* function, std::span<Target> targets, std::span<std::int32_t> counts) {
  MOEYARD_TRY(count_active(function));
  std::fill(counts.begin(), counts.end(), 0);
  const auto send_to = [&](std::int64_t destination) {
    std::int32_t& count = counts[static_cast<std::size_t>(destination)];
    return Target{static_cast<std::int32_t>(destination), count++};
  };
  Target* target = targets.data();
  for (std::int64_t t = 0; t < tokens(); ++t) {
    MOEYARD_TRY(check_ids(function, t));
    for (std::int64_t k = 0; k < topk(); ++k) {
      const bool sent = slot_active(t, k) && layout_.kind_of(id(t, k)) == ExpertKind::real;
      *target++ = sent ? send_to(layout_.destination_of_expert(id(t, k))) : Target{-1, 0};
    }
    const bool active = layout_.shared_experts() > 0 && token_active(t);
    for (std::int64_t shared = 0; shared < layout_.shared_experts(); ++shared)
      *target++ = active ? send_to(layout_.destination_of_shared(shared, rank_, t, tokens())) : Target{-1, 0};
  }
  return {};
}

bool Slots::token_active(std::int64_t t) const {
  if (mask_.rank != 2) return t < active_tokens_;
  for (std::int64_t k = 0; k < topk(); ++k)
    if (slot_active(t, k)) return true;
  return false;
}

Status Slots::count_active(const char* function) {
  active_tokens_ = tokens();
  if (mask_.rank != 1) return {};
  active_tokens_ = 0;
  for (std::int64_t t = 0; t < tokens(); ++t) {
    if (mask_.at<std::uint8_t>(t) == 0) continue;
    if (active_tokens_ != t && !policy_.lenient)
      return wrong_data(
          function,
          "xActiveMask[{}] is true after a false but all trues must come first; move the active tokens to "
          "the front, or set MOEYARD_LENIENT=1 to count the trues as devices do",
          t);
    ++active_tokens_;
  }
  return {};
}

std::string Slots::describe_ids() const {
  const std::int64_t real = layout_.real_experts(), special = layout_.first_special();
  if (real == special) return fmt::format("in [0, {})", layout_.known_experts());
  if (special == layout_.known_experts()) return fmt::format("in [0, {})", real);
  return fmt::format("in [0, {}) or [{}, {})", real, special, layout_.known_experts());
}

Status Slots::check_ids(const char* function, std::int64_t t) const {
  for (std::int64_t k = 0; k < topk(); ++k) {
    if (!slot_active(t, k)) continue;
    const ExpertKind kind = layout_.kind_of(id(t, k));
    if (kind == ExpertKind::unknown && !policy_.lenient)
      return wrong_data(
          function,
          "expertIds[{}][{}] is {} but must be {}, the real and special experts; correct it, or set "
          "MOEYARD_LENIENT=1 to ignore such slots",
          t, k, id(t, k), describe_ids());
    if (kind != ExpertKind::real || !policy_.refuses_repeats) continue;
    for (std::int64_t other = 0; other < k; ++other)
      if (slot_active(t, other) && id(t, other) == id(t, k))
        return wrong_data(
            function,
            "expertIds[{}][{}] and expertIds[{}][{}] are both {} but the experts of a token must be distinct "
            "on {}; name each expert once, or set MOEYARD_SOC=host",
            t, other, t, k, id(t, k), name_of(product()));
  }
  return {};
}

}  // namespace moeyard::ops
