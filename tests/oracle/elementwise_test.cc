// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnSigmoid, aclnnAdd, aclnnSub, aclnnMul, aclnnMuls, aclnnDiv and aclnnCast.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_cast.h"
#include "aclnnop/aclnn_div.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_sigmoid.h"
#include "aclnnop/aclnn_sub.h"
#include "support/device.h"

namespace oracle {
namespace {

using Shape = std::vector<std::int64_t>;

// An aclScalar of any type.
class Scalar {
 public:
  template <class T>
  explicit Scalar(T value, aclDataType dtype = DtypeOf<T>::value) : scalar_(aclCreateScalar(&value, dtype)) {}
  ~Scalar() { aclDestroyScalar(scalar_); }
  Scalar(const Scalar&) = delete;
  Scalar& operator=(const Scalar&) = delete;
  operator aclScalar*() const { return scalar_; }

 private:
  aclScalar* scalar_;
};

enum class Operation { add, sub, mul, div };
constexpr Operation kOperations[] = {Operation::add, Operation::sub, Operation::mul, Operation::div};

class ElementwiseTest : public testing::Test {
 protected:
  int sigmoid(const Tensor& self, const Tensor& out) {
    return run(
        [&](auto* size, auto** executor) { return aclnnSigmoidGetWorkspaceSize(self, out, size, executor); },
        aclnnSigmoid, device);
  }
  int binary(Operation operation, const aclTensor* self, const aclTensor* other, const aclScalar* alpha,
             aclTensor* out) {
    constexpr PhaseTwo kPhaseTwo[] = {aclnnAdd, aclnnSub, aclnnMul, aclnnDiv};
    return run(
        [&](auto* size, auto** executor) {
          if (operation == Operation::add)
            return aclnnAddGetWorkspaceSize(self, other, alpha, out, size, executor);
          if (operation == Operation::sub)
            return aclnnSubGetWorkspaceSize(self, other, alpha, out, size, executor);
          return operation == Operation::mul ? aclnnMulGetWorkspaceSize(self, other, out, size, executor)
                                             : aclnnDivGetWorkspaceSize(self, other, out, size, executor);
        },
        kPhaseTwo[static_cast<int>(operation)], device);
  }
  int mul(const Tensor& self, const Tensor& other, const Tensor& out) {
    return binary(Operation::mul, self, other, nullptr, out);
  }
  int muls(const Tensor& self, const aclScalar* other, const Tensor& out) {
    return run([&](auto* size,
                   auto** executor) { return aclnnMulsGetWorkspaceSize(self, other, out, size, executor); },
               aclnnMuls, device);
  }
  int cast(const Tensor& self, aclDataType dtype, const Tensor& out) {
    return run([&](auto* size,
                   auto** executor) { return aclnnCastGetWorkspaceSize(self, dtype, out, size, executor); },
               aclnnCast, device);
  }
  template <class To, class From>
  std::vector<To> cast_values(const std::vector<From>& values) {
    const auto n = static_cast<std::int64_t>(values.size());
    Tensor self = Tensor::of<From>({n}, values), out = Tensor::empty<To>({n});
    EXPECT_EQ(cast(self, DtypeOf<To>::value, out), 0) << recent_message();
    return out.values<To>();
  }
  template <class A, class B, class To>
  void check(Operation operation, const Shape& a_shape, const Shape& b_shape, const Shape& shape,
             Layout layout, std::mt19937& random);
  Device device;
};

std::int64_t elements(const Shape& shape) {
  std::int64_t n = 1;
  for (const std::int64_t size : shape) n *= size;
  return n;
}

template <class T>
std::vector<T> draw(const Shape& shape, std::mt19937& random) {
  std::normal_distribution<float> normal(0, 4);
  std::vector<T> values;
  for (std::int64_t i = 0; i < elements(shape); ++i) values.push_back(T(normal(random)));
  return values;
}

template <class T>
constexpr double kRounding = std::is_same_v<T, float> ? 0x1p-24
                             : std::is_same_v<T, B16> ? 0x1p-8
                                                      : 0x1p-11;

TEST_F(ElementwiseTest, SigmoidMatchesTheDefinitionInEveryLayout) {
  std::mt19937 random(seed());
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{0, 3}, Shape{513}, Shape{7, 33}, Shape{3, 4, 5, 6}})
    for (const Layout layout : {Layout::dense, Layout::padded_rows, Layout::transposed, Layout::offset}) {
      const std::vector<B16> values = draw<B16>(shape, random);
      Tensor self = Tensor::of<B16>(shape, values, layout), out = Tensor::empty<float>(shape, layout);
      ASSERT_EQ(sigmoid(self, out), 0) << recent_message();
      const std::vector<float> got = out.values<float>();
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double want = 1 / (1 + std::exp(-double{widen(values[i])}));
        ASSERT_NEAR(got[i], want, 1e-6 * want);
      }
      EXPECT_TRUE(out.gaps_untouched());
    }
}

constexpr float kAlpha = 0.75f;

template <class A, class B, class To>
void ElementwiseTest::check(Operation operation, const Shape& a_shape, const Shape& b_shape,
                            const Shape& shape, Layout layout, std::mt19937& random) {
  const std::vector<A> a = draw<A>(a_shape, random);
  const std::vector<B> b = draw<B>(b_shape, random);
  Tensor self = Tensor::of<A>(a_shape, a, layout), other = Tensor::of<B>(b_shape, b, layout),
         out = Tensor::empty<To>(shape, layout);
  const Scalar alpha(kAlpha);
  ASSERT_EQ(binary(operation, self, other, alpha, out), 0) << recent_message();
  const std::vector<To> got = out.values<To>();
  const auto at = [&](const Shape& of, std::int64_t index) {  // of the element that is broadcast to `index`
    std::int64_t place = 0, step = 1;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::int64_t size = shape[shape.size() - 1 - i], coordinate = index % size;
      index /= size;
      if (i >= of.size()) continue;
      const std::int64_t own = of[of.size() - 1 - i];
      place += (own == 1 ? 0 : coordinate) * step;
      step *= own;
    }
    return static_cast<std::size_t>(place);
  };
  for (std::int64_t i = 0; i < elements(shape); ++i) {
    const double x = widen(a[at(a_shape, i)]), y = widen(b[at(b_shape, i)]);
    const double want = operation == Operation::add   ? x + kAlpha * y
                        : operation == Operation::sub ? x - kAlpha * y
                        : operation == Operation::mul ? x * y
                                                      : x / y;
    // alpha * other is rounded to fp32, too.
    const double product = operation < Operation::mul ? 0x1p-24 * std::fabs(kAlpha * y) : 0;
    ASSERT_NEAR(widen(got[static_cast<std::size_t>(i)]), want,
                kRounding<To> * 1.001 * std::fabs(want) + 1.001 * product + 6e-8)
        << "operation " << static_cast<int>(operation) << ", element " << i;
  }
  EXPECT_TRUE(out.gaps_untouched());
}

TEST_F(ElementwiseTest, ArithmeticBroadcastsAndMixesTypes) {
  std::mt19937 random(seed());
  struct Shapes {
    Shape a, b, out;
  };
  for (const Shapes& s : {Shapes{{}, {}, {}}, Shapes{{5}, {5}, {5}}, Shapes{{6, 40}, {6, 1}, {6, 40}},
                          Shapes{{6, 1}, {1, 40}, {6, 40}}, Shapes{{3, 4, 5}, {5}, {3, 4, 5}},
                          Shapes{{4, 1}, {3, 1, 7}, {3, 4, 7}}, Shapes{{}, {2, 3}, {2, 3}},
                          Shapes{{0, 3}, {1, 3}, {0, 3}}, Shapes{{2, 700}, {2, 700}, {2, 700}}})
    for (const Layout layout : {Layout::dense, Layout::padded_rows, Layout::transposed, Layout::offset})
      for (const Operation operation : kOperations) {
        check<float, float, float>(operation, s.a, s.b, s.out, layout, random);
        check<B16, B16, B16>(operation, s.a, s.b, s.out, layout, random);
        check<F16, float, F16>(operation, s.a, s.b, s.out, layout, random);
        check<B16, float, float>(operation, s.a, s.b, s.out, layout, random);
      }
}

TEST_F(ElementwiseTest, IntegersAddAndSubtractModuloTheirRange) {
  Tensor a = Tensor::of<std::int32_t>({3}, {3, INT32_MAX, -8}), b = Tensor::of<std::int32_t>({3}, {5, 1, 2}),
         out = Tensor::empty<std::int32_t>({3});
  const Scalar one(std::int64_t{1}), minus_three(std::int32_t{-3}), truth(true, ACL_BOOL), half(0.5f);
  ASSERT_EQ(binary(Operation::add, a, b, one, out), 0) << recent_message();
  EXPECT_EQ(out.values<std::int32_t>(), (std::vector<std::int32_t>{8, INT32_MIN, -6}));
  ASSERT_EQ(binary(Operation::add, a, b, truth, out), 0) << recent_message();
  EXPECT_EQ(out.values<std::int32_t>(), (std::vector<std::int32_t>{8, INT32_MIN, -6}));
  ASSERT_EQ(binary(Operation::sub, a, b, minus_three, out), 0) << recent_message();
  EXPECT_EQ(out.values<std::int32_t>(), (std::vector<std::int32_t>{18, INT32_MIN + 2, -2}));
  EXPECT_EQ(binary(Operation::add, a, b, half, out), 161002);
  EXPECT_NE(recent_message().find("aclnnAdd: alpha is 0.5 but must be a number, and an integer or BOOL"),
            std::string::npos);
  EXPECT_EQ(binary(Operation::div, a, b, nullptr, out), 161002);
}

TEST_F(ElementwiseTest, MulsTakesNumbersOfAnyType) {
  Tensor x = Tensor::of<B16>({2, 2}, {B16(1.0f), B16(-2.0f), B16(3.0f), B16(0.0f)}, Layout::transposed),
         out = Tensor::empty<float>({2, 2}), i = Tensor::of<std::int64_t>({2}, {7, INT64_C(1) << 62}),
         product = Tensor::empty<std::int64_t>({2});
  const Scalar half(0.5f), wide(0.5, ACL_DOUBLE), third(F16(3.0f)), brain(B16(3.0f)), small(std::int8_t{-6});
  for (const aclScalar* factor : {static_cast<aclScalar*>(half), static_cast<aclScalar*>(wide)}) {
    ASSERT_EQ(muls(x, factor, out), 0) << recent_message();
    EXPECT_EQ(out.values<float>(), (std::vector<float>{0.5f, -1, 1.5f, 0}));
  }
  for (const aclScalar* factor : {static_cast<aclScalar*>(third), static_cast<aclScalar*>(brain)}) {
    ASSERT_EQ(muls(x, factor, out), 0) << recent_message();
    EXPECT_EQ(out.values<float>(), (std::vector<float>{3, -6, 9, 0}));
  }
  ASSERT_EQ(muls(i, small, product), 0) << recent_message();
  EXPECT_EQ(product.values<std::int64_t>(), (std::vector<std::int64_t>{-42, INT64_MIN}));
  EXPECT_EQ(muls(i, half, product), 161002);
  EXPECT_EQ(muls(i, small, out), 161002);
  EXPECT_EQ(muls(i, nullptr, product), 161001);
  EXPECT_NE(recent_message().find("aclnnMuls: other is null but is required; pass a scalar"),
            std::string::npos);
  const Scalar complex(std::int64_t{1}, ACL_COMPLEX64);
  EXPECT_EQ(muls(x, complex, out), 161002);
  EXPECT_NE(recent_message().find("other is no number but must be a number"), std::string::npos);
}

TEST_F(ElementwiseTest, MulMultipliesIntegersModuloTheirRange) {
  Tensor a = Tensor::of<std::int32_t>({3}, {3, -7, 1 << 30}), b = Tensor::of<std::int32_t>({3}, {5, 2, 6}),
         out = Tensor::empty<std::int32_t>({3});
  ASSERT_EQ(mul(a, b, out), 0) << recent_message();
  EXPECT_EQ(out.values<std::int32_t>(), (std::vector<std::int32_t>{15, -14, INT32_MIN}));
  Tensor c = Tensor::of<std::int64_t>({1}, {INT64_C(1) << 40}), d = Tensor::of<std::int64_t>({2}, {-3, 4}),
         wide = Tensor::empty<std::int64_t>({2});
  ASSERT_EQ(mul(c, d, wide), 0) << recent_message();
  EXPECT_EQ(wide.values<std::int64_t>(),
            (std::vector<std::int64_t>{-3 * (INT64_C(1) << 40), INT64_C(1) << 42}));
}

TEST_F(ElementwiseTest, MulMayWriteOverItsInput) {
  Tensor a = Tensor::of<float>({2, 2}, {1, 2, 3, 4}), b = Tensor::of<float>({2, 1}, {10, 100});
  ASSERT_EQ(mul(a, b, a), 0) << recent_message();
  EXPECT_EQ(a.values<float>(), (std::vector<float>{10, 20, 300, 400}));
}

TEST_F(ElementwiseTest, CastRoundsToNearestEven) {
  const std::vector<float> values = {1.0f, 1.00390625f, 1.01171875f, 65519.0f, 65520.0f, 1e-8f, -0.0f, 3e38f};
  const auto brain = cast_values<B16>(values);
  const auto half = cast_values<F16>(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(brain[i].bits, B16(values[i]).bits) << values[i];
    EXPECT_EQ(half[i].bits, F16(values[i]).bits) << values[i];
  }
  EXPECT_EQ(cast_values<float>(std::vector<std::int32_t>{(1 << 24) + 1, (1 << 24) + 3, -5}),
            (std::vector<float>{1 << 24, (1 << 24) + 4, -5}));
  EXPECT_EQ(cast_values<B16>(std::vector<std::int64_t>{257, -1})[0].bits, B16(256.0f).bits);
}

TEST_F(ElementwiseTest, CastCutsFractionsOffAndStopsAtTheEnds) {
  const float inf = INFINITY, nan = std::nanf("");
  const std::vector<float> values = {2.9f, -2.9f, 300, -300, 3e9f, -3e9f, 1e19f, -1e19f, inf, -inf, nan};
  EXPECT_EQ(cast_values<std::int8_t>(values),
            (std::vector<std::int8_t>{2, -2, 127, -128, 127, -128, 127, -128, 127, -128, 0}));
  EXPECT_EQ(cast_values<std::int32_t>(values),
            (std::vector<std::int32_t>{2, -2, 300, -300, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN,
                                       INT32_MAX, INT32_MIN, 0}));
  EXPECT_EQ(cast_values<std::int64_t>(values),
            (std::vector<std::int64_t>{2, -2, 300, -300, 3000000000, -3000000000, INT64_MAX, INT64_MIN,
                                       INT64_MAX, INT64_MIN, 0}));
}

TEST_F(ElementwiseTest, CastKeepsLowBitsOfIntegersAndKnowsTruth) {
  EXPECT_EQ(cast_values<std::int8_t>(std::vector<std::int64_t>{257, -129, 5}),
            (std::vector<std::int8_t>{1, 127, 5}));
  EXPECT_EQ(cast_values<std::int64_t>(std::vector<std::int32_t>{-7, 7}), (std::vector<std::int64_t>{-7, 7}));
  // DtypeOf<uint8_t> is BOOL.
  EXPECT_EQ(cast_values<std::uint8_t>(std::vector<float>{0, -0.0f, 0.25f, std::nanf("")}),
            (std::vector<std::uint8_t>{0, 0, 1, 1}));
  EXPECT_EQ(cast_values<std::int32_t>(std::vector<std::uint8_t>{0, 1, 7}),
            (std::vector<std::int32_t>{0, 1, 1}));
}

TEST_F(ElementwiseTest, CastRespectsViews) {
  std::mt19937 random(seed());
  for (const Shape& shape : {Shape{7, 33}, Shape{3, 4, 5}, Shape{2, 1, 600}, Shape{0}})
    for (const Layout layout : {Layout::padded_rows, Layout::transposed, Layout::offset}) {
      const std::vector<float> values = draw<float>(shape, random);
      Tensor self = Tensor::of<float>(shape, values, layout), out = Tensor::empty<B16>(shape, layout);
      ASSERT_EQ(cast(self, ACL_BF16, out), 0) << recent_message();
      const std::vector<B16> got = out.values<B16>();
      for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(got[i].bits, B16(values[i]).bits) << i;
      EXPECT_TRUE(out.gaps_untouched());
    }
}

TEST_F(ElementwiseTest, RefusesWhatTheirDocumentsExclude) {
  Tensor a = Tensor::empty<float>({2, 3}), b = Tensor::empty<float>({3, 2}),
         i = Tensor::empty<std::int32_t>({2, 3}), u = Tensor::empty<std::uint64_t>({2, 3}),
         f = Tensor::empty<float>({2, 3});
  std::uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  EXPECT_EQ(aclnnSigmoidGetWorkspaceSize(nullptr, a, &size, &executor), 161001);
  EXPECT_EQ(aclnnSigmoidGetWorkspaceSize(a, nullptr, &size, &executor), 161001);
  EXPECT_EQ(aclnnSigmoidGetWorkspaceSize(i, a, &size, &executor), 161002);
  EXPECT_EQ(aclnnSigmoidGetWorkspaceSize(a, b, &size, &executor), 161002);
  EXPECT_EQ(recent_message().find(
                "[EZ1001] aclnnSigmoid: out is FP32[3,2] but must have the shape of self (self = FP32[2,3])"),
            0u);
  EXPECT_EQ(aclnnMulGetWorkspaceSize(nullptr, a, f, &size, &executor), 161001);
  EXPECT_EQ(aclnnMulGetWorkspaceSize(a, nullptr, f, &size, &executor), 161001);
  EXPECT_EQ(aclnnMulGetWorkspaceSize(a, a, nullptr, &size, &executor), 161001);
  EXPECT_EQ(aclnnMulGetWorkspaceSize(u, a, f, &size, &executor), 161002);
  EXPECT_EQ(aclnnMulGetWorkspaceSize(a, i, f, &size, &executor), 161002);
  EXPECT_EQ(aclnnMulGetWorkspaceSize(a, b, f, &size, &executor), 161002);
  EXPECT_EQ(aclnnMulGetWorkspaceSize(a, a, b, &size, &executor), 161002);
  const Scalar one(1.0f);
  EXPECT_EQ(aclnnAddGetWorkspaceSize(nullptr, a, one, f, &size, &executor), 161001);
  EXPECT_EQ(aclnnAddGetWorkspaceSize(a, nullptr, one, f, &size, &executor), 161001);
  EXPECT_EQ(aclnnAddGetWorkspaceSize(a, a, nullptr, f, &size, &executor), 161001);
  EXPECT_EQ(aclnnAddGetWorkspaceSize(a, a, one, nullptr, &size, &executor), 161001);
  EXPECT_EQ(aclnnAddGetWorkspaceSize(a, b, one, f, &size, &executor), 161002);
  EXPECT_EQ(aclnnSubGetWorkspaceSize(a, a, nullptr, f, &size, &executor), 161001);
  EXPECT_EQ(aclnnSubGetWorkspaceSize(u, a, one, f, &size, &executor), 161002);
  EXPECT_EQ(aclnnDivGetWorkspaceSize(a, nullptr, f, &size, &executor), 161001);
  EXPECT_EQ(aclnnDivGetWorkspaceSize(a, b, f, &size, &executor), 161002);
  EXPECT_EQ(aclnnMulsGetWorkspaceSize(a, one, b, &size, &executor), 161002);
  EXPECT_EQ(aclnnCastGetWorkspaceSize(nullptr, ACL_FLOAT, f, &size, &executor), 161001);
  EXPECT_EQ(aclnnCastGetWorkspaceSize(a, ACL_FLOAT, nullptr, &size, &executor), 161001);
  EXPECT_EQ(aclnnCastGetWorkspaceSize(u, ACL_FLOAT, f, &size, &executor), 161002);
  EXPECT_EQ(aclnnCastGetWorkspaceSize(a, ACL_INT32, f, &size, &executor), 161002);
  EXPECT_EQ(aclnnCastGetWorkspaceSize(a, ACL_FLOAT, b, &size, &executor), 161002);
}

}  // namespace
}  // namespace oracle
