// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/variant.h"

#include <fmt/format.h>
#include <hwy/targets.h>

#include <string>

#include "base/log.h"
#include "base/settings.h"

namespace moeyard::kernels::detail {

// Highway's names are static strings.
std::string_view name_of_target(std::int64_t target) { return hwy::TargetName(target); }

bool runs_here(std::int64_t target) {
  constexpr std::int64_t kNeedNothing = HWY_EMU128 | HWY_SCALAR;
  return ((hwy::SupportedTargets() | kNeedNothing) & target) != 0;
}

namespace {

// Who misspells a target would believe that its code is what runs.
void report_unknown_target() {
  const std::string& wanted = settings().target;
  std::string known;
  for (std::int64_t target = 1; target > 0 && target <= HWY_SCALAR; target <<= 1) {
    if (!runs_here(target)) continue;
    if (name_of_target(target) == wanted) return;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name_of_target(target));
  }
  log_error("MOEYARD_TARGET={} is no SIMD target of this machine, which has {}; the best one is used", wanted,
            known);
}

}  // namespace

bool is_forced(std::int64_t target) {
  if (settings().target.empty()) return false;
  static const bool reported = (report_unknown_target(), true);
  static_cast<void>(reported);
  return settings().target == name_of_target(target);
}

}  // namespace moeyard::kernels::detail
