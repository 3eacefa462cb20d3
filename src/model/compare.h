// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "model/stored_type.h"

namespace moeyard::model {

// A result in BF16 or F16 against fp32 values: a difference d passes if
//   |d| <= relative * max|row of want| + 1e-3,  relative = 2^-6 for BF16, 2^-9 for F16
// which covers rounding weights, tokens and each step's result.
struct Check {
  std::string against;  // "expectation", "dense check"
  std::int64_t tokens = 0;
  std::int64_t too_far = 0;  // values beyond their limit
  double largest_error = 0;  // of all values
  // The value that comes closest to its limit, or exceeds it most.
  struct {
    std::int64_t token = 0, column = 0;
    float got = 0, want = 0;
    double error = 0, limit = 0;
  } worst;

  bool passed() const { return too_far == 0; }
};

double relative_limit(StoredType type);

// Adds a token's row to the check. A NaN in `got` is beyond every limit.
void compare_row(StoredType type, std::int64_t token, std::span<const float> got, std::span<const float> want,
                 Check& check);

}  // namespace moeyard::model
