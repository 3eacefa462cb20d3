// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/finish_tile/finish_tile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/numbers.h"

namespace moeyard::kernels {
namespace {

constexpr std::int64_t kRows = 5, kStride = 130;

// A tile whose sums, scales and biases are drawn at random; each field may be switched off before it is run.
struct Problem {
  std::int64_t columns;
  bool integer_sum = false;
  aclDataType bias = ACL_DT_UNDEFINED, scale = ACL_DT_UNDEFINED;  // ACL_DT_UNDEFINED: not given
  bool row_scale = false;
  Activation activation = Activation::none;
  aclDataType to = ACL_FLOAT;
  std::int64_t to_step = 1;

  std::vector<float> sums, biases, scales, row_scales;
  std::vector<std::int32_t> integer_sums, integer_biases, offsets;

  explicit Problem(std::int64_t columns) : columns(columns) {
    std::mt19937 random(static_cast<unsigned>(columns));
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < kRows * kStride; ++i) {
      sums.push_back(3 * normal(random));
      integer_sums.push_back(static_cast<std::int32_t>(random() % 20000) - 10000);
    }
    for (std::int64_t c = 0; c < columns; ++c) {
      biases.push_back(to_float(to_bf16(normal(random))));
      integer_biases.push_back(static_cast<std::int32_t>(random() % 2000) - 1000);
      scales.push_back(to_float(to_bf16(0.001f + std::fabs(normal(random)) * 0.001f)));
      offsets.push_back(static_cast<std::int32_t>(random() % 512) - 256);
    }
    for (std::int64_t r = 0; r < kRows; ++r) row_scales.push_back(std::fabs(normal(random)));
  }

  std::vector<std::uint8_t> run(FinishTileFn finish) const {
    std::vector<std::uint8_t> bias_bytes, scale_bytes;
    for (std::size_t c = 0; c < biases.size(); ++c) {
      if (bias == ACL_INT32) append(bias_bytes, integer_biases[c]);
      if (bias == ACL_FLOAT) append(bias_bytes, biases[c]);
      if (bias == ACL_BF16) append(bias_bytes, to_bf16(biases[c]));
      if (bias == ACL_FLOAT16) append(bias_bytes, to_fp16(biases[c]));
      if (scale == ACL_FLOAT) append(scale_bytes, scales[c]);
      if (scale == ACL_BF16) append(scale_bytes, to_bf16(scales[c]));
      if (scale == ACL_UINT64)
        append(scale_bytes, std::uint64_t{std::bit_cast<std::uint32_t>(scales[c])} | UINT64_C(1) << 46 |
                                std::uint64_t{static_cast<std::uint32_t>(offsets[c]) & 0x1FFu} << 37);
    }
    const std::int64_t row_bytes = bytes_of(to, columns * to_step);
    std::vector<std::uint8_t> out(static_cast<std::size_t>(kRows * row_bytes), 0x5A);
    std::vector<std::byte*> rows;
    for (std::int64_t r = 0; r < kRows; ++r)
      rows.push_back(reinterpret_cast<std::byte*>(out.data()) + r * row_bytes);
    const auto per_column = [](std::vector<std::uint8_t>& bytes, aclDataType dtype) {
      return FinishTile::PerColumn{bytes.empty() ? nullptr : reinterpret_cast<const std::byte*>(bytes.data()),
                                   dtype, 1};
    };
    finish({integer_sum ? static_cast<const void*>(integer_sums.data()) : sums.data(), kStride, integer_sum,
            kRows, columns, per_column(bias_bytes, bias), per_column(scale_bytes, scale),
            row_scale ? row_scales.data() : nullptr, 1, activation, rows.data(), to, to_step});
    return out;
  }

  // What is rounded to `to`, up to the error of the activation.
  double by_definition(std::int64_t r, std::int64_t c) const {
    const auto at = static_cast<std::size_t>(r * kStride + c);
    const auto column = static_cast<std::size_t>(c);
    float f = sums[at];
    if (integer_sum)
      f = static_cast<float>(integer_sums[at] + (bias == ACL_INT32 ? integer_biases[column] : 0));
    if (scale != ACL_DT_UNDEFINED) f = f * scales[column];
    if (row_scale) f = f * row_scales[static_cast<std::size_t>(r)];
    if (bias != ACL_DT_UNDEFINED && bias != ACL_INT32) f = f + biases[column];
    const double v = f;
    switch (activation) {
      case Activation::relu:
        return std::max(v, 0.0);
      case Activation::gelu_tanh:
        return 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
      case Activation::fast_gelu:
        return v / (1 + std::exp(-1.702 * v));
      case Activation::silu:
        return v / (1 + std::exp(-v));
      default:
        return v;
    }
  }

 private:
  template <class T>
  static void append(std::vector<std::uint8_t>& bytes, T value) {
    const auto* raw = reinterpret_cast<const std::uint8_t*>(&value);
    bytes.insert(bytes.end(), raw, raw + sizeof(T));
  }
};

template <class T>
T element(const Problem& problem, const std::vector<std::uint8_t>& out, std::int64_t r, std::int64_t c) {
  T value;
  std::memcpy(&value, &out[static_cast<std::size_t>((r * problem.columns + c) * problem.to_step) * sizeof(T)],
              sizeof(T));
  return value;
}

class FinishTileTest : public testing::TestWithParam<Variant<FinishTileFn>> {
 protected:
  // Every element of the result, also against the plain target's bits.
  template <class Check>
  void for_each(const Problem& problem, Check&& check) {
    const auto out = problem.run(GetParam().run);
    ASSERT_EQ(out, problem.run(finish_tile_variants().back().run)) << "bits differ from the plain target";
    for (std::int64_t r = 0; r < kRows; ++r)
      for (std::int64_t c = 0; c < problem.columns; ++c) check(out, r, c);
  }
  void expect_floats(const Problem& problem) {
    for_each(problem, [&](const auto& out, std::int64_t r, std::int64_t c) {
      const double want = problem.by_definition(r, c);
      // gelu_tanh cancels where v is far below 0: its error is one of v, not of the result.
      const double slack =
          problem.activation == Activation::none || problem.activation == Activation::relu ? 0 : 2e-6;
      const double rounding = problem.to == ACL_FLOAT ? 0 : problem.to == ACL_BF16 ? 0x1p-8 : 0x1p-11;
      const double got = problem.to == ACL_FLOAT  ? element<float>(problem, out, r, c)
                         : problem.to == ACL_BF16 ? to_float(element<Bf16>(problem, out, r, c))
                                                  : to_float(element<Fp16>(problem, out, r, c));
      const double smallest = problem.to == ACL_FLOAT16 ? 0x1p-25 : 0;
      EXPECT_NEAR(got, want, (rounding + slack) * std::fabs(want) + slack + smallest);
    });
  }
};

constexpr std::int64_t kColumns[] = {1, 3, 8, 16, 31, 100, 128};

TEST_P(FinishTileTest, AddsABiasOfEveryType) {
  for (const std::int64_t columns : kColumns)
    for (const aclDataType bias : {ACL_DT_UNDEFINED, ACL_FLOAT, ACL_FLOAT16, ACL_BF16})
      for (const aclDataType to : {ACL_FLOAT, ACL_FLOAT16, ACL_BF16})
        for (const std::int64_t step : {1, 2}) {
          Problem problem(columns);
          problem.bias = bias, problem.to = to, problem.to_step = step;
          if (bias == ACL_FLOAT16)
            for (float& value : problem.biases) value = to_float(to_fp16(value));
          expect_floats(problem);
        }
}

TEST_P(FinishTileTest, ScalesIntegerSumsByColumnThenByRow) {
  for (const std::int64_t columns : kColumns)
    for (const aclDataType scale : {ACL_FLOAT, ACL_BF16})
      for (const aclDataType bias : {ACL_DT_UNDEFINED, ACL_INT32, ACL_BF16})
        for (const bool row_scale : {false, true}) {
          Problem problem(columns);
          problem.integer_sum = true, problem.scale = scale, problem.bias = bias,
          problem.row_scale = row_scale;
          for (problem.to = ACL_FLOAT; true; problem.to = ACL_BF16) {
            expect_floats(problem);
            if (problem.to == ACL_BF16) break;
          }
        }
}

TEST_P(FinishTileTest, Activates) {
  for (const Activation activation :
       {Activation::relu, Activation::gelu_tanh, Activation::fast_gelu, Activation::silu})
    for (const std::int64_t columns : kColumns) {
      Problem problem(columns);
      problem.activation = activation;
      expect_floats(problem);
    }
}

TEST_P(FinishTileTest, HandsExactIntegersOn) {
  for (const aclDataType bias : {ACL_DT_UNDEFINED, ACL_INT32}) {
    Problem problem(100);
    problem.integer_sum = true, problem.bias = bias, problem.to = ACL_INT32;
    for_each(problem, [&](const auto& out, std::int64_t r, std::int64_t c) {
      ASSERT_EQ(element<std::int32_t>(problem, out, r, c), problem.by_definition(r, c));
    });
  }
}

TEST_P(FinishTileTest, RoundsToEvenAndClampsToINT8WithAnOffset) {
  Problem problem(128);
  problem.integer_sum = true, problem.scale = ACL_UINT64, problem.to = ACL_INT8;
  for (float& scale : problem.scales) scale = 0.5f;  // ties
  for (std::int32_t& sum : problem.integer_sums) sum /= 30;
  for_each(problem, [&](const auto& out, std::int64_t r, std::int64_t c) {
    const double rounded =
        std::nearbyint(problem.by_definition(r, c)) + problem.offsets[static_cast<std::size_t>(c)];
    ASSERT_EQ(element<std::int8_t>(problem, out, r, c), std::min(std::max(rounded, -128.0), 127.0));
  });
}

TEST_P(FinishTileTest, MakesZeroOfNaNAndTheEndsOfInfinityInINT8) {
  Problem problem(3);
  problem.integer_sum = true, problem.scale = ACL_UINT64, problem.to = ACL_INT8;
  problem.scales = {std::nanf(""), INFINITY, -INFINITY};
  problem.offsets = {5, 0, 0};
  std::fill(problem.integer_sums.begin(), problem.integer_sums.end(), 7);
  const auto out = problem.run(GetParam().run);
  EXPECT_EQ(element<std::int8_t>(problem, out, 0, 0), 5);
  EXPECT_EQ(element<std::int8_t>(problem, out, 0, 1), 127);
  EXPECT_EQ(element<std::int8_t>(problem, out, 0, 2), -128);
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, FinishTileTest,
                         testing::ValuesIn(finish_tile_variants().begin(), finish_tile_variants().end()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace moeyard::kernels
