// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnGelu and aclnnGeluV2.
#include <gtest/gtest.h>

#include <cmath>

#include "aclnnop/aclnn_gelu.h"
#include "aclnnop/aclnn_gelu_v2.h"
#include "support/device.h"
#include "support/refusals.h"

namespace oracle {
namespace {

using Shape = std::vector<std::int64_t>;
enum class Form { gelu, erf, tanh };  // aclnnGelu; aclnnGeluV2 with approximate 0 and 1

double definition(Form form, double x) {
  if (form == Form::erf) return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
  const double u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  return x / (1 + std::exp(-2 * u));  // 0.5 x (1 + tanh(u)) without losing digits
}

class GeluTest : public testing::Test {
 protected:
  int gelu(Form form, const Tensor& x, const Tensor& y) {
    return run(
        [&](auto* size, auto** executor) {
          return form == Form::gelu
                     ? aclnnGeluGetWorkspaceSize(x, y, size, executor)
                     : aclnnGeluV2GetWorkspaceSize(x, form == Form::tanh ? 1 : 0, y, size, executor);
        },
        form == Form::gelu ? aclnnGelu : aclnnGeluV2, device);
  }
  template <class T>
  std::vector<T> values_of(Form form, const std::vector<T>& x) {
    const auto n = static_cast<std::int64_t>(x.size());
    Tensor in = Tensor::of<T>({n}, x), out = Tensor::empty<T>({n});
    EXPECT_EQ(gelu(form, in, out), 0) << recent_message();
    return out.values<T>();
  }
  Device device;
};

struct Row {
  float x;
  double tanh, erf;
  std::uint16_t half_tanh, half_erf, brain_tanh, brain_erf;
};
constexpr Row kTable[] = {
    {-4, -7.02459511e-05, -0.000126684972, 0x849B, 0x8827, 0xB893, 0xB905},
    {-3, -0.00363739207, -0.00404969417, 0x9B73, 0x9C26, 0xBB6E, 0xBB85},
    {-2, -0.0454023071, -0.0455002636, 0xA9D0, 0xA9D3, 0xBD3A, 0xBD3A},
    {-1, -0.158808008, -0.158655256, 0xB115, 0xB114, 0xBE23, 0xBE22},
    {-0.5f, -0.154285997, -0.154268771, 0xB0F0, 0xB0F0, 0xBE1E, 0xBE1E},
    {0.5f, 0.345714003, 0.345731229, 0x3588, 0x3588, 0x3EB1, 0x3EB1},
    {1, 0.841192007, 0.841344774, 0x3ABB, 0x3ABB, 0x3F57, 0x3F57},
    {2, 1.95459771, 1.95449972, 0x3FD2, 0x3FD1, 0x3FFA, 0x3FFA},
    {3, 2.99636269, 2.99595022, 0x41FE, 0x41FE, 0x4040, 0x4040},
};

TEST_F(GeluTest, GivesTheValuesOfItsDocument) {
  for (const Row& row : kTable)
    for (const Form form : {Form::gelu, Form::erf, Form::tanh}) {
      const bool erf = form == Form::erf;
      const double want = erf ? row.erf : row.tanh;
      EXPECT_NEAR(values_of<float>(form, {row.x})[0], want, 2e-6 * std::fabs(want)) << row.x;
      EXPECT_EQ(values_of<F16>(form, {F16(row.x)})[0].bits, erf ? row.half_erf : row.half_tanh) << row.x;
      EXPECT_EQ(values_of<B16>(form, {B16(row.x)})[0].bits, erf ? row.brain_erf : row.brain_tanh) << row.x;
    }
}

// 0.5 x to first order: the program that mixes graphs and plugins relies on it.
TEST_F(GeluTest, HalvesDenormals) {
  for (const Form form : {Form::gelu, Form::erf, Form::tanh})
    EXPECT_EQ(values_of<F16>(form, {F16::raw(8)})[0].bits, 4);
}

TEST_F(GeluTest, MatchesItsDefinitionInEveryLayout) {
  std::mt19937 random(seed());
  std::normal_distribution<float> normal(0, 3);
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{0, 3}, Shape{513}, Shape{7, 33},
                             Shape{2, 1, 2, 1, 3, 1, 2, 5}, Shape{40, 300}})
    for (const Layout layout : {Layout::dense, Layout::padded_rows, Layout::transposed, Layout::offset})
      for (const Form form : {Form::gelu, Form::erf, Form::tanh}) {
        Tensor x = Tensor::empty<float>(shape, layout), y = Tensor::empty<float>(shape, layout);
        std::vector<float> values(static_cast<std::size_t>(x.numel()));
        for (float& value : values) value = normal(random);
        x.set(values);
        ASSERT_EQ(gelu(form, x, y), 0) << recent_message();
        const std::vector<float> got = y.values<float>();
        for (std::size_t i = 0; i < values.size(); ++i) {
          const double want = definition(form, values[i]);
          // exp enlarges the rounding of its argument, a cubic polynomial.
          const double tolerance = 1.2e-7 * (4 + std::fabs(std::pow(values[i], 3)));
          ASSERT_NEAR(got[i], want, tolerance * std::fabs(want) + 1e-37) << values[i];
        }
        EXPECT_TRUE(y.gaps_untouched());
      }
}

TEST_F(GeluTest, MayWriteOverItsInput) {
  Tensor x = Tensor::of<float>({2, 2}, {0, 1, -1, 3});
  ASSERT_EQ(gelu(Form::gelu, x, x), 0) << recent_message();
  EXPECT_NEAR(x.values<float>()[3], 2.99636269, 1e-6);
}

TEST_F(GeluTest, RefusesWhatItsDocumentExcludes) {
  struct Spoilt {
    Tensor x = Tensor::empty<float>({4, 6}), y = Tensor::empty<float>({4, 6});
    aclTensor* given_x = x;
    aclTensor* given_y = y;
    std::int64_t approximate = 1;
    bool first = false;  // aclnnGelu
    int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
      return first ? aclnnGeluGetWorkspaceSize(given_x, given_y, size, executor)
                   : aclnnGeluV2GetWorkspaceSize(given_x, approximate, given_y, size, executor);
    }
  };
  Tensor integer = Tensor::empty<std::int32_t>({4, 6}), half = Tensor::empty<F16>({4, 6}),
         other = Tensor::empty<float>({6, 4}), deep = Tensor::empty<float>({1, 1, 1, 1, 1, 1, 1, 1, 2});
  const Refusal<Spoilt> table[] = {
      {"x null", 161001, "x is null", [](Spoilt& c) { c.given_x = nullptr; }},
      {"y null", 161001, "y is null", [](Spoilt& c) { c.given_y = nullptr; }},
      {"integer", 161002, "x is INT32[4,6] but must be FP32, FP16 or BF16",
       [&](Spoilt& c) { c.given_x = integer; }},
      {"another type", 161002, "y is FP16[4,6]", [&](Spoilt& c) { c.given_y = half; }},
      {"9 dimensions", 161002, "at most 8 dimensions", [&](Spoilt& c) { c.given_x = deep; }},
      {"approximate", 161002, "approximate is 2 but must be 0 or 1", [](Spoilt& c) { c.approximate = 2; }},
      {"negative", 161002, "approximate is -1 but must be 0 or 1", [](Spoilt& c) { c.approximate = -1; }},
      {"another shape", 161002, "y is FP32[6,4] but must have the shape of x",
       [&](Spoilt& c) { c.given_y = other; }},
      {"self null", 161001, "self is null", [](Spoilt& c) { c.first = true, c.given_x = nullptr; }},
      {"out null", 161001, "out is null", [](Spoilt& c) { c.first = true, c.given_y = nullptr; }},
      {"out's shape", 161002, "out is FP32[6,4] but must have the shape of self",
       [&](Spoilt& c) { c.first = true, c.given_y = other; }},
      {"out's type", 161002, "out is FP16[4,6]", [&](Spoilt& c) { c.first = true, c.given_y = half; }},
  };
  expect_refusals(table, [] { return Spoilt(); });
  Spoilt good;
  expect_null_results_refused(good);
}

}  // namespace
}  // namespace oracle
