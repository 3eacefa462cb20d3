// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "base/errors.h"
#include "base/tensor_view.h"
#include "ops/scratch.h"

namespace moeyard::ops::atb {

// An entry of a dense tensor of INT32, UINT32 or INT64.
inline std::int64_t index_at(const TensorView& indices, std::int64_t i) {
  if (indices.dtype == ACL_INT64) return indices.begin_as<std::int64_t>()[i];
  if (indices.dtype == ACL_UINT32) return indices.begin_as<std::uint32_t>()[i];
  return indices.begin_as<std::int32_t>()[i];
}

// `what`: what the indices number, for the message.
inline Status check_indices(const char* name, const TensorView& indices, std::int64_t limit,
                            const char* what) {
  for (std::int64_t i = 0; i < indices.numel(); ++i)
    if (const std::int64_t index = index_at(indices, i); index < 0 || index >= limit)
      return wrong_data(name, "index {} is {} but must be in [0, {}), {}", i, index, limit, what);
  return {};
}

// The order of places by their values: larger ones first, equal ones by place, NaN behind everything else.
inline auto larger_first(const float* values) {
  return [values](std::int32_t a, std::int32_t b) {
    const bool a_is_nan = std::isnan(values[a]), b_is_nan = std::isnan(values[b]);
    if (a_is_nan != b_is_nan) return b_is_nan;
    if (values[a] != values[b] && !a_is_nan) return values[a] > values[b];
    return a < b;
  };
}

// The places of a list of indices by their value, in rising order of places: who adds up what an index names has a fixed
// order, and needs nobody else's sums.
class PlacesByIndex {
 public:
  PlacesByIndex(Scratch& scratch, std::int64_t places, std::int64_t values)
      : places_(scratch.add<std::int32_t>(places)), ends_(scratch.add<std::int64_t>(values + 1)) {}

  // Checked indices, the first `places` of them.
  void sort(std::byte* workspace, const TensorView& indices, std::int64_t places) const {
    const std::span<std::int64_t> ends = ends_.span_in(workspace);
    std::int32_t* sorted = places_.in(workspace);
    std::fill(ends.begin(), ends.end(), 0);
    for (std::int64_t i = 0; i < places; ++i) ++ends[static_cast<std::size_t>(index_at(indices, i)) + 1];
    for (std::size_t value = 1; value < ends.size(); ++value) ends[value] += ends[value - 1];
    for (std::int64_t i = 0; i < places; ++i)
      sorted[ends[static_cast<std::size_t>(index_at(indices, i))]++] = static_cast<std::int32_t>(i);
  }
  std::span<const std::int32_t> of(std::byte* workspace, std::int64_t value) const {
    const std::int64_t* ends = ends_.in(workspace);
    const std::int64_t begin = value == 0 ? 0 : ends[value - 1];
    return {places_.in(workspace) + begin, static_cast<std::size_t>(ends[value] - begin)};
  }

 private:
  Part<std::int32_t> places_;
  Part<std::int64_t> ends_;
};

}  // namespace moeyard::ops::atb
