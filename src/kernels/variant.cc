// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/variant.h"

#include <hwy/targets.h>

#include "base/settings.h"

namespace moeyard::kernels::detail {

// Highway's names are static strings.
std::string_view name_of_target(std::int64_t target) { return hwy::TargetName(target); }

bool runs_here(std::int64_t target) {
  constexpr std::int64_t kNeedNothing = HWY_EMU128 | HWY_SCALAR;
  return ((hwy::SupportedTargets() | kNeedNothing) & target) != 0;
}

bool is_forced(std::int64_t target) { return settings().target == name_of_target(target); }

}  // namespace moeyard::kernels::detail
