// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace moeyard::model {

double relative_limit(StoredType type) { return type == StoredType::bf16 ? 0x1p-6 : 0x1p-9; }

void compare_row(StoredType type, std::int64_t token, std::span<const float> got, std::span<const float> want,
                 Check& check) {
  float largest = 0;
  for (const float value : want) largest = std::max(largest, std::abs(value));
  const double limit = relative_limit(type) * largest + 1e-3;
  ++check.tokens;
  for (std::size_t h = 0; h < want.size(); ++h) {
    double error = std::abs(static_cast<double>(got[h]) - want[h]);
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
    if (error > limit) ++check.too_far;
    check.largest_error = std::max(check.largest_error, error);
    if (check.worst.limit == 0 || error / limit > check.worst.error / check.worst.limit)
      check.worst = {token, static_cast<std::int64_t>(h), got[h], want[h], error, limit};
  }
}

}  // namespace moeyard::model
