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
