// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "kernels/weighted_sum/weighted_sum_problem.h"

namespace moeyard::kernels {
namespace {

constexpr WeightedSumProblem::Shape kShapes[] = {
    {"nothing", 0, 2, 64},     {"one_element", 6, 1, 1}, {"below_vector", 6, 3, 7}, {"at_vector", 6, 2, 64},
    {"off_vector", 11, 8, 93}, {"at_chunk", 5, 4, 2048}, {"off_chunk", 5, 3, 2051}, {"model_row", 6, 9, 7168},
};

class WeightedSumTest
    : public testing::TestWithParam<
          std::tuple<Variant<WeightedSumFn>, WeightedSumProblem::Shape, aclDataType, bool, bool>> {};

TEST_P(WeightedSumTest, HasTheBitsOfTheDefinition) {
  const auto& [variant, shape, dtype, streaming, round_products] = GetParam();
  WeightedSumProblem problem(shape, dtype, streaming, round_products);
  variant.run(problem.args(), problem.tokens());
  EXPECT_TRUE(problem.out() == problem.expected());
}

std::string name_of(const testing::TestParamInfo<WeightedSumTest::ParamType>& info) {
  return std::string(std::get<0>(info.param).name) + "_" + std::get<1>(info.param).name + "_" +
         moeyard::name_of(std::get<2>(info.param)) + (std::get<3>(info.param) ? "_streaming" : "") +
         (std::get<4>(info.param) ? "_rounded" : "");
}

INSTANTIATE_TEST_SUITE_P(
    EveryTarget, WeightedSumTest,
    testing::Combine(testing::ValuesIn(weighted_sum_variants().begin(), weighted_sum_variants().end()),
                     testing::ValuesIn(kShapes), testing::Values(ACL_FLOAT, ACL_BF16, ACL_FLOAT16),
                     testing::Bool(), testing::Bool()),
    name_of);

}  // namespace
}  // namespace moeyard::kernels
