// Moeyard. SPDX-License-Identifier: Apache-2.0
// ATB's operations on INT8, and its products of groups.
#include <cmath>

#include "support/atb.h"

namespace oracle {
namespace {

namespace infer = atb::infer;
using testing::HasSubstr;
using Bytes = std::vector<std::int8_t>;
using Ints = std::vector<std::int32_t>;
using Elewise = infer::ElewiseParam;

class AtbQuantisedTest : public testing::Test {
 protected:
  Atb atb;
  std::mt19937 random{seed()};
};

std::int8_t to_int8(float value) {
  return static_cast<std::int8_t>(std::max(-128.0f, std::min(127.0f, std::nearbyint(value))));
}

Elewise elewise(Elewise::ElewiseType type) {
  Elewise param;
  param.elewiseType = type;
  return param;
}

template <class T>
void check_elewise(const Atb& atb, std::mt19937& random) {
  const std::vector<T> x = random_values<T>(60, random, 40);
  const AtbTensor in = AtbTensor::of<T>({6, 10}, x);
  Elewise fixed = elewise(Elewise::ELEWISE_QUANT);
  fixed.quantParam.inputScale = 0.5f;
  fixed.quantParam.inputOffset = 3;
  const Bytes got = atb.outputs_of(fixed, {&in})[0].template values<std::int8_t>();
  for (std::size_t i = 0; i < 60; ++i) ASSERT_EQ(got[i], to_int8(std::nearbyint(widen(x[i]) / 0.5f) + 3));

  std::vector<T> scales;
  Bytes offsets;
  for (int i = 0; i < 10; ++i) {
    scales.push_back(T(0.25f + static_cast<float>(i) / 8));
    offsets.push_back(static_cast<std::int8_t>(i * 3 - 10));
  }
  const AtbTensor scale = AtbTensor::of<T>({10}, scales), offset = AtbTensor::of<std::int8_t>({10}, offsets),
                  none = AtbTensor::none();
  for (const bool has_offset : {true, false}) {
    const AtbTensor& third = has_offset ? offset : none;
    const std::vector<AtbTensor> quantised =
        atb.outputs_of(elewise(Elewise::ELEWISE_QUANT_PER_CHANNEL), {&in, &scale, &third});
    const Bytes bytes = quantised[0].template values<std::int8_t>();
    const std::vector<T> back =
        atb.outputs_of(elewise(Elewise::ELEWISE_DEQUANT_PER_CHANNEL), {&quantised[0], &scale, &third})[0]
            .template values<T>();
    for (std::size_t i = 0; i < 60; ++i) {
      const float s = widen(scales[i % 10]), o = has_offset ? offsets[i % 10] : 0.0f;
      ASSERT_EQ(bytes[i], to_int8(std::nearbyint(widen(x[i]) / s) + o));
      ASSERT_EQ(widen(back[i]), widen(T((bytes[i] - o) * s)));
    }
  }

  const std::vector<AtbTensor> rows = atb.outputs_of(elewise(Elewise::ELEWISE_DYNAMIC_QUANT), {&in});
  ASSERT_EQ(rows[1].shape(), Shape{6});
  Elewise asymmetric = elewise(Elewise::ELEWISE_DYNAMIC_QUANT);
  asymmetric.quantParam.asymmetric = true;
  const std::vector<AtbTensor> shifted = atb.outputs_of(asymmetric, {&in});
  ASSERT_EQ(shifted.size(), 3u);
  for (std::size_t row = 0; row < 6; ++row) {
    float largest = 0, least = widen(x[row * 10]), most = least;
    for (std::size_t i = row * 10; i < row * 10 + 10; ++i) {
      largest = std::max(largest, std::fabs(widen(x[i])));
      least = std::min(least, widen(x[i]));
      most = std::max(most, widen(x[i]));
    }
    const float s = rows[1].template values<float>()[row], t = shifted[1].template values<float>()[row],
                o = shifted[2].template values<float>()[row];
    ASSERT_EQ(s, largest / 127);
    ASSERT_EQ(t, (most - least) / 255);
    for (std::size_t i = row * 10; i < row * 10 + 10; ++i) {
      ASSERT_EQ(rows[0].template values<std::int8_t>()[i], to_int8(widen(x[i]) / s));
      ASSERT_NEAR((shifted[0].template values<std::int8_t>()[i] - o) * t, widen(x[i]), t * 0.501f);
    }
  }
}

TEST_F(AtbQuantisedTest, ElewiseQuantisesAndBack) {
  check_elewise<float>(atb, random);
  check_elewise<F16>(atb, random);
  check_elewise<B16>(atb, random);
  const AtbTensor zeros = AtbTensor::of<float>({1, 2}, {0, 0});
  const std::vector<AtbTensor> got = atb.outputs_of(elewise(Elewise::ELEWISE_DYNAMIC_QUANT), {&zeros});
  EXPECT_EQ(got[0].values<std::int8_t>(), (Bytes{0, 0}));
  EXPECT_EQ(got[1].values<float>()[0], 0);
  Elewise wrong = elewise(Elewise::ELEWISE_QUANT);
  wrong.quantParam.inputScale = 0;
  refused(wrong, "inputScale is 0");
  const atb::TensorDesc x = desc_of(ACL_FLOAT, {2, 3}), three = desc_of(ACL_FLOAT, {3}),
                        two = desc_of(ACL_FLOAT, {2}), bytes = desc_of(ACL_INT8, {3});
  EXPECT_EQ(Atb::infer(elewise(Elewise::ELEWISE_QUANT_PER_CHANNEL), {x, three, bytes}), 0);
  EXPECT_EQ(Atb::infer(elewise(Elewise::ELEWISE_QUANT_PER_CHANNEL), {x, two, bytes}), 8);
  EXPECT_EQ(Atb::infer(elewise(Elewise::ELEWISE_QUANT_PER_CHANNEL), {x, three, desc_of(ACL_INT8, {1})}), 8);
  EXPECT_EQ(Atb::infer(elewise(Elewise::ELEWISE_DYNAMIC_QUANT), {two}), 16);
}

TEST_F(AtbQuantisedTest, SwigluQuantQuantisesRows) {
  const std::vector<F16> x = random_values<F16>(3 * 8, random, 2);
  const AtbTensor in = AtbTensor::of<F16>({3, 8}, x);
  const std::vector<AtbTensor> got = atb.outputs_of(infer::SwigluQuantParam(), {&in});
  ASSERT_EQ(got[0].shape(), (Shape{3, 4}));
  ASSERT_EQ(got[1].shape(), Shape{3});
  for (std::size_t row = 0; row < 3; ++row) {
    double y[4], largest = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const double a = widen(x[row * 8 + i]), b = widen(x[row * 8 + 4 + i]);
      y[i] = a / (1 + std::exp(-a)) * b;
      largest = std::max(largest, std::fabs(y[i]));
    }
    const float scale = got[1].values<float>()[row];
    EXPECT_NEAR(scale, largest / 127, largest / 127 * 1e-6);
    for (std::size_t i = 0; i < 4; ++i)
      EXPECT_NEAR(got[0].values<std::int8_t>()[row * 4 + i] * scale, y[i], scale * 0.501);
  }
  EXPECT_EQ(Atb::infer(infer::SwigluQuantParam(), {desc_of(ACL_FLOAT16, {2, 3})}), 8);
  EXPECT_EQ(Atb::infer(infer::SwigluQuantParam(), {desc_of(ACL_FLOAT16, {4})}), 16);
  infer::SwigluQuantParam wrong;
  wrong.quantType = static_cast<infer::SwigluQuantParam::QuantType>(1);
  refused(wrong, "quantType is 1");
}

// Whole numbers in (-n, n).
template <class T>
std::vector<T> whole(std::size_t count, unsigned n, std::mt19937& random) {
  std::vector<T> values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(T(static_cast<float>(random() % (2 * n - 1)) - static_cast<float>(n - 1)));
  return values;
}

// Sums are exact; scales are powers of 2, and so is the result, up to one rounding.
template <class To>
void check_linear(const Atb& atb, std::mt19937& random, bool bias, bool per_token, bool packed_scale,
                  std::int64_t batches) {
  const std::int64_t m = 5, k = 40, n = 9;
  infer::LinearParam param;
  param.hasBias = bias;
  param.outDataType = DtypeOf<To>::value;
  param.quantMode = per_token ? infer::LinearParam::PER_TOKEN : infer::LinearParam::PER_CHANNEL;
  const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
  const Bytes x = whole<std::int8_t>(size(batches * m * k), 128, random),
              w = whole<std::int8_t>(size(batches * n * k), 128, random);
  const Ints shift = whole<std::int32_t>(size(n), 1000, random);
  std::vector<float> scales, token_scales;
  std::vector<std::uint64_t> pairs;
  for (std::int64_t i = 0; i < n; ++i)
    scales.push_back(std::ldexp(1.0f, -static_cast<int>(random() % 8) - 8));
  for (std::int64_t i = 0; i < batches * m; ++i)
    token_scales.push_back(std::ldexp(1.0f, static_cast<int>(random() % 4) - 2));
  pairs.resize(size(n));
  atb::Utils::QuantParamConvert(scales.data(), pairs.data(), size(n));
  const Shape x_shape = batches > 1 ? Shape{batches, m, k} : Shape{m, k},
              w_shape = batches > 1 ? Shape{batches, n, k} : Shape{n, k};
  const AtbTensor a = AtbTensor::of<std::int8_t>(x_shape, x), b = AtbTensor::of<std::int8_t>(w_shape, w),
                  c = AtbTensor::of<std::int32_t>({n}, shift),
                  d = packed_scale ? AtbTensor::of<std::uint64_t>({n}, pairs)
                                   : AtbTensor::of<float>({n}, scales),
                  e = AtbTensor::of<float>({batches * m}, token_scales);
  std::vector<const AtbTensor*> inputs = {&a, &b};
  if (bias) inputs.push_back(&c);
  inputs.push_back(&d);
  if (per_token) inputs.push_back(&e);
  const std::vector<To> got = atb.outputs_of(param, inputs)[0].template values<To>();
  for (std::int64_t row = 0; row < batches * m; ++row)
    for (std::int64_t j = 0; j < n; ++j) {
      std::int32_t sum = bias ? shift[size(j)] : 0;
      for (std::int64_t i = 0; i < k; ++i) sum += x[size(row * k + i)] * w[size((row / m * n + j) * k + i)];
      const float want =
          static_cast<float>(sum) * scales[size(j)] * (per_token ? token_scales[size(row)] : 1.0f);
      ASSERT_EQ(widen(got[size(row * n + j)]), widen(To(want))) << row << " " << j;
    }
}

TEST_F(AtbQuantisedTest, LinearMultipliesINT8) {
  for (const bool bias : {false, true})
    for (const bool per_token : {false, true})
      for (const std::int64_t batches : {1, 3}) {
        check_linear<F16>(atb, random, bias, per_token, false, batches);
        check_linear<F16>(atb, random, bias, per_token, true, batches);
        check_linear<B16>(atb, random, bias, per_token, false, batches);
      }
  infer::LinearParam param;
  param.outDataType = ACL_FLOAT;
  refused(param, "outDataType is FP32");
  param.outDataType = ACL_DT_UNDEFINED;
  param.quantMode = infer::LinearParam::PER_TOKEN;
  refused(param, "quantMode is 2");
  param.outDataType = ACL_FLOAT16;
  param.matmulType = infer::LinearParam::MATMUL_EIN_SUM;
  refused(param, "excludes enAccum and matmulType");
  param.matmulType = infer::LinearParam::MATMUL_UNDEFINED;
  param.hasBias = false;
  const atb::TensorDesc x = desc_of(ACL_INT8, {2, 3}), w = desc_of(ACL_INT8, {4, 3}),
                        four = desc_of(ACL_FLOAT, {4}), two = desc_of(ACL_FLOAT, {2});
  EXPECT_EQ(Atb::infer(param, {x, w, four, two}), 0);
  EXPECT_EQ(Atb::infer(param, {x, w, two, two}), 8);
  EXPECT_EQ(Atb::infer(param, {x, w, four, four}), 8);
  EXPECT_THAT(recent_message(), HasSubstr("the perTokenScale is FP32[4] but must have 2 elements"));
}

template <class T>
void check_inplace_add(const Atb& atb, std::mt19937& random, bool transpose_a) {
  const std::int64_t m = 3, k = 20, n = 5, groups = 4;
  const std::vector<std::int64_t> ends = {7, 7, 18, 20};
  const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
  const std::vector<T> x = whole<T>(size(m * k), 8, random), w = whole<T>(size(k * n), 8, random);
  const std::vector<float> before = whole<float>(size(groups * m * n), 100, random);
  std::vector<float> want = before;
  for (std::int64_t g = 0; g < groups; ++g)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t d = g == 0 ? 0 : ends[size(g - 1)]; d < ends[size(g)]; ++d)
          want[size((g * m + i) * n + j)] +=
              widen(x[size(transpose_a ? d * m + i : i * k + d)]) * widen(w[size(d * n + j)]);
  infer::GroupedMatmulInplaceAddParam param;
  param.transposeA = transpose_a;
  const AtbTensor a = AtbTensor::of<T>(transpose_a ? Shape{k, m} : Shape{m, k}, x),
                  b = AtbTensor::of<T>({k, n}, w), c = AtbTensor::of<std::int64_t>({groups}, ends),
                  d = AtbTensor::of<float>({groups * m, n}, before),
                  wide = AtbTensor::of<float>({m, groups * n}, before);
  const OperationPtr operation(make(param));
  EXPECT_EQ(atb.outputs(*operation, {&a, &b, &c, &wide})[0].template values<float>(), want);
  ASSERT_EQ(atb.run(*operation, Atb::pack({&a, &b, &c, &d}, {&d})), 0) << recent_message();
  EXPECT_EQ(d.template values<float>(), want) << "in place";
  const AtbTensor falling = AtbTensor::of<std::int64_t>({groups}, {7, 6, 18, 20}),
                  far = AtbTensor::of<std::int64_t>({groups}, {7, 7, 18, 21});
  for (const AtbTensor* wrong : {&falling, &far})
    EXPECT_EQ(atb.run(*operation, Atb::pack({&a, &b, wrong, &d}, {&d})), 507015);
  EXPECT_THAT(recent_message(), HasSubstr("the end of group 3 is 21 but must be in [18, 20]"));
  EXPECT_EQ(d.template values<float>(), want) << "nothing is added";
}

TEST_F(AtbQuantisedTest, GroupedMatmulAddsInPlace) {
  for (const bool transpose_a : {false, true}) {
    check_inplace_add<F16>(atb, random, transpose_a);
    check_inplace_add<B16>(atb, random, transpose_a);
  }
  infer::GroupedMatmulInplaceAddParam param;
  const atb::TensorDesc x = desc_of(ACL_FLOAT16, {3, 4}), w = desc_of(ACL_FLOAT16, {4, 5}),
                        ends = desc_of(ACL_INT64, {2});
  EXPECT_EQ(Atb::infer(param, {x, w, ends, desc_of(ACL_FLOAT, {6, 5})}), 0);
  EXPECT_EQ(Atb::infer(param, {x, w, ends, desc_of(ACL_FLOAT, {5, 6})}), 8);
  EXPECT_EQ(Atb::infer(param, {x, x, ends, desc_of(ACL_FLOAT, {6, 4})}), 8);
  EXPECT_EQ(Atb::infer(param, {x, w, desc_of(ACL_INT64, {129}), desc_of(ACL_FLOAT, {387, 5})}), 8);
  EXPECT_EQ(Atb::infer(param, {x, w, desc_of(ACL_INT64, {1, 2}), desc_of(ACL_FLOAT, {6, 5})}), 16);
  param.transposeB = true;
  refused(param, "transposeB is true");
}

// Values are whole, so sums are exact; float results of INT8 have scales that are powers of 2.
template <class From, class To>
void check_routed(const Atb& atb, std::mt19937& random, bool down, bool transpose_b) {
  constexpr bool kInt8 = std::is_same_v<From, std::int8_t>;
  const std::int64_t tokens = 9, topk = 2, rows = tokens * topk, k = 13, n = 6, experts = 5;
  const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
  const std::vector<From> x = whole<From>(size((down ? rows : tokens) * k), 5, random),
                          w = whole<From>(size(experts * n * k), 5, random);
  Ints ends = {3, 3, 10, 17, 18}, token_of_row;
  for (std::int64_t i = 0; i < rows; ++i) token_of_row.push_back(static_cast<std::int32_t>(i % tokens));
  std::shuffle(token_of_row.begin(), token_of_row.end(), random);
  std::vector<float> column_scales, row_scales;
  for (std::int64_t i = 0; i < experts * n; ++i)
    column_scales.push_back(std::ldexp(1.0f, static_cast<int>(random() % 3) - 3));
  for (std::size_t i = 0; i < x.size() / size(k); ++i)
    row_scales.push_back(std::ldexp(1.0f, static_cast<int>(random() % 3)));
  std::vector<float> want(size((down ? tokens : rows) * n), 0.0f);
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto expert =
        std::upper_bound(ends.begin(), ends.end(), static_cast<std::int32_t>(row)) - ends.begin();
    const std::int64_t from = down ? row : token_of_row[size(row)], to = down ? token_of_row[size(row)] : row;
    for (std::int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (std::int64_t d = 0; d < k; ++d)
        sum += static_cast<float>(x[size(from * k + d)]) *
               static_cast<float>(w[size(transpose_b ? (expert * n + j) * k + d : (expert * k + d) * n + j)]);
      if (kInt8) sum *= column_scales[size(expert * n + j)] * row_scales[size(from)];
      want[size(to * n + j)] += sum;
    }
  }
  infer::GroupedMatmulWithRoutingParam param;
  param.topK = static_cast<std::int32_t>(topk);
  param.transposeB = transpose_b;
  param.groupedMatmulType = down ? infer::GroupedMatmulWithRoutingParam::GROUPED_MATMUL_DOWN
                                 : infer::GroupedMatmulWithRoutingParam::GROUPED_MATMUL_UP;
  if (kInt8) param.outDataType = DtypeOf<To>::value;
  const AtbTensor a = AtbTensor::of<From>({down ? rows : tokens, k}, x),
                  b = AtbTensor::of<From>(transpose_b ? Shape{experts, n, k} : Shape{experts, k, n}, w),
                  c = AtbTensor::of<std::int32_t>({experts}, ends),
                  d = AtbTensor::of<std::int32_t>({rows}, token_of_row),
                  e = AtbTensor::of<float>({experts, n}, column_scales),
                  f = AtbTensor::of<float>({static_cast<std::int64_t>(row_scales.size())}, row_scales);
  std::vector<const AtbTensor*> inputs = {&a, &b, &c, &d};
  if (kInt8) inputs.insert(inputs.end(), {&e, &f});
  const std::vector<AtbTensor> got = atb.outputs_of(param, inputs);
  ASSERT_EQ(got[0].shape(), (Shape{down ? tokens : rows, n}));
  for (std::size_t i = 0; i < want.size(); ++i)
    ASSERT_EQ(widen(got[0].template values<To>()[i]), widen(To(want[i]))) << i;
}

TEST_F(AtbQuantisedTest, GroupedMatmulWithRoutingGoesUpAndDown) {
  for (const bool down : {false, true})
    for (const bool transpose_b : {false, true}) {
      check_routed<F16, F16>(atb, random, down, transpose_b);
      check_routed<B16, B16>(atb, random, down, transpose_b);
      check_routed<float, float>(atb, random, down, transpose_b);
      check_routed<std::int8_t, F16>(atb, random, down, transpose_b);
      check_routed<std::int8_t, B16>(atb, random, down, transpose_b);
    }
  infer::GroupedMatmulWithRoutingParam param;
  refused(param, "topK is 0");
  param.topK = 2;
  const atb::TensorDesc x = desc_of(ACL_FLOAT, {2, 3}), w = desc_of(ACL_FLOAT, {1, 4, 3}),
                        one = desc_of(ACL_INT32, {1}), four = desc_of(ACL_INT32, {4});
  EXPECT_EQ(Atb::infer(param, {x, w, one, four}), 0);
  EXPECT_EQ(Atb::infer(param, {x, w, four, four}), 8);
  EXPECT_EQ(Atb::infer(param, {x, w, one, one}), 8);
  EXPECT_EQ(Atb::infer(param, {x, x, one, four}), 16);
  const AtbTensor a = AtbTensor::of<float>({1, 1}, {1}), b = AtbTensor::of<float>({1, 1, 1}, {1}),
                  c = AtbTensor::of<std::int32_t>({1}, {2}), d = AtbTensor::of<std::int32_t>({2}, {0, 1}),
                  y = AtbTensor::empty<float>({2, 1});
  const OperationPtr operation(make(param));
  EXPECT_EQ(atb.run(*operation, Atb::pack({&a, &b, &c, &d}, {&y})), 507015);
  EXPECT_THAT(recent_message(), HasSubstr("index 1 is 1 but must be in [0, 1), the number of tokens"));
  param.outDataType = ACL_INT8;
  refused(param, "outDataType is INT8");
  param.outDataType = ACL_DT_UNDEFINED;
  param.groupedMatmulType = static_cast<infer::GroupedMatmulWithRoutingParam::GroupedMatmulType>(2);
  refused(param, "groupedMatmulType is 2");
}

}  // namespace
}  // namespace oracle
