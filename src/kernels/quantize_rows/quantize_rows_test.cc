// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <tuple>

#include "kernels/quantize_rows/quantize_rows_problem.h"

namespace moeyard::kernels {
namespace {

constexpr QuantizeRowsProblem::Shape kShapes[] = {
    {"nothing", 0, 2, 64, false},    {"one_element", 9, 2, 1, false}, {"below_vector", 9, 2, 3, false},
    {"at_vector", 9, 2, 16, true},   {"off_vector", 9, 3, 37, false}, {"smooth", 9, 3, 37, true},
    {"at_chunk", 7, 2, 4096, false}, {"off_chunk", 7, 1, 4101, true}, {"model_row", 7, 8, 7168, false},
};

class QuantizeRowsTest
    : public testing::TestWithParam<
          std::tuple<Variant<QuantizeRowsFn>, QuantizeRowsProblem::Shape, aclDataType, bool>> {};

TEST_P(QuantizeRowsTest, HasTheBitsOfTheDefinition) {
  const auto& [variant, shape, dtype, streaming] = GetParam();
  QuantizeRowsProblem problem(shape, dtype, streaming);
  variant.run(problem.args(), problem.tokens());
  const auto want = problem.expected();
  EXPECT_TRUE(problem.out() == want.rows);
  for (std::size_t s = 0; s < want.scales.size(); ++s)
    ASSERT_EQ(std::bit_cast<std::uint32_t>(problem.scales()[s]), std::bit_cast<std::uint32_t>(want.scales[s]))
        << s;
}

// Bits that were computed elsewhere, with other software.
TEST(QuantizeRowsExamples, AreThoseOfTheFormula) {
  struct Example {
    std::vector<float> row, smooth;
    std::vector<int> q;
    std::uint32_t scale;
  };
  const Example examples[] = {
      {{1, -2.5f, 0.3125f, 3}, {}, {42, -106, 13, 127}, 0x3cc18306},
      {{1, -2.5f, 0.3125f, 3}, {1, .5f, 2, 1}, {42, -53, 26, 127}, 0x3cc18306},
      {{0.6875f, 0, 0, 0}, {}, {127, 0, 0, 0}, 0x3bb162c5},  // 1 / (127 / m), which is not m / 127
  };
  for (const auto& variant : quantize_rows_variants())
    for (const Example& example : examples) {
      std::vector<std::uint16_t> row;
      for (const float value : example.row) row.push_back(to_bf16(value).bits);
      std::vector<std::byte> out(4);
      std::byte* place = out.data();
      const float* smooth = example.smooth.data();
      float scale = 0;
      variant.run({reinterpret_cast<const std::byte*>(row.data()), 8, ACL_BF16, 4,
                   example.smooth.empty() ? nullptr : &smooth, &place, 1, &scale, false},
                  {0, 1});
      for (std::size_t h = 0; h < 4; ++h)
        EXPECT_EQ(static_cast<std::int8_t>(out[h]), example.q[h]) << variant.name;
      EXPECT_EQ(std::bit_cast<std::uint32_t>(scale), example.scale) << variant.name;
    }
}

// The other rules, by plain loops over rows of every dtype: their ties, zeros, and values beyond INT8.
class QuantRulesTest : public testing::TestWithParam<
                           std::tuple<Variant<QuantizeRowsFn>, QuantRule, aclDataType, std::int64_t>> {};

TEST_P(QuantRulesTest, HaveTheBitsOfTheirDefinitions) {
  const auto& [variant, rule, dtype, hidden] = GetParam();
  std::mt19937 random(17);
  std::normal_distribution<float> normal;
  constexpr std::int64_t kTokens = 5;
  std::vector<std::byte> rows(static_cast<std::size_t>(bytes_of(dtype, kTokens * hidden)));
  std::vector<float> values;
  for (std::int64_t i = 0; i < kTokens * hidden; ++i) {
    float value = i / hidden == 3 ? 0.0f : normal(random) * 4;
    if (dtype == ACL_FLOAT) {
      reinterpret_cast<float*>(rows.data())[i] = value;
    } else {
      const std::uint16_t bits = dtype == ACL_BF16 ? to_bf16(value).bits : to_fp16(value).bits;
      reinterpret_cast<std::uint16_t*>(rows.data())[i] = bits;
      value = dtype == ACL_BF16 ? to_float(Bf16{bits}) : to_float(Fp16{bits});
    }
    values.push_back(value);
  }
  constexpr float kFactor = 33.3f, kOffset = 0.4f;
  auto fp16 = [](float value) { return to_float(to_fp16(value)); };
  std::vector<std::byte> out(static_cast<std::size_t>(kTokens * hidden)), want = out;
  std::vector<float> scales(kTokens, -1.0f), want_scales = scales;
  std::vector<std::byte*> places;
  for (std::int64_t t = 0; t < kTokens; ++t) {
    places.push_back(out.data() + t * hidden);
    float m = 0;
    for (std::int64_t h = 0; h < hidden; ++h)
      m = std::fmax(m, std::fabs(values[static_cast<std::size_t>(t * hidden + h)]));
    const float s = m / 127.0f;
    if (rule == QuantRule::over_127) want_scales[static_cast<std::size_t>(t)] = s;
    for (std::int64_t h = 0; h < hidden; ++h) {
      const float y = values[static_cast<std::size_t>(t * hidden + h)];
      float q = y * kFactor;
      q = q + kOffset;
      if (rule == QuantRule::fixed_fp16) q = fp16(fp16(fp16(y) * fp16(kFactor)) + fp16(kOffset));
      if (rule == QuantRule::over_127) q = s > 0 ? y / s : 0;
      q = std::fmin(127.0f, std::fmax(-128.0f, std::nearbyint(q)));
      want[static_cast<std::size_t>(t * hidden + h)] = static_cast<std::byte>(static_cast<std::int8_t>(q));
    }
  }
  variant.run({rows.data(), bytes_of(dtype, hidden), dtype, hidden, nullptr, places.data(), 1, scales.data(),
               false, rule, kFactor, kOffset},
              {0, kTokens});
  EXPECT_TRUE(out == want);
  EXPECT_EQ(scales, want_scales);
}

INSTANTIATE_TEST_SUITE_P(
    EveryTarget, QuantRulesTest,
    testing::Combine(testing::ValuesIn(quantize_rows_variants().begin(), quantize_rows_variants().end()),
                     testing::Values(QuantRule::over_127, QuantRule::fixed, QuantRule::fixed_fp16),
                     testing::Values(ACL_FLOAT, ACL_BF16, ACL_FLOAT16), testing::Values(1, 16, 37, 4101)));

std::string name_of(const testing::TestParamInfo<QuantizeRowsTest::ParamType>& info) {
  return std::string(std::get<0>(info.param).name) + "_" + std::get<1>(info.param).name +
         (std::get<2>(info.param) == ACL_BF16 ? "_bf16" : "_fp16") +
         (std::get<3>(info.param) ? "_streaming" : "");
}

INSTANTIATE_TEST_SUITE_P(
    EveryTarget, QuantizeRowsTest,
    testing::Combine(testing::ValuesIn(quantize_rows_variants().begin(), quantize_rows_variants().end()),
                     testing::ValuesIn(kShapes), testing::Values(ACL_BF16, ACL_FLOAT16), testing::Bool()),
    name_of);

}  // namespace
}  // namespace moeyard::kernels
