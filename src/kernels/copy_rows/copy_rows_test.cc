// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "kernels/copy_rows/copy_rows_problem.h"

namespace moeyard::kernels {
namespace {

constexpr CopyRowsProblem::Shape kShapes[] = {
    {"nothing", 0, 2, 64, 0},      {"one_byte", 3, 1, 1, 0},         {"below_line", 3, 2, 63, 1},
    {"at_line", 3, 2, 64, 0},      {"below_streamed", 4, 3, 255, 3}, {"at_streamed", 4, 3, 256, 0},
    {"off_line", 5, 8, 387, 1},    {"misaligned", 7, 4, 1024, 7},    {"wide_gap", 3, 5, 640, 129},
    {"model_row", 6, 8, 14336, 0},
};

class CopyRowsTest
    : public testing::TestWithParam<std::tuple<Variant<CopyRowsFn>, CopyRowsProblem::Shape, bool>> {};

TEST_P(CopyRowsTest, WritesEveryPlaceAndNothingElse) {
  const auto& [variant, shape, streaming] = GetParam();
  CopyRowsProblem problem(shape, streaming);
  variant.run(problem.args(), problem.tokens());
  EXPECT_TRUE(problem.out() == problem.expected());
}

TEST_P(CopyRowsTest, TwoHalvesAreTheWhole) {
  const auto& [variant, shape, streaming] = GetParam();
  CopyRowsProblem problem(shape, streaming);
  variant.run(problem.args(), {shape.tokens / 2, shape.tokens});
  variant.run(problem.args(), {0, shape.tokens / 2});
  EXPECT_TRUE(problem.out() == problem.expected());
}

std::string name_of(const testing::TestParamInfo<CopyRowsTest::ParamType>& info) {
  return std::string(std::get<0>(info.param).name) + "_" + std::get<1>(info.param).name +
         (std::get<2>(info.param) ? "_streaming" : "");
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, CopyRowsTest,
                         testing::Combine(testing::ValuesIn(copy_rows_variants().begin(),
                                                            copy_rows_variants().end()),
                                          testing::ValuesIn(kShapes), testing::Bool()),
                         name_of);

}  // namespace
}  // namespace moeyard::kernels
