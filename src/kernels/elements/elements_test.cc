// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/elements/elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/numbers.h"

namespace moeyard::kernels {
namespace {

constexpr aclDataType kTypes[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16};

// Numbers of one type, `step` elements apart.
struct Column {
  aclDataType dtype;
  std::int64_t step;
  std::vector<std::uint8_t> bytes;

  Column(aclDataType dtype, std::int64_t step, std::int64_t n)
      : dtype(dtype),
        step(step),
        bytes(static_cast<std::size_t>(bytes_of(dtype, step == 0 ? 1 : (n - 1) * step + 1)), 0x5A) {}
  void set(std::int64_t i, float value) {
    if (dtype == ACL_FLOAT) put(i, value);
    if (dtype == ACL_FLOAT16) put(i, to_fp16(value));
    if (dtype == ACL_BF16) put(i, to_bf16(value));
  }
  float get(std::int64_t i) const {
    if (dtype == ACL_FLOAT) return take<float>(i);
    return dtype == ACL_FLOAT16 ? to_float(take<Fp16>(i)) : to_float(take<Bf16>(i));
  }
  Elements::Operand operand() { return {reinterpret_cast<std::byte*>(bytes.data()), dtype, step}; }

 private:
  template <class T>
  void put(std::int64_t i, T value) {
    std::memcpy(&bytes[static_cast<std::size_t>(i * step) * sizeof(T)], &value, sizeof(T));
  }
  template <class T>
  T take(std::int64_t i) const {
    T value;
    std::memcpy(&value, &bytes[static_cast<std::size_t>(i * step) * sizeof(T)], sizeof(T));
    return value;
  }
};

void fill(Column& column, std::int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 3);
  for (std::int64_t i = 0; i < (column.step == 0 ? 1 : n); ++i) column.set(i, normal(random));
}

constexpr float kFactor = 1.75f;

double by_definition(ElementOp op, double a, double b) {
  switch (op) {
    case ElementOp::copy:
      return a;
    case ElementOp::scale:
      return kFactor * a;
    case ElementOp::relu:
      return a > 0 ? a : 0;
    case ElementOp::sigmoid:
      return 1 / (1 + std::exp(-a));
    case ElementOp::silu:
      return a / (1 + std::exp(-kFactor * a));
    case ElementOp::gelu_tanh:
      return a / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (a + 0.044715 * a * a * a)));
    case ElementOp::gelu_erf:
      return 0.5 * a * std::erfc(-a / std::sqrt(2.0));
    case ElementOp::add:
      return a + kFactor * b;
    case ElementOp::multiply:
      return a * b;
    case ElementOp::divide:
      return a / b;
    case ElementOp::swiglu:
      return a / (1 + std::exp(-a)) * b;
  }
  return 0;
}

// Relative to the result in fp32, in front of its rounding; of sums relative to what is added up.
double tolerance_of(ElementOp op, double a, double b, double want) {
  if (op == ElementOp::add) return 1.2e-7 * (std::fabs(a) + std::fabs(kFactor * b));
  // exp enlarges the rounding of its argument, of which gelu_tanh has a cubic one.
  return (op == ElementOp::gelu_tanh ? 1.2e-7 * (4 + std::fabs(a * a * a)) : 1e-6) * std::fabs(want);
}

double rounding_of(aclDataType dtype) {
  return dtype == ACL_FLOAT ? 0 : dtype == ACL_BF16 ? 0x1p-8 : 0x1p-11;
}

class ElementsTest : public testing::TestWithParam<std::tuple<Variant<ElementsFn>, ElementOp>> {};

TEST_P(ElementsTest, MatchesTheDefinitionAndThePlainTarget) {
  const auto& [variant, op] = GetParam();
  for (const std::int64_t n : {1, 7, 16, 33, 511, 512, 1030})
    for (const aclDataType a_type : kTypes)
      for (const aclDataType to_type : kTypes)
        for (const std::int64_t step : {0, 1, 3}) {
          Column a(a_type, step == 0 ? 1 : step, n), b(to_type, step, n), to(to_type, step == 3 ? 2 : 1, n);
          fill(a, n, 1), fill(b, n, 2);
          Column plain = to;
          variant.run({op, a.operand(), b.operand(), to.operand(), kFactor}, {0, n});
          elements_variants().back().run({op, a.operand(), b.operand(), plain.operand(), kFactor}, {0, n});
          ASSERT_EQ(to.bytes, plain.bytes) << "bits differ from the plain target";
          for (std::int64_t i = 0; i < n; ++i) {
            const double x = a.get(i), y = b.get(b.step == 0 ? 0 : i), want = by_definition(op, x, y);
            ASSERT_NEAR(to.get(i), want,
                        tolerance_of(op, x, y, want) + rounding_of(to_type) * std::fabs(want) + 6e-8)
                << i << " of " << n;
          }
        }
}

TEST_P(ElementsTest, WritesOnlyItsRangeAndInPlace) {
  const auto& [variant, op] = GetParam();
  Column a(ACL_FLOAT, 1, 100), b(ACL_FLOAT, 1, 100);
  fill(a, 100, 3), fill(b, 100, 4);
  Column whole = a, part = a;
  variant.run({op, whole.operand(), b.operand(), whole.operand()}, {0, 100});
  variant.run({op, part.operand(), b.operand(), part.operand()}, {13, 61});
  for (std::int64_t i = 0; i < 100; ++i)
    ASSERT_EQ(part.get(i), 13 <= i && i < 61 ? whole.get(i) : a.get(i)) << i;
}

TEST_P(ElementsTest, KeepsTailsAndInfinities) {
  const auto& [variant, op] = GetParam();
  if (op != ElementOp::gelu_erf && op != ElementOp::gelu_tanh) return;
  std::vector<float> x;
  for (float value = -12; value < 12; value += 0.0625f) x.push_back(value);
  x.insert(x.end(), {INFINITY, 3e38f, -3e38f});
  const auto n = static_cast<std::int64_t>(x.size());
  Column a(ACL_FLOAT, 1, n), to(ACL_FLOAT, 1, n);
  for (std::int64_t i = 0; i < n; ++i) a.set(i, x[static_cast<std::size_t>(i)]);
  variant.run({op, a.operand(), {}, to.operand()}, {0, n});
  for (std::int64_t i = 0; i + 3 < n; ++i) {
    const double want = by_definition(op, a.get(i), 0);
    ASSERT_NEAR(to.get(i), want, tolerance_of(op, a.get(i), 0, want) + 1e-37) << a.get(i);
  }
  EXPECT_EQ(to.get(n - 3), INFINITY);
  EXPECT_EQ(to.get(n - 2), 3e38f);
  EXPECT_EQ(to.get(n - 1), 0);
}

constexpr const char* kNames[] = {"copy",     "scale", "relu",     "sigmoid", "silu",  "gelu_tanh",
                                  "gelu_erf", "add",   "multiply", "divide",  "swiglu"};
std::vector<ElementOp> all_operations() {
  std::vector<ElementOp> all;
  for (std::size_t i = 0; i < std::size(kNames); ++i) all.push_back(static_cast<ElementOp>(i));
  return all;
}
std::string name_of(const testing::TestParamInfo<ElementsTest::ParamType>& info) {
  return std::string(std::get<0>(info.param).name) + "_" + kNames[static_cast<int>(std::get<1>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, ElementsTest,
                         testing::Combine(testing::ValuesIn(elements_variants().begin(),
                                                            elements_variants().end()),
                                          testing::ValuesIn(all_operations())),
                         name_of);

}  // namespace
}  // namespace moeyard::kernels
