// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/gather_rows/gather_rows.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace moeyard::kernels {
namespace {

struct Shape {
  const char* name;
  std::int64_t rows, out_rows, row_bytes, gap;  // gap: bytes between rows, to misalign them
};
constexpr Shape kShapes[] = {
    {"nothing", 3, 0, 64, 0},    {"no_rows", 0, 3, 64, 0},      {"one_byte", 3, 4, 1, 0},
    {"below_line", 5, 9, 63, 1}, {"at_line", 5, 9, 64, 0},      {"off_line", 7, 30, 387, 1},
    {"streamed", 4, 9, 256, 0},  {"misaligned", 4, 9, 1031, 7}, {"model_row", 5, 12, 14336, 0},
};

class GatherRowsTest : public testing::TestWithParam<std::tuple<Variant<GatherRowsFn>, Shape, bool, bool>> {};

TEST_P(GatherRowsTest, CopiesWhatTheIndexNames) {
  const auto& [variant, shape, zero_others, streaming] = GetParam();
  std::mt19937 random(3);
  const std::int64_t stride = shape.row_bytes + shape.gap;
  std::vector<std::byte> rows(static_cast<std::size_t>(shape.rows * stride) + 1);
  for (std::byte& byte : rows) byte = static_cast<std::byte>(random());
  std::vector<std::int32_t> index;
  for (std::int64_t i = 0; i < shape.out_rows; ++i)
    index.push_back(i % 5 == 4   ? (i % 2 == 0 ? -1 : static_cast<std::int32_t>(shape.rows))
                    : shape.rows ? static_cast<std::int32_t>(random() % shape.rows)
                                 : 0);
  std::vector<std::byte> out(static_cast<std::size_t>(shape.out_rows * stride) + 1, std::byte{0xAB}),
      want = out;
  for (std::int64_t i = 0; i < shape.out_rows; ++i)
    for (std::int64_t b = 0; b < shape.row_bytes; ++b) {
      const std::int64_t row = index[static_cast<std::size_t>(i)];
      std::byte& to = want[static_cast<std::size_t>(i * stride + b)];
      if (0 <= row && row < shape.rows)
        to = rows[static_cast<std::size_t>(row * stride + b)];
      else if (zero_others)
        to = std::byte{0};
    }
  const GatherRows args{rows.data(), stride, shape.rows,  shape.row_bytes, index.data(),
                        out.data(),  stride, zero_others, streaming};
  variant.run(args, {shape.out_rows / 2, shape.out_rows});
  variant.run(args, {0, shape.out_rows / 2});
  EXPECT_TRUE(out == want);
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, GatherRowsTest,
                         testing::Combine(testing::ValuesIn(gather_rows_variants().begin(),
                                                            gather_rows_variants().end()),
                                          testing::ValuesIn(kShapes), testing::Bool(), testing::Bool()),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + "_" +
                                  std::get<1>(info.param).name + (std::get<2>(info.param) ? "_zero" : "") +
                                  (std::get<3>(info.param) ? "_streaming" : "");
                         });

}  // namespace
}  // namespace moeyard::kernels
