// Moeyard. SPDX-License-Identifier: Apache-2.0
// A layer on attention and FFN workers in small integers and weights in quarters, so that every sum is exact.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "examples/attention_ffn/pipeline.h"
#include "support/device.h"

namespace oracle {

// Expert e multiplies by e + 1.
inline void scaling_expert(std::int64_t hidden, std::int64_t e, const std::uint16_t* x, std::uint16_t* y) {
  for (std::int64_t h = 0; h < hidden; ++h)
    y[h] = B16(widen(B16::raw(x[h])) * static_cast<float>(e + 1)).bits;
}

inline attention_ffn::Tokens small_tokens(const attention_ffn::Shape& s, std::int64_t count,
                                          std::mt19937& random) {
  attention_ffn::Tokens tokens;
  for (std::int64_t i = 0; i < count * s.hidden; ++i)
    tokens.x.push_back(B16(static_cast<float>(random() % 5) - 2).bits);
  for (std::int64_t t = 0; t < count; ++t) {
    std::vector<std::int32_t> experts;
    for (std::int32_t e = 0; e < s.experts; ++e) experts.push_back(e);
    std::shuffle(experts.begin(), experts.end(), random);
    tokens.expert_ids.insert(tokens.expert_ids.end(), experts.begin(), experts.begin() + s.topk);
    for (std::int64_t k = 0; k < s.topk; ++k) tokens.weights.push_back(static_cast<float>(random() % 8) / 4);
  }
  return tokens;
}

inline void expect_layer(const attention_ffn::Shape& s, const attention_ffn::Tokens& tokens) {
  const auto hidden = static_cast<std::size_t>(s.hidden), topk = static_cast<std::size_t>(s.topk);
  for (std::size_t t = 0; t * hidden < tokens.x.size(); ++t)
    for (std::size_t h = 0; h < hidden; ++h) {
      const float x = widen(B16::raw(tokens.x[t * hidden + h]));
      float sum = 0;
      for (std::size_t k = 0; k < topk; ++k)
        sum += tokens.weights[t * topk + k] * x * static_cast<float>(tokens.expert_ids[t * topk + k] + 1);
      if (s.shared_expert) sum += x * static_cast<float>(s.experts + 1);
      ASSERT_EQ(tokens.y[t * hidden + h], B16(sum).bits) << "token " << t << ", element " << h;
    }
}

}  // namespace oracle
