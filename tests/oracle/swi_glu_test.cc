// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_swi_glu.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/device.h"
#include "support/refusals.h"

namespace oracle {
namespace {

using Shape = std::vector<std::int64_t>;

std::int64_t product(Shape::const_iterator begin, Shape::const_iterator end) {
  std::int64_t n = 1;
  for (; begin != end; ++begin) n *= *begin;
  return n;
}

template <class T>
struct Call {
  Call(Shape shape, std::int64_t dim, Layout layout, std::mt19937& random) : shape(shape), dim(dim) {
    std::normal_distribution<float> normal(0, 3);
    for (std::int64_t i = 0; i < product(shape.begin(), shape.end()); ++i)
      values.push_back(T(normal(random)));
    x = Tensor::of<T>(shape, values, layout);
    Shape half = shape;
    half[axis()] /= 2;
    out = Tensor::empty<T>(half, layout);
  }
  std::size_t axis() const {
    return static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(shape.size()) : dim);
  }
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    return aclnnSwiGluGetWorkspaceSize(x, dim, out, size, executor);
  }
  int run(const Device& device) {
    return oracle::run([this](auto* size, auto** executor) { return phase_one(size, executor); }, aclnnSwiGlu,
                       device);
  }
  void expect_right() const {
    const std::int64_t inner = product(shape.begin() + static_cast<std::ptrdiff_t>(axis()) + 1, shape.end());
    const std::int64_t half = shape[axis()] / 2 * inner;  // elements from the first half to the second
    const std::vector<T> got = out.template values<T>();
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(got.size()); ++i) {
      const std::int64_t at = half == 0 ? 0 : i / half * 2 * half + i % half;
      const double first = widen(values[static_cast<std::size_t>(at)]),
                   second = widen(values[static_cast<std::size_t>(at + half)]);
      const double want = first / (1 + std::exp(-first)) * second;
      const double rounding = sizeof(T) == 4 ? 0 : std::is_same_v<T, B16> ? 0x1p-8 : 0x1p-11;
      ASSERT_NEAR(widen(got[static_cast<std::size_t>(i)]), want, (1e-6 + rounding) * std::fabs(want) + 6e-8)
          << "element " << i;
    }
    EXPECT_TRUE(out.gaps_untouched());
  }

  Shape shape;
  std::int64_t dim;
  std::vector<T> values;
  Tensor x = Tensor::empty<T>({0}), out = Tensor::empty<T>({0});
};

class SwiGluTest : public testing::Test {
 protected:
  Device device;
};

TEST_F(SwiGluTest, GivesTheValuesOfItsDocument) {
  Tensor x = Tensor::of<float>({3, 2}, {1, 1, -1, 1, 2, 2}), out = Tensor::empty<float>({3, 1});
  const int code = run(
      [&](auto* size, auto** executor) { return aclnnSwiGluGetWorkspaceSize(x, -1, out, size, executor); },
      aclnnSwiGlu, device);
  ASSERT_EQ(code, 0) << recent_message();
  const std::vector<float> got = out.values<float>();
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(got[i], (std::vector<double>{.731059, -.268941, 3.523188})[i], 1e-6);
}

template <class T>
void try_random_cases(const Device& device) {
  std::mt19937 random(seed());
  for (int i = 0; i < 150; ++i) {
    SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()) + ", case " + std::to_string(i));
    Shape shape;
    const std::size_t rank = 1 + random() % 5;
    const std::size_t axis = random() % rank;
    for (std::size_t a = 0; a < rank; ++a)
      shape.push_back(random() % 12 == 0 ? 0 : 1 + random() % (rank < 3 ? 70 : 9));
    shape[axis] *= 2;
    const auto dim =
        static_cast<std::int64_t>(axis) - (random() % 2 == 0 ? static_cast<std::int64_t>(rank) : 0);
    Call<T> call(shape, dim, static_cast<Layout>(random() % 4), random);
    ASSERT_EQ(call.run(device), 0) << recent_message();
    call.expect_right();
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST_F(SwiGluTest, MatchesTheDefinitionInFP32) { try_random_cases<float>(device); }
TEST_F(SwiGluTest, MatchesTheDefinitionInFP16) { try_random_cases<F16>(device); }
TEST_F(SwiGluTest, MatchesTheDefinitionInBF16) { try_random_cases<B16>(device); }

TEST_F(SwiGluTest, TakesRowsOfAModel) {
  std::mt19937 random(seed());
  Call<B16> call({37, 2 * 1536}, -1, Layout::dense, random);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  call.expect_right();
}

TEST_F(SwiGluTest, RefusesWhatItsDocumentExcludes) {
  struct Spoilt {
    Tensor x = Tensor::empty<float>({4, 6}), out = Tensor::empty<float>({4, 3});
    aclTensor* given_x = x;
    aclTensor* given_out = out;
    std::int64_t dim = 1;
    int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
      return aclnnSwiGluGetWorkspaceSize(given_x, dim, given_out, size, executor);
    }
  };
  Tensor of_int = Tensor::empty<std::int32_t>({4, 6}), odd = Tensor::empty<float>({4, 5}),
         scalar = Tensor::empty<float>({}), wrong = Tensor::empty<float>({4, 6}),
         half = Tensor::empty<F16>({4, 3}), deep = Tensor::empty<float>({1, 1, 1, 1, 1, 1, 1, 1, 2});
  const Refusal<Spoilt> table[] = {
      {"x null", 161001, "x is null", [](Spoilt& c) { c.given_x = nullptr; }},
      {"out null", 161001, "out is null", [](Spoilt& c) { c.given_out = nullptr; }},
      {"x integer", 161002, "x is INT32[4,6] but must be FP32, FP16 or BF16",
       [&](Spoilt& c) { c.given_x = of_int; }},
      {"out type", 161002, "out is FP16[4,3]", [&](Spoilt& c) { c.given_out = half; }},
      {"odd", 161002, "x is FP32[4,5] but must have an even size along dim (dim = 1)",
       [&](Spoilt& c) { c.given_x = odd; }},
      {"scalar", 161002, "at least 1 dimension", [&](Spoilt& c) { c.given_x = scalar; }},
      {"9 dimensions", 161002, "at most 8 dimensions", [&](Spoilt& c) { c.given_x = deep; }},
      {"dim too large", 161002, "dim is 2 but must be an axis of x", [](Spoilt& c) { c.dim = 2; }},
      {"dim too small", 161002, "dim is -3 but must be an axis of x", [](Spoilt& c) { c.dim = -3; }},
      {"out shape", 161002, "out is FP32[4,6] but must have the shape of x",
       [&](Spoilt& c) { c.given_out = wrong; }},
  };
  expect_refusals(table, [] { return Spoilt(); });
  Spoilt good;
  expect_null_results_refused(good);
}

}  // namespace
}  // namespace oracle
