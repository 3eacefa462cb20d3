// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/scale_dot/scale_dot.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "base/numbers.h"

namespace moeyard::kernels {
namespace {

float value(const std::vector<std::byte>& bytes, aclDataType dtype, std::int64_t h) {
  if (dtype == ACL_FLOAT) return reinterpret_cast<const float*>(bytes.data())[h];
  const std::uint16_t bits = reinterpret_cast<const std::uint16_t*>(bytes.data())[h];
  return dtype == ACL_BF16 ? to_float(Bf16{bits}) : to_float(Fp16{bits});
}
void set(std::vector<std::byte>& bytes, aclDataType dtype, std::int64_t h, float number) {
  if (dtype == ACL_FLOAT)
    reinterpret_cast<float*>(bytes.data())[h] = number;
  else
    reinterpret_cast<std::uint16_t*>(bytes.data())[h] =
        dtype == ACL_BF16 ? to_bf16(number).bits : to_fp16(number).bits;
}

class ScaleDotTest
    : public testing::TestWithParam<std::tuple<Variant<ScaleDotFn>, aclDataType, std::int64_t, int>> {};

TEST_P(ScaleDotTest, HasTheBitsOfTheDefinition) {
  const auto& [variant, dtype, hidden, given] = GetParam();  // bits of given: row, bias, out
  std::mt19937 random(9);
  std::normal_distribution<float> normal;
  const auto bytes = static_cast<std::size_t>(bytes_of(dtype, hidden + 3));
  std::vector<std::byte> grad(bytes), row(bytes), bias(bytes), out(bytes, std::byte{0x5A}), want = out;
  for (std::int64_t h = 0; h < hidden; ++h)
    for (auto* operand : {&grad, &row, &bias}) set(*operand, dtype, h, normal(random));
  const float weight = normal(random);
  float sums[32] = {};
  for (std::int64_t h = 0; h < hidden; ++h) {
    const float operand =
        ((given & 1) != 0 ? value(row, dtype, h) : 0.0f) + ((given & 2) != 0 ? value(bias, dtype, h) : 0.0f);
    const float product = operand * value(grad, dtype, h);
    if ((given & 3) != 0) sums[h % 32] += product;
    if ((given & 4) != 0) set(want, dtype, h, value(grad, dtype, h) * weight);
  }
  for (int apart = 16; apart > 0; apart /= 2)
    for (int i = 0; i < apart; ++i) sums[i] += sums[i + apart];
  const float dot = variant.run({grad.data(), (given & 1) != 0 ? row.data() : nullptr,
                                 (given & 2) != 0 ? bias.data() : nullptr, weight,
                                 (given & 4) != 0 ? out.data() : nullptr, dtype, hidden});
  EXPECT_EQ(std::bit_cast<std::uint32_t>(dot), std::bit_cast<std::uint32_t>(sums[0]));
  EXPECT_TRUE(out == want);
}

std::string name_of(const testing::TestParamInfo<ScaleDotTest::ParamType>& info) {
  return std::string(std::get<0>(info.param).name) + "_" + moeyard::name_of(std::get<1>(info.param)) + "_" +
         std::to_string(std::get<2>(info.param)) + "_given" + std::to_string(std::get<3>(info.param));
}

INSTANTIATE_TEST_SUITE_P(
    EveryTarget, ScaleDotTest,
    testing::Combine(testing::ValuesIn(scale_dot_variants().begin(), scale_dot_variants().end()),
                     testing::Values(ACL_FLOAT, ACL_FLOAT16, ACL_BF16),
                     testing::Values(0, 1, 31, 32, 33, 97, 4096), testing::Values(1, 3, 4, 7)),
    name_of);

}  // namespace
}  // namespace moeyard::kernels
