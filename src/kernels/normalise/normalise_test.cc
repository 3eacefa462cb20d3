// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/normalise/normalise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/numbers.h"

namespace moeyard::kernels {
namespace {

class NormaliseTest : public testing::TestWithParam<Variant<NormaliseFn>> {
 protected:
  static std::vector<float> run(NormaliseFn normalise, const std::vector<float>& x, Normalisation kind) {
    std::vector<float> to(x.size() + 1, -7.0f);
    normalise({reinterpret_cast<const std::byte*>(x.data()), ACL_FLOAT, 1, to.data(),
               static_cast<std::int64_t>(x.size()), kind});
    EXPECT_EQ(to.back(), -7.0f) << "writes past the row";
    to.pop_back();
    return to;
  }
  std::vector<float> run(const std::vector<float>& x, Normalisation kind) {
    return run(GetParam().run, x, kind);
  }
};

constexpr Normalisation kKinds[] = {Normalisation::widen, Normalisation::softmax, Normalisation::sigmoid,
                                    Normalisation::sqrt_softplus};
constexpr std::size_t kSizes[] = {1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 63, 64, 100, 256, 1000};

std::vector<float> random_row(std::size_t n, float width) {
  std::mt19937 random(static_cast<unsigned>(n));
  std::normal_distribution<float> normal(0, width);
  std::vector<float> row(n);
  for (float& value : row) value = normal(random);
  return row;
}

double by_definition(const std::vector<float>& x, std::size_t i, Normalisation kind) {
  const double value = x[i];
  if (kind == Normalisation::widen) return value;
  if (kind == Normalisation::sigmoid) return 1 / (1 + std::exp(-value));
  if (kind == Normalisation::sqrt_softplus)
    return std::sqrt(std::max(value, 0.0) + std::log1p(std::exp(-std::fabs(value))));
  const float max = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (const float other : x) sum += std::exp(double{other - max});
  return std::exp(double{x[i] - max}) / sum;
}

TEST_P(NormaliseTest, IsWithinAFewUnitsOfTheDefinition) {
  for (const std::size_t n : kSizes)
    for (const float width : {0.01f, 1.0f, 15.0f})
      for (const Normalisation kind : kKinds) {
        const std::vector<float> x = random_row(n, width);
        const std::vector<float> got = run(x, kind);
        for (std::size_t i = 0; i < n; ++i) {
          const double want = by_definition(x, i, kind);
          ASSERT_NEAR(got[i], want, 6e-7 * std::fabs(want)) << "element " << i << " of " << n << ", " << x[i];
        }
      }
}

TEST_P(NormaliseTest, HasTheBitsOfEveryOtherTarget) {
  for (const std::size_t n : kSizes)
    for (const float width : {1.0f, 60.0f})
      for (const Normalisation kind : kKinds) {
        const std::vector<float> x = random_row(n, width);
        const std::vector<float> got = run(x, kind), plain = run(normalise_variants().back().run, x, kind);
        ASSERT_EQ(std::memcmp(got.data(), plain.data(), n * 4), 0) << n << " elements, width " << width;
      }
}

TEST_P(NormaliseTest, ReachesTheEndsOfFp32) {
  const float inf = INFINITY;
  const std::vector<float> x = {-inf, -1e30f, -200, -87.5f, -0.0f, 0, 87.5f, 200, 1e30f, inf};
  const std::vector<float> sigmoid = run(x, Normalisation::sigmoid);
  EXPECT_EQ(sigmoid.front(), 0);
  EXPECT_EQ(sigmoid[4], 0.5f);
  EXPECT_EQ(sigmoid.back(), 1);
  const std::vector<float> softplus = run(x, Normalisation::sqrt_softplus);
  EXPECT_EQ(softplus.front(), 0);
  EXPECT_EQ(softplus[8], std::sqrt(1e30f));
  EXPECT_EQ(softplus.back(), inf);
  const std::vector<float> softmax = run({-inf, 0, -103, -104, -3e38f}, Normalisation::softmax);
  EXPECT_EQ(softmax[0], 0);
  EXPECT_EQ(softmax[1], 1);
  EXPECT_EQ(softmax[2], 0x1p-149f);  // the smallest number
  EXPECT_EQ(softmax[3], 0);
  EXPECT_EQ(softmax[4], 0);
}

TEST_P(NormaliseTest, KeepsNaN) {
  const float nan = std::nanf("");
  for (const Normalisation kind :
       {Normalisation::sigmoid, Normalisation::sqrt_softplus, Normalisation::widen}) {
    const std::vector<float> got = run({1, nan, 2}, kind);
    EXPECT_TRUE(std::isnan(got[1]));
    EXPECT_FALSE(std::isnan(got[0]) || std::isnan(got[2]));
  }
  for (const float value : run({1, nan, 2}, Normalisation::softmax)) EXPECT_TRUE(std::isnan(value));
  for (const float value : run({nan, 1, 2}, Normalisation::softmax)) EXPECT_TRUE(std::isnan(value));
}

TEST_P(NormaliseTest, ReadsHalvesAndStepsAsDenseFloats) {
  const std::vector<float> row = random_row(77, 2);
  std::vector<Bf16> brain(3 * row.size());
  std::vector<Fp16> half(3 * row.size());
  std::vector<float> of_brain, of_half;
  for (std::size_t i = 0; i < row.size(); ++i) {
    brain[3 * i] = to_bf16(row[i]), half[3 * i] = to_fp16(row[i]);
    of_brain.push_back(to_float(brain[3 * i])), of_half.push_back(to_float(half[3 * i]));
  }
  for (const Normalisation kind : kKinds) {
    std::vector<float> got(row.size());
    const auto n = static_cast<std::int64_t>(row.size());
    GetParam().run({reinterpret_cast<const std::byte*>(brain.data()), ACL_BF16, 3, got.data(), n, kind});
    EXPECT_EQ(got, run(of_brain, kind));
    GetParam().run({reinterpret_cast<const std::byte*>(half.data()), ACL_FLOAT16, 3, got.data(), n, kind});
    EXPECT_EQ(got, run(of_half, kind));
  }
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, NormaliseTest,
                         testing::ValuesIn(normalise_variants().begin(), normalise_variants().end()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace moeyard::kernels
