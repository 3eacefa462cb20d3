// Moeyard. SPDX-License-Identifier: Apache-2.0
// How dispatch quantises a row, as its definition says it.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "support/small_numbers.h"

namespace oracle {

// What quantMode and the dtype of expandXOut say.
struct Quantisation {
  int mode = 0;
  aclDataType to = ACL_INT8;

  bool makes_scales() const { return mode >= 2; }
  // Elements that share a scale.
  int width(int hidden) const { return mode == 3 ? 128 : std::max(hidden, 1); }
  int scales_per_row(int hidden) const {
    return makes_scales() ? (hidden + width(hidden) - 1) / width(hidden) : 0;
  }
};

struct QuantisedRow {
  std::vector<std::uint8_t> bits;
  std::vector<float> scales;
};

// y: the row's elements times their factors.
inline QuantisedRow quantise(const Quantisation& how, const std::vector<float>& y) {
  QuantisedRow row;
  const int hidden = static_cast<int>(y.size()), width = how.width(hidden);
  const float largest = largest_of(how.to);
  for (int begin = 0; begin < hidden; begin += width) {
    const int end = std::min(begin + width, hidden);
    float m = 0;
    for (int h = begin; h < end; ++h) m = std::fmax(m, std::fabs(y[static_cast<std::size_t>(h)]));
    const float f = how.mode == 1 ? 1.0f : largest / m;
    const bool nothing = how.mode != 1 && m == 0;
    for (int h = begin; h < end; ++h)
      row.bits.push_back(nothing ? 0 : encode(how.to, y[static_cast<std::size_t>(h)] * f));
    if (how.mode == 2) row.scales.push_back(nothing ? 0.0f : 1.0f / f);
    if (how.mode == 3) row.scales.push_back(m * (1.0f / largest));
  }
  return row;
}

}  // namespace oracle
