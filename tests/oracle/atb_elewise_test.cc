// Moeyard. SPDX-License-Identifier: Apache-2.0
// Element-wise operations of ATB against their definitions.
#include <cmath>

#include "support/atb.h"

namespace oracle {
namespace {

using Param = atb::infer::ElewiseParam;

class AtbElewiseTest : public testing::Test {
 protected:
  Atb atb;
  std::mt19937 random{seed()};
};

Param param_of(Param::ElewiseType type) {
  Param param;
  param.elewiseType = type;
  param.mulsParam.varAttr = -0.75f;
  return param;
}

double definition(Param::ElewiseType type, double x, double y) {
  switch (type) {
    case Param::ELEWISE_MULS:
      return -0.75 * x;
    case Param::ELEWISE_COS:
      return std::cos(x);
    case Param::ELEWISE_SIN:
      return std::sin(x);
    case Param::ELEWISE_NEG:
      return -x;
    case Param::ELEWISE_TANH:
      return std::tanh(x);
    case Param::ELEWISE_ADD:
      return x + y;
    case Param::ELEWISE_SUB:
      return x - y;
    case Param::ELEWISE_MUL:
      return x * y;
    case Param::ELEWISE_REALDIV:
      return x / y;
    case Param::ELEWISE_LESS:
      return x < y;
    case Param::ELEWISE_GREATER:
      return x > y;
    case Param::ELEWISE_EQUAL:
      return x == y;
    case Param::ELEWISE_LOGICAL_AND:
      return x != 0 && y != 0;
    case Param::ELEWISE_LOGICAL_OR:
      return x != 0 || y != 0;
    default:
      return x == 0;  // LOGICAL_NOT
  }
}

template <class T>
double number(T value) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<double>(value);
  else
    return widen(value);
}

// The element of a tensor that is broadcast to element `index` of a result.
std::size_t place(const Shape& shape, const Shape& result, std::int64_t index) {
  std::int64_t at = 0, step = 1;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::int64_t size = result[result.size() - 1 - i], coordinate = index % size;
    index /= size;
    if (i >= shape.size()) continue;
    const std::int64_t own = shape[shape.size() - 1 - i];
    at += own == 1 ? 0 : coordinate * step;
    step *= own;
  }
  return static_cast<std::size_t>(at);
}

struct Shapes {
  Shape a, b, result;
};
const Shapes kShapes[] = {
    {{5}, {5}, {5}},
    {{7, 33}, {1}, {7, 33}},
    {{7, 33}, {7, 1}, {7, 33}},
    {{4, 1}, {3, 1, 7}, {3, 4, 7}},
    {{2, 1, 3, 1, 2, 1, 2, 2}, {1}, {2, 1, 3, 1, 2, 1, 2, 2}},
    {{90, 100}, {100}, {90, 100}},
};

template <class T, class To = T>
void check(const Atb& atb, Param::ElewiseType type, bool binary, std::mt19937& random) {
  for (const Shapes& s : kShapes) {
    const std::vector<T> x = random_values<T>(elements_of(s.a), random),
                         y = random_values<T>(elements_of(s.b), random);
    AtbTensor a = AtbTensor::of<T>(s.a, x), b = AtbTensor::of<T>(s.b, y);
    std::vector<const AtbTensor*> inputs = {&a};
    if (binary) inputs.push_back(&b);
    const std::vector<AtbTensor> results = atb.outputs_of(param_of(type), inputs);
    const Shape& shape = binary ? s.result : s.a;
    ASSERT_EQ(results[0].shape(), shape);
    ASSERT_EQ(results[0].desc().dtype, DtypeOf<To>::value);
    const std::vector<To> got = results[0].values<To>();
    for (std::size_t i = 0; i < got.size(); ++i) {
      const auto index = static_cast<std::int64_t>(i);
      const double want =
          definition(type, number(x[place(s.a, shape, index)]), number(y[place(s.b, shape, index)]));
      const double tolerance = std::is_integral_v<To> ? 0 : kHalfUnit<To> * 1.0001 * std::fabs(want) + 6e-8;
      ASSERT_NEAR(number(got[i]), want, tolerance) << "type " << type << ", element " << i;
    }
  }
}

TEST_F(AtbElewiseTest, FunctionsOfOneNumber) {
  for (const auto type : {Param::ELEWISE_MULS, Param::ELEWISE_COS, Param::ELEWISE_SIN, Param::ELEWISE_NEG,
                          Param::ELEWISE_TANH}) {
    check<float>(atb, type, false, random);
    check<F16>(atb, type, false, random);
    check<B16>(atb, type, false, random);
  }
  check<std::int8_t>(atb, Param::ELEWISE_LOGICAL_NOT, false, random);
}

TEST_F(AtbElewiseTest, FunctionsOfTwoNumbers) {
  for (const auto type :
       {Param::ELEWISE_ADD, Param::ELEWISE_SUB, Param::ELEWISE_MUL, Param::ELEWISE_REALDIV}) {
    check<float>(atb, type, true, random);
    check<F16>(atb, type, true, random);
    check<B16>(atb, type, true, random);
  }
  for (const auto type : {Param::ELEWISE_ADD, Param::ELEWISE_SUB}) {
    check<std::int32_t>(atb, type, true, random);
    check<std::int64_t>(atb, type, true, random);
  }
}

TEST_F(AtbElewiseTest, ComparisonsGiveINT8) {
  for (const auto type : {Param::ELEWISE_LESS, Param::ELEWISE_GREATER, Param::ELEWISE_EQUAL}) {
    check<float, std::int8_t>(atb, type, true, random);
    check<F16, std::int8_t>(atb, type, true, random);
    check<B16, std::int8_t>(atb, type, true, random);
    check<std::int32_t, std::int8_t>(atb, type, true, random);
    check<std::int64_t, std::int8_t>(atb, type, true, random);
  }
  check<std::int8_t>(atb, Param::ELEWISE_LOGICAL_AND, true, random);
  check<std::int8_t>(atb, Param::ELEWISE_LOGICAL_OR, true, random);
}

template <class From, class To>
void check_cast(const Atb& atb, std::mt19937& random) {
  Param param = param_of(Param::ELEWISE_CAST);
  param.outTensorType = DtypeOf<To>::value;
  const std::vector<From> x = random_values<From>(1000, random, 300);
  AtbTensor a = AtbTensor::of<From>({10, 100}, x);
  const std::vector<To> got = atb.outputs_of(param, {&a})[0].template values<To>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    if constexpr (std::is_integral_v<To>)
      ASSERT_EQ(got[i], static_cast<To>(x[i]));
    else
      ASSERT_EQ(widen(got[i]), widen(To(widen(x[i]))));
  }
}

TEST_F(AtbElewiseTest, CastsBetweenTheTypesOfItsTable) {
  check_cast<float, F16>(atb, random);
  check_cast<float, B16>(atb, random);
  check_cast<F16, float>(atb, random);
  check_cast<B16, float>(atb, random);
  check_cast<std::int32_t, std::int64_t>(atb, random);
  check_cast<std::int64_t, std::int32_t>(atb, random);
  Param param = param_of(Param::ELEWISE_CAST);
  param.outTensorType = ACL_FLOAT16;
  EXPECT_EQ(Atb::infer(param, {desc_of(ACL_BF16, {2})}), 13);
  EXPECT_THAT(recent_message(),
              testing::HasSubstr("inTensors have the types BF16 but must have one of: FP32 -> FP16"));
}

}  // namespace
}  // namespace oracle
