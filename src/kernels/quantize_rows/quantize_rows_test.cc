// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <tuple>

#include "kernels/quantize_rows/quantize_rows_problem.h"

namespace moeyard::kernels {
namespace {

constexpr QuantizeRowsProblem::Shape kShapes[] = {
    {"nothing", 0, 2, 64, false},     {"one_element", 9, 2, 1, false},
    {"below_vector", 9, 2, 3, false}, {"at_vector", 9, 2, 16, true},
    {"off_vector", 9, 3, 37, false},  {"smooth", 9, 3, 37, true},
    {"at_chunk", 7, 2, 4096, false},  {"off_chunk", 7, 1, 4101, true},
    {"model_row", 7, 8, 7168, false}, {"alike", 9, 3, 4101, true, false, true},
};

constexpr Quantised kFormats[] = {
    {},
    {"e4m3", ACL_FLOAT8_E4M3FN},
    {"e5m2", ACL_FLOAT8_E5M2},
    {"e4m3_groups", ACL_FLOAT8_E4M3FN, QuantRule::groups},
    {"e5m2_groups", ACL_FLOAT8_E5M2, QuantRule::groups},
    {"e4m3_groups_over", ACL_FLOAT8_E4M3FN, QuantRule::groups_over},
    {"int8_fixed", ACL_INT8, QuantRule::fixed},
    {"int8_fixed_factor", ACL_INT8, QuantRule::fixed, 37.5f},
    {"hif8_cast", ACL_HIFLOAT8, QuantRule::fixed},
};

class QuantizeRowsTest
    : public testing::TestWithParam<
          std::tuple<Variant<QuantizeRowsFn>, QuantizeRowsProblem::Shape, aclDataType, bool, Quantised>> {};

TEST_P(QuantizeRowsTest, HasTheBitsOfTheDefinition) {
  const auto& [variant, shape, dtype, streaming, quantised] = GetParam();
  QuantizeRowsProblem problem(shape, dtype, streaming, quantised);
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

// The first of two in the low half of a byte.
TEST(QuantizeRowsInt4, HasTheBitsOfTheDefinition) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  for (const std::int64_t hidden : {2, 14, 34, 4102}) {
    constexpr std::int64_t kTokens = 3;
    std::vector<std::uint16_t> rows;
    std::vector<std::byte> want;
    std::vector<float> want_scales;
    for (std::int64_t t = 0; t < kTokens; ++t) {
      std::vector<float> y;
      float m = 0;
      for (std::int64_t h = 0; h < hidden; ++h) {
        rows.push_back(to_bf16(t == 1 ? 0.0f : normal(random)).bits);
        y.push_back(to_float(Bf16{rows.back()}));
        m = std::fmax(m, std::fabs(y.back()));
      }
      const float f = 7.0f / m;
      want_scales.push_back(m == 0 ? 0.0f : 1.0f / f);
      auto code = [&](std::int64_t h) {
        return m == 0 ? 0 : static_cast<int>(std::nearbyint(y[static_cast<std::size_t>(h)] * f)) & 0xF;
      };
      for (std::int64_t h = 0; h < hidden; h += 2)
        want.push_back(static_cast<std::byte>(code(h) | code(h + 1) << 4));
    }
    for (const auto& variant : quantize_rows_variants()) {
      std::vector<std::byte> out(want.size());
      std::vector<std::byte*> places;
      for (std::int64_t t = 0; t < kTokens; ++t) places.push_back(out.data() + t * hidden / 2);
      std::vector<float> scales(kTokens, -1.0f);
      variant.run({.rows = reinterpret_cast<const std::byte*>(rows.data()),
                   .row_stride = 2 * hidden,
                   .dtype = ACL_BF16,
                   .hidden = hidden,
                   .smooth_of_slot = nullptr,
                   .place_of_slot = places.data(),
                   .slots_per_token = 1,
                   .scale_of_slot = scales.data(),
                   .streaming = false,
                   .to = ACL_INT4},
                  {0, kTokens});
      EXPECT_TRUE(out == want) << variant.name << " " << hidden;
      EXPECT_EQ(scales, want_scales) << variant.name << " " << hidden;
    }
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
// What the rows are rounded to, alone: 1 * v * 1 - 0.
std::vector<std::byte> rounded(const Variant<QuantizeRowsFn>& variant, aclDataType to,
                               const std::vector<float>& values) {
  const std::vector<std::uint16_t> ones(values.size(), 0x3F80);
  std::vector<std::byte> out(values.size());
  std::byte* place = out.data();
  variant.run(
      {reinterpret_cast<const std::byte*>(ones.data()), 0, ACL_BF16, static_cast<std::int64_t>(values.size()),
       nullptr, &place, 1, nullptr, false, QuantRule::fixed, 1, -0.0f, to, values.data()},
      {0, 1});
  return out;
}

// Every number of the type, the middle between every two, their neighbours in fp32, and what lies beyond.
TEST(QuantizeRowsRounding, IsToTheNearestNumber) {
  for (const aclDataType to : {ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E5M2, ACL_INT8}) {
    std::vector<float> values{0.0f,     0x1p-149f, 0x1p-126f,
                              0x1p-30f, 1e30f,     0x1.fffffep127f,
                              INFINITY, NAN,       std::bit_cast<float>(0x7F800001u)};
    std::vector<float> numbers;
    for (int code = 0; code <= 0x7F; ++code) {
      const int mantissa_bits = to == ACL_FLOAT8_E4M3FN ? 3 : 2, bias = to == ACL_FLOAT8_E4M3FN ? 7 : 15;
      const int exponent = code >> mantissa_bits, mantissa = code & ((1 << mantissa_bits) - 1);
      const int implied = exponent == 0 ? 0 : 1 << mantissa_bits;
      numbers.push_back(to == ACL_INT8
                            ? static_cast<float>(code)
                            : static_cast<float>(std::ldexp(implied + mantissa,
                                                            std::max(exponent, 1) - bias - mantissa_bits)));
    }
    for (std::size_t i = 0; i + 1 < numbers.size(); ++i)
      for (const float value : {numbers[i], (numbers[i] + numbers[i + 1]) / 2, numbers[i + 1]})
        for (const float near : {std::nextafter(value, 0.0f), value, std::nextafter(value, INFINITY)})
          values.push_back(near);
    const std::size_t count = values.size();
    for (std::size_t i = 0; i < count; ++i) values.push_back(-values[i]);
    for (const auto& variant : quantize_rows_variants()) {
      const std::vector<std::byte> got = rounded(variant, to, values);
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(got[i], nearest(to, values[i])) << variant.name << " dtype " << to << ": " << values[i];
        // Rows that end here take the scalar path.
        ASSERT_EQ(rounded(variant, to, {values[i]})[0], got[i]) << variant.name << ": " << values[i];
      }
    }
  }
}

// Every number of HIFLOAT8, the middle between every two, their neighbours, and what lies beyond. The middle goes away from
// zero.
TEST(QuantizeRowsRounding, IsToTheNearestHifloat8) {
  std::vector<float> numbers,
      values{0.0f, 0x1p-149f, 1e30f, INFINITY, NAN, 0x1p-23f, 0x1.fffffep-24f, 40960.0f};
  for (int code = 0; code <= 0x7F; ++code)
    if (code != 0x6F) numbers.push_back(static_cast<float>(hif8_number(code)));
  std::sort(numbers.begin(), numbers.end());
  for (std::size_t i = 0; i + 1 < numbers.size(); ++i) {
    ASSERT_LT(numbers[i], numbers[i + 1]);
    for (const float value : {numbers[i], (numbers[i] + numbers[i + 1]) / 2, numbers[i + 1]})
      for (const float near : {std::nextafter(value, 0.0f), value, std::nextafter(value, INFINITY)})
        values.push_back(near);
  }
  const std::size_t count = values.size();
  for (std::size_t i = 0; i < count; ++i) values.push_back(-values[i]);
  for (const auto& variant : quantize_rows_variants()) {
    const std::vector<std::byte> got = rounded(variant, ACL_HIFLOAT8, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(got[i], nearest(ACL_HIFLOAT8, values[i])) << variant.name << ": " << values[i];
      ASSERT_EQ(rounded(variant, ACL_HIFLOAT8, {values[i]})[0], got[i]) << variant.name << ": " << values[i];
    }
  }
}

// Numbers that the nearest ones are known of without any rounding.
TEST(QuantizeRowsRounding, HasTheDocumentedBits) {
  struct Known {
    aclDataType to;
    float value;
    int code;
  };
  const Known known[] = {
      {ACL_FLOAT8_E4M3FN, 1, 0x38},     {ACL_FLOAT8_E4M3FN, 448, 0x7E},  {ACL_FLOAT8_E4M3FN, 1e9f, 0x7E},
      {ACL_FLOAT8_E4M3FN, -77, 0xEA},   {ACL_FLOAT8_E4M3FN, 0x1p-9f, 1}, {ACL_FLOAT8_E4M3FN, 0x1p-10f, 0},
      {ACL_FLOAT8_E4M3FN, 0x1p-6f, 8},  {ACL_FLOAT8_E4M3FN, NAN, 0x7F},  {ACL_FLOAT8_E5M2, 1, 0x3C},
      {ACL_FLOAT8_E5M2, 57344, 0x7B},   {ACL_FLOAT8_E5M2, -1e9f, 0xFB},  {ACL_FLOAT8_E5M2, 0x1p-16f, 1},
      {ACL_FLOAT8_E5M2, 0x1.8p-17f, 1}, {ACL_FLOAT8_E5M2, 0x1p-17f, 0},  {ACL_FLOAT8_E5M2, 0x1p-14f, 4},
      {ACL_HIFLOAT8, 1, 0x08},          {ACL_HIFLOAT8, -1.875f, 0x8F},   {ACL_HIFLOAT8, 2, 0x10},
      {ACL_HIFLOAT8, 0.5f, 0x18},       {ACL_HIFLOAT8, 1e9f, 0x6E},      {ACL_HIFLOAT8, 0x1p-22f, 0x01},
      {ACL_HIFLOAT8, 0x1p-23f, 0x01},   {ACL_HIFLOAT8, -0.0f, 0x00},     {ACL_HIFLOAT8, NAN, 0x80},
  };
  for (const auto& variant : quantize_rows_variants())
    for (const Known& k : known)
      EXPECT_EQ(static_cast<int>(rounded(variant, k.to, {k.value})[0]), k.code)
          << variant.name << ": " << k.value;
}

// A group of 128 whose largest element is 3: 3 * (1 / 448), which is neither 3 / 448 nor 1 / (448 / 3).
TEST(QuantizeRowsExamples, GroupsMultiplyByTheInverse) {
  for (const auto& variant : quantize_rows_variants()) {
    std::vector<std::uint16_t> row(130, 0);
    row[5] = to_bf16(-3.0f).bits, row[128] = to_bf16(3.0f).bits;
    std::vector<std::byte> out(130);
    std::byte* place = out.data();
    float scales[3] = {-1, -1, -1};
    variant.run({reinterpret_cast<const std::byte*>(row.data()), 260, ACL_BF16, 130, nullptr, &place, 1,
                 scales, false, QuantRule::groups, 1, 0, ACL_FLOAT8_E4M3FN},
                {0, 1});
    EXPECT_EQ(std::bit_cast<std::uint32_t>(scales[0]), 0x3bdb6db8u) << variant.name;
    EXPECT_EQ(std::bit_cast<std::uint32_t>(scales[1]), 0x3bdb6db8u) << variant.name;
    EXPECT_EQ(scales[2], -1) << variant.name;
    EXPECT_EQ(out[5], std::byte{0xFE});
    EXPECT_EQ(out[128], std::byte{0x7E});
  }
}

std::string name_of(const testing::TestParamInfo<QuantizeRowsTest::ParamType>& info) {
  return std::string(std::get<0>(info.param).name) + "_" + std::get<1>(info.param).name +
         (std::get<2>(info.param) == ACL_BF16 ? "_bf16" : "_fp16") +
         (std::get<3>(info.param) ? "_streaming_" : "_") + std::get<4>(info.param).name;
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, QuantizeRowsTest,
                         testing::Combine(testing::ValuesIn(quantize_rows_variants().begin(),
                                                            quantize_rows_variants().end()),
                                          testing::ValuesIn(kShapes), testing::Values(ACL_BF16, ACL_FLOAT16),
                                          testing::Bool(), testing::ValuesIn(kFormats)),
                         name_of);

}  // namespace
}  // namespace moeyard::kernels
