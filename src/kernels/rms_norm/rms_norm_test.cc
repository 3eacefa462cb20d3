// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/rms_norm/rms_norm.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "base/numbers.h"

namespace moeyard::kernels {
namespace {

float widen(aclDataType dtype, std::uint16_t bits) {
  return dtype == ACL_BF16 ? to_float(Bf16{bits}) : to_float(Fp16{bits});
}
std::uint16_t narrow(aclDataType dtype, float value) {
  return dtype == ACL_BF16 ? to_bf16(value).bits : to_fp16(value).bits;
}

class RmsNormTest : public testing::TestWithParam<std::tuple<Variant<RmsNormFn>, aclDataType, std::int64_t>> {
};

TEST_P(RmsNormTest, HasTheBitsOfTheDefinition) {
  const auto& [variant, dtype, hidden] = GetParam();
  std::mt19937 random(9);
  std::normal_distribution<float> normal;
  const auto n = static_cast<std::size_t>(hidden);
  std::vector<float> a;
  std::vector<std::uint16_t> gamma, x(n + 3, 0x5A5A), y = x, want_x = x, want_y = x;
  for (std::size_t h = 0; h < n; ++h) {
    a.push_back(3 * normal(random));
    gamma.push_back(narrow(dtype, normal(random)));
  }
  float sums[32] = {};
  for (std::size_t h = 0; h < n; ++h) {
    const float square = a[h] * a[h], share = square * (1.0f / static_cast<float>(hidden));
    sums[h % 32] = sums[h % 32] + share;
    want_x[h] = narrow(dtype, a[h]);
  }
  for (int apart = 16; apart > 0; apart /= 2)
    for (int i = 0; i < apart; ++i) sums[i] += sums[i + apart];
  const float r = 1.0f / std::sqrt(sums[0] + 1e-5f);
  for (std::size_t h = 0; h < n; ++h)
    want_y[h] = narrow(dtype, widen(dtype, narrow(dtype, a[h] * r)) * widen(dtype, gamma[h]));
  const float got = variant.run({a.data(), reinterpret_cast<const std::byte*>(gamma.data()), 1e-5f,
                                 reinterpret_cast<std::byte*>(x.data()),
                                 reinterpret_cast<std::byte*>(y.data()), dtype, hidden});
  EXPECT_EQ(std::bit_cast<std::uint32_t>(got), std::bit_cast<std::uint32_t>(r));
  EXPECT_TRUE(x == want_x);
  EXPECT_TRUE(y == want_y);
}

std::string name_of(const testing::TestParamInfo<RmsNormTest::ParamType>& info) {
  return std::string(std::get<0>(info.param).name) + "_" + moeyard::name_of(std::get<1>(info.param)) + "_" +
         std::to_string(std::get<2>(info.param));
}

INSTANTIATE_TEST_SUITE_P(
    EveryTarget, RmsNormTest,
    testing::Combine(testing::ValuesIn(rms_norm_variants().begin(), rms_norm_variants().end()),
                     testing::Values(ACL_FLOAT16, ACL_BF16), testing::Values(1, 31, 32, 33, 97, 4096)),
    name_of);

}  // namespace
}  // namespace moeyard::kernels
