// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/job.h"

#include "model/errors.h"

namespace moeyard::model {

Result<std::vector<std::uint16_t>> Job::rounded_tokens(int rank) const {
  const auto values = values_of(rank);
  std::vector<std::uint16_t> rounded(values.size());
  narrow(values, type, rounded.data());
  if (find_not_finite(type, std::as_bytes(std::span(rounded)).data(),
                      static_cast<std::int64_t>(rounded.size())) >= 0)
    return bad_input("the tokens have values beyond the range of {}: use --dtype bf16.", info_of(type).name);
  return rounded;
}

}  // namespace moeyard::model
