// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "kernels/quantized_sum/quantized_sum_problem.h"

namespace moeyard::kernels {
namespace {

constexpr QuantizedSumProblem::Shape kShapes[] = {
    {"nothing", 0, 2, 64},    {"one_element", 6, 1, 1}, {"below_group", 11, 3, 7},  {"one_block", 11, 2, 32},
    {"off_block", 11, 8, 93}, {"at_chunk", 5, 4, 2048}, {"off_chunk", 10, 3, 2099},
};

class QuantizedSumTest
    : public testing::TestWithParam<std::tuple<Variant<QuantizedSumFn>, aclDataType, CommQuant>> {};

// NaN of any bits are one.
std::vector<std::uint16_t> plain(std::vector<std::uint16_t> values, aclDataType dtype) {
  const int infinity = dtype == ACL_BF16 ? 0x7F80 : 0x7C00;
  for (std::uint16_t& bits : values)
    if ((bits & 0x7FFF) > infinity) bits = 0x7FFF;
  return values;
}

TEST_P(QuantizedSumTest, HasTheBitsOfTheDefinition) {
  const auto& [variant, dtype, quant] = GetParam();
  for (const auto& shape : kShapes) {
    QuantizedSumProblem problem(shape, dtype, quant);
    const auto want = plain(problem.expected(), dtype);
    for (const bool streaming : {false, true}) {
      problem.forget();
      variant.run(problem.args(streaming), problem.tokens());
      EXPECT_TRUE(plain(problem.out(), dtype) == want) << shape.name << (streaming ? " streaming" : "");
    }
  }
}

std::string name_of(const testing::TestParamInfo<QuantizedSumTest::ParamType>& info) {
  constexpr const char* kNames[] = {"int8", "e5m2", "e4m3"};
  return std::string(std::get<0>(info.param).name) + "_" + moeyard::name_of(std::get<1>(info.param)) + "_" +
         kNames[static_cast<int>(std::get<2>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, QuantizedSumTest,
                         testing::Combine(testing::ValuesIn(quantized_sum_variants().begin(),
                                                            quantized_sum_variants().end()),
                                          testing::Values(ACL_BF16, ACL_FLOAT16),
                                          testing::Values(CommQuant::int8, CommQuant::e5m2, CommQuant::e4m3)),
                         name_of);

// Numbers that were worked out elsewhere.
TEST(QuantizedSumExamples, AreThoseOfTheFormula) {
  struct Example {
    CommQuant quant;
    std::vector<float> row, left;
  };
  const Example examples[] = {
      {CommQuant::int8,
       {1, -2, .5f, .25f, 3, -.75f, 0, 1.5f},
       {0.99609375f, -2.015625f, 0.498046875f, 0.259765625f, 3, -0.7578125f, 0, 1.515625f}},
      {CommQuant::e4m3, {1, 1.9375f, -0.3f}, {1, 1.75f, -0.3125f}},
      {CommQuant::e4m3, {1, -0.8125f, 7.5f, 0.01f, 448, 500}, {1, -0.8125f, 7.5f, 0.009765625f, 448, 448}},
      {CommQuant::e5m2, {1, -1.125f, 0.0625f, 1.875f}, {1, -1, 0.0625f, 1.75f}},
  };
  for (const auto& variant : quantized_sum_variants())
    for (const Example& example : examples) {
      std::vector<std::uint16_t> row, out(example.row.size());
      for (const float value : example.row) row.push_back(to_bf16(value).bits);
      const Term term{reinterpret_cast<const std::byte*>(row.data()), nullptr, 1, 1, 0, true};
      const std::int32_t count = 1;
      variant.run({{&term, 1, &count, ACL_BF16, static_cast<std::int64_t>(row.size()),
                    reinterpret_cast<std::byte*>(out.data()), 0, false},
                   example.quant},
                  {0, 1});
      for (std::size_t h = 0; h < out.size(); ++h)
        EXPECT_EQ(to_float(Bf16{out[h]}), example.left[h]) << variant.name << " " << h;
    }
}

}  // namespace
}  // namespace moeyard::kernels
