// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "kernels/mx_rows/mx_rows_problem.h"

namespace moeyard::kernels {
namespace {

using Shape = MxRowsProblem::Shape;
using Scaling = MxRowsProblem::Scaling;

constexpr Shape kShapes[] = {{"nothing", 0, 2, 64},     {"two_elements", 9, 2, 2}, {"one_block", 18, 2, 32},
                             {"off_block", 18, 3, 134}, {"at_chunk", 2, 2, 4096},  {"off_chunk", 5, 8, 4166}};
constexpr Scaling kScalings[] = {{"floor"},
                                 {"carry", MxRule::carry},
                                 {"carry_least", MxRule::carry, 1e-4f},
                                 {"cover_least", MxRule::cover, 1e-4f},
                                 {"cover", MxRule::cover},
                                 {"carry_128", MxRule::carry, 0, 128},
                                 {"carry_128_least", MxRule::carry, 1e-4f, 128}};

class MxRowsTest
    : public testing::TestWithParam<std::tuple<Variant<MxRowsFn>, aclDataType, MxType, Scaling>> {};

TEST_P(MxRowsTest, HasTheBitsOfTheDefinition) {
  const auto& [variant, dtype, to, scaling] = GetParam();
  for (const Shape& shape : kShapes) {
    MxRowsProblem problem(shape, dtype, to, scaling);
    const auto want = problem.expected();
    for (const bool streaming : {false, true}) {
      problem.forget();
      variant.run(problem.args(streaming), problem.tokens());
      EXPECT_TRUE(problem.scales() == want.scales) << shape.name << (streaming ? " streaming" : "");
      EXPECT_TRUE(problem.out() == want.rows) << shape.name << (streaming ? " streaming" : "");
    }
  }
}

std::string name_of(const testing::TestParamInfo<MxRowsTest::ParamType>& info) {
  const auto& [variant, dtype, to, scaling] = info.param;
  std::string to_name = moeyard::name_of(to.dtype);
  return std::string(variant.name) + "_" + moeyard::name_of(dtype) + "_" + to_name + "_" + scaling.name;
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, MxRowsTest,
                         testing::Combine(testing::ValuesIn(mx_rows_variants().begin(),
                                                            mx_rows_variants().end()),
                                          testing::Values(ACL_FLOAT, ACL_BF16, ACL_FLOAT16),
                                          testing::ValuesIn(kMxTypes), testing::ValuesIn(kScalings)),
                         name_of);

// An odd number of elements, which FP8 rows may have.
TEST(MxRowsShapes, MayBeOdd) {
  for (const auto& variant : mx_rows_variants())
    for (const std::int64_t hidden : {1, 31, 33, 97}) {
      MxRowsProblem problem({"odd", 9, 2, hidden}, ACL_BF16, kMxTypes[1], {"floor"});
      variant.run(problem.args(false), problem.tokens());
      EXPECT_TRUE(problem.out() == problem.expected().rows) << variant.name << " " << hidden;
      EXPECT_TRUE(problem.scales() == problem.expected().scales) << variant.name << " " << hidden;
    }
}

struct Quantised {
  std::vector<int> codes, scales;
};
Quantised quantised(const Variant<MxRowsFn>& variant, const std::vector<float>& values, aclDataType to,
                    MxRule rule = MxRule::floor, float least = 0) {
  std::vector<std::uint16_t> row;
  for (const float value : values) row.push_back(to_bf16(value).bits);
  const auto hidden = static_cast<std::int64_t>(row.size());
  std::vector<std::byte> out(static_cast<std::size_t>(bytes_of(to, hidden)));
  std::vector<std::byte> scales(static_cast<std::size_t>(MxRows::scales_per_row(hidden)), std::byte{0x55});
  std::byte* place = out.data();
  variant.run({reinterpret_cast<const std::byte*>(row.data()), 0, ACL_BF16, hidden, &place, 1, scales.data(),
               0, false, to, rule, least},
              {0, 1});
  Quantised made;
  for (const std::byte b : out) made.codes.push_back(static_cast<int>(b));
  for (const std::byte b : scales) made.scales.push_back(static_cast<int>(b));
  return made;
}

// Blocks whose scales and numbers are known without any rounding of ours.
TEST(MxRowsExamples, AreThoseOfTheFormula) {
  for (const auto& variant : mx_rows_variants()) {
    SCOPED_TRACE(variant.name);
    // 2^8 is the largest exponent: scale 2^0. 500 is beyond the largest number, and saturates.
    const Quantised plain = quantised(variant, {1, -0.8125f, 7.5f, 0.01f, 448, 500}, ACL_FLOAT8_E4M3FN);
    EXPECT_EQ(plain.codes, (std::vector<int>{0x38, 0xB5, 0x4F, 0x05, 0x7E, 0x7E}));
    EXPECT_EQ(plain.scales, (std::vector<int>{127, 0}));
    // 2^0: scale 2^-8. 496 saturates, and -77 becomes -80.
    const Quantised scaled = quantised(variant, {1, 1.9375f, -0.3f}, ACL_FLOAT8_E4M3FN);
    EXPECT_EQ(scaled.codes, (std::vector<int>{0x78, 0x7E, 0xEA}));
    EXPECT_EQ(scaled.scales, (std::vector<int>{119, 0}));
    // 1.9375 is above 1.75, so that nothing saturates: the values are 128, 248 and -38.5, which becomes -40.
    const Quantised carried = quantised(variant, {1, 1.9375f, -0.3f}, ACL_FLOAT8_E4M3FN, MxRule::carry);
    EXPECT_EQ(carried.codes, (std::vector<int>{0x70, 0x78, 0xE2}));
    EXPECT_EQ(carried.scales, (std::vector<int>{120, 0}));
    // 448 / 448 = 1 is a power of two; 449 would need the next one.
    EXPECT_EQ(quantised(variant, {448, 1}, ACL_FLOAT8_E4M3FN, MxRule::cover, 1e-4f).scales[0], 127);
    EXPECT_EQ(quantised(variant, {450, 1}, ACL_FLOAT8_E4M3FN, MxRule::cover, 1e-4f).scales[0], 128);
    // Two to a byte, the first one in the low half: 6 and -0.5, 1.5 and 0. 2^2 is the largest exponent of E2M1.
    const Quantised halves = quantised(variant, {6, -0.5f, 1.5f, 0}, ACL_FLOAT4_E2M1);
    EXPECT_EQ(halves.codes, (std::vector<int>{0x97, 0x03}));
    EXPECT_EQ(halves.scales, (std::vector<int>{127, 0}));
    const Quantised quarters = quantised(variant, {1.75f, -0.25f}, ACL_FLOAT4_E1M2);
    EXPECT_EQ(quarters.codes, (std::vector<int>{0x97}));
    EXPECT_EQ(quarters.scales, (std::vector<int>{127, 0}));
  }
}

}  // namespace
}  // namespace moeyard::kernels
