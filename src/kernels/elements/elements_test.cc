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

double by_definition(ElementOp op, double a, double b) {
  if (op == ElementOp::sigmoid) return 1 / (1 + std::exp(-a));
  if (op == ElementOp::multiply) return a * b;
  if (op == ElementOp::swiglu) return a / (1 + std::exp(-a)) * b;
  return a;
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
          variant.run({op, a.operand(), b.operand(), to.operand()}, {0, n});
          elements_variants().back().run({op, a.operand(), b.operand(), plain.operand()}, {0, n});
          ASSERT_EQ(to.bytes, plain.bytes) << "bits differ from the plain target";
          for (std::int64_t i = 0; i < n; ++i) {
            const double want = by_definition(op, a.get(i), b.get(b.step == 0 ? 0 : i));
            ASSERT_NEAR(to.get(i), want, (1e-6 + rounding_of(to_type)) * std::fabs(want) + 6e-8)
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

std::string name_of(const testing::TestParamInfo<ElementsTest::ParamType>& info) {
  constexpr const char* kNames[] = {"copy", "sigmoid", "multiply", "swiglu"};
  return std::string(std::get<0>(info.param).name) + "_" + kNames[static_cast<int>(std::get<1>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, ElementsTest,
                         testing::Combine(testing::ValuesIn(elements_variants().begin(),
                                                            elements_variants().end()),
                                          testing::Values(ElementOp::copy, ElementOp::sigmoid,
                                                          ElementOp::multiply, ElementOp::swiglu)),
                         name_of);

}  // namespace
}  // namespace moeyard::kernels
