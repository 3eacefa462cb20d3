// Moeyard. SPDX-License-Identifier: Apache-2.0
// ATB's operations for mixture-of-experts layers: Linear, Gating, GroupTopk, FusedAddTopkDiv.
#include <cmath>

#include "support/atb.h"

namespace oracle {
namespace {

namespace infer = atb::infer;
using testing::HasSubstr;
using Ints = std::vector<std::int32_t>;

class AtbMoeTest : public testing::Test {
 protected:
  Atb atb;
  std::mt19937 random{seed()};
};

// y[b][m][n] by its definition, with the absolute terms of each sum as the scale of its error.
template <class T, class To>
void check_linear(const Atb& atb, infer::LinearParam param, std::int64_t b, bool batched_weight,
                  std::mt19937& random) {
  const bool ein_sum = param.matmulType == infer::LinearParam::MATMUL_EIN_SUM;
  const std::int64_t m = 7, k = 70, n = 33;
  const std::vector<T> x = random_values<T>(static_cast<std::size_t>(b * m * k), random, 1),
                       w = random_values<T>(static_cast<std::size_t>((batched_weight ? b : 1) * k * n),
                                            random, 1),
                       bias = random_values<T>(static_cast<std::size_t>(n), random, 1);
  const std::vector<float> accum = random_values<float>(static_cast<std::size_t>(b * m * n), random, 1);
  Shape x_shape = param.transposeA ? Shape{k, m} : Shape{m, k},
        w_shape = param.transposeB ? Shape{n, k} : Shape{k, n}, y_shape = {m, n};
  if (b > 1)
    x_shape.insert(x_shape.begin() + (ein_sum ? 1 : 0), b),
        y_shape.insert(y_shape.begin() + (ein_sum ? 1 : 0), b);
  if (batched_weight) w_shape.insert(w_shape.begin(), b);
  const AtbTensor in = AtbTensor::of<T>(x_shape, x), weight = AtbTensor::of<T>(w_shape, w),
                  shift = AtbTensor::of<T>({1, n}, bias), added = AtbTensor::of<float>(y_shape, accum);
  std::vector<const AtbTensor*> inputs = {&in, &weight};
  if (param.hasBias) inputs.push_back(&shift);
  if (param.enAccum) inputs.push_back(&added);
  const std::vector<AtbTensor> got = atb.outputs_of(param, inputs);
  ASSERT_EQ(got[0].shape(), y_shape);
  const std::vector<To> values = got[0].values<To>();
  for (std::int64_t batch = 0; batch < b; ++batch)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        const std::int64_t at = ein_sum ? (i * b + batch) * n + j : (batch * m + i) * n + j;
        double want = 0, scale = 0;
        for (std::int64_t d = 0; d < k; ++d) {
          const std::int64_t x_at = param.transposeA ? (batch * k + d) * m + i
                                    : ein_sum        ? (i * b + batch) * k + d
                                                     : (batch * m + i) * k + d;
          const std::int64_t w_at =
              (batched_weight ? batch * k * n : 0) + (param.transposeB ? j * k + d : d * n + j);
          const double term =
              double{widen(x[static_cast<std::size_t>(x_at)])} * widen(w[static_cast<std::size_t>(w_at)]);
          want += term;
          scale += std::fabs(term);
        }
        if (param.hasBias) want += widen(bias[static_cast<std::size_t>(j)]);
        if (param.enAccum) want += accum[static_cast<std::size_t>(at)];
        ASSERT_NEAR(widen(values[static_cast<std::size_t>(at)]), want,
                    kHalfUnit<To> * std::fabs(want) + 0x1p-23 * static_cast<double>(k) * (scale + 4))
            << at;
      }
}

TEST_F(AtbMoeTest, LinearMultipliesInEveryForm) {
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true})
      for (const auto& [b, batched] : {std::pair{1, false}, {3, false}, {3, true}}) {
        infer::LinearParam param;
        param.transposeA = transpose_a;
        param.transposeB = transpose_b;
        check_linear<F16, F16>(atb, param, b, batched, random);
        check_linear<B16, B16>(atb, param, b, batched, random);
        param.hasBias = false;
        check_linear<float, float>(atb, param, b, batched, random);
        param.enAccum = true;
        check_linear<B16, float>(atb, param, b, batched, random);
        if (transpose_a || !batched) continue;
        param.matmulType = infer::LinearParam::MATMUL_EIN_SUM;
        param.enAccum = false;
        check_linear<F16, F16>(atb, param, b, batched, random);
      }
}

TEST_F(AtbMoeTest, LinearRefusesWhatDoesNotFit) {
  infer::LinearParam param;
  const auto half = [](const Shape& shape) { return desc_of(ACL_FLOAT16, shape); };
  EXPECT_EQ(Atb::infer(param, {half({2, 3}), half({4, 5}), half({4})}), 8);
  EXPECT_THAT(recent_message(), HasSubstr("inTensors are FP16[2,3] and FP16[4,5] but must agree"));
  EXPECT_EQ(Atb::infer(param, {half({2, 3}), half({4, 3}), half({5})}), 8);
  EXPECT_EQ(Atb::infer(param, {half({2, 2, 3}), half({3, 4, 3}), half({4})}), 8);
  EXPECT_EQ(Atb::infer(param, {half({3}), half({4, 3}), half({4})}), 16);
  EXPECT_EQ(Atb::infer(param, {half({2, 3}), half({4, 3})}), 5);
  atb::Operation* made = nullptr;
  param.enAccum = true;
  EXPECT_EQ(atb::CreateOperation(param, &made), 1);
}

Ints up_to(std::int32_t n) {
  Ints values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

TEST_F(AtbMoeTest, GatingGivesTheValuesOfItsDocument) {
  infer::GatingParam param;
  param.topkExpertNum = 2;
  param.cumSumNum = 4;
  const AtbTensor experts = AtbTensor::of<std::int32_t>({6}, {2, 0, 1, 2, 0, 3}),
                  slots = AtbTensor::of<std::int32_t>({6}, up_to(6));
  std::vector<AtbTensor> got = atb.outputs_of(param, {&experts, &slots});
  EXPECT_EQ(got[2].values<std::int32_t>(), (Ints{1, 4, 2, 0, 3, 5}));
  EXPECT_EQ(got[0].values<std::int32_t>(), (Ints{0, 2, 1, 0, 1, 2}));
  EXPECT_EQ(got[1].values<std::int32_t>(), (Ints{2, 3, 5, 6}));
  param.cumSumInt64 = true;
  param.deviceExpert = {2, 0};
  got = atb.outputs_of(param, {&experts, &slots});
  EXPECT_EQ(got[1].values<std::int64_t>(), (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(got[3].values<std::int32_t>(), Ints{4});
  const Ints order = got[2].values<std::int32_t>(), tokens = got[0].values<std::int32_t>();
  EXPECT_EQ(Ints(order.begin(), order.begin() + 4), (Ints{1, 4, 0, 3}));
  EXPECT_EQ(Ints(tokens.begin(), tokens.begin() + 4), (Ints{0, 2, 0, 1}));
  infer::GatingParam plain;
  got = atb.outputs_of(plain, {&experts, &slots});
  EXPECT_EQ(got[0].values<std::int32_t>(), Ints(6, 0));
  EXPECT_EQ(got[1].values<std::int32_t>(), Ints{0});
  EXPECT_EQ(got[2].values<std::int32_t>(), (Ints{1, 4, 2, 0, 3, 5}));
  const AtbTensor wrong = AtbTensor::of<std::int32_t>({6}, {2, 0, 4, 2, 0, 3});
  param.deviceExpert = {};
  param.cumSumInt64 = false;
  const OperationPtr operation(make(param));
  const AtbTensor a = AtbTensor::empty<std::int32_t>({6}), b = AtbTensor::empty<std::int32_t>({4}),
                  c = AtbTensor::empty<std::int32_t>({6});
  EXPECT_EQ(atb.run(*operation, Atb::pack({&wrong, &slots}, {&a, &b, &c})), 507015);
  EXPECT_THAT(recent_message(), HasSubstr("GatingOperation: expert 2 is 4 but must be in [0, 4)"));
}

TEST_F(AtbMoeTest, GatingSortsStably) {
  for (int round = 0; round < 30; ++round) {
    infer::GatingParam param;
    param.topkExpertNum = 1 + static_cast<std::int32_t>(random() % 4);
    param.cumSumNum = param.topkExpertNum + static_cast<std::int32_t>(random() % 20);
    const auto n = param.topkExpertNum * static_cast<std::int32_t>(1 + random() % 200);
    Ints experts;
    for (std::int32_t i = 0; i < n; ++i)
      experts.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(param.cumSumNum)));
    Ints want = up_to(n), counts;
    std::stable_sort(want.begin(), want.end(), [&](std::int32_t x, std::int32_t y) {
      return experts[static_cast<std::size_t>(x)] < experts[static_cast<std::size_t>(y)];
    });
    for (std::int32_t e = 0; e < param.cumSumNum; ++e)
      counts.push_back(static_cast<std::int32_t>(
          std::count_if(experts.begin(), experts.end(), [&](std::int32_t x) { return x <= e; })));
    const AtbTensor in = AtbTensor::of<std::int32_t>({n}, experts),
                    slots = AtbTensor::of<std::int32_t>({n}, up_to(n));
    const std::vector<AtbTensor> got = atb.outputs_of(param, {&in, &slots});
    ASSERT_EQ(got[2].values<std::int32_t>(), want);
    ASSERT_EQ(got[1].values<std::int32_t>(), counts);
    for (std::int32_t& slot : want) slot /= param.topkExpertNum;
    ASSERT_EQ(got[0].values<std::int32_t>(), want);
  }
}

template <class T>
std::vector<T> converted(const std::vector<float>& values) {
  std::vector<T> made;
  for (const float value : values) made.push_back(T(value));
  return made;
}

TEST_F(AtbMoeTest, GroupTopkGivesTheValuesOfItsDocument) {
  const AtbTensor unused = AtbTensor::of<std::int32_t>({1024}, up_to(1024));
  infer::GroupTopkParam param;
  param.groupNum = 4;
  param.k = 2;
  AtbTensor x = AtbTensor::of<F16>({1, 8}, converted<F16>({.1f, .9f, .5f, .6f, .7f, .3f, .2f, .65f}));
  EXPECT_EQ(atb.outputs_of(param, {&x, &unused})[0].values<F16>(),
            converted<F16>({.1f, .9f, 0, 0, .7f, .3f, 0, 0}));
  param.groupMultiFlag = infer::GroupTopkParam::SUM_MULTI_MAX;
  param.n = 2;
  AtbTensor y =
      AtbTensor::of<F16>({1, 8}, converted<F16>({.125f, .875f, .5f, .625f, .75f, .25f, .125f, .625f}));
  const OperationPtr operation(make(param));
  ASSERT_EQ(atb.run(*operation, Atb::pack({&y, &unused}, {&y})), 0) << recent_message();
  EXPECT_EQ(y.values<F16>(), converted<F16>({.125f, .875f, .5f, .625f, 0, 0, 0, 0})) << "in place";
  param.n = 3;
  EXPECT_EQ(Atb::infer(param, {x.desc(), unused.desc()}), 8);
}

TEST_F(AtbMoeTest, FusedAddTopkDivGivesTheValuesOfItsDocument) {
  infer::FusedAddTopkDivParam param;
  param.groupNum = 2;
  param.groupTopk = 1;
  param.n = 2;
  param.k = 2;
  param.scale = 2.5f;
  const AtbTensor x = AtbTensor::of<float>({1, 8}, {0, 1, -1, 2, .5f, -.5f, 1.5f, -2}),
                  bias = AtbTensor::of<float>({8}, {.1f, 0, .2f, 0, 0, .3f, 0, .05f});
  std::vector<AtbTensor> got = atb.outputs_of(param, {&x, &bias});
  EXPECT_EQ(got[1].values<std::int32_t>(), (Ints{3, 1}));
  EXPECT_NEAR(got[0].values<float>()[0], 1.366123, 2e-6);
  EXPECT_NEAR(got[0].values<float>()[1], 1.133877, 2e-6);
  param.isNorm = false;
  EXPECT_NEAR(atb.outputs_of(param, {&x, &bias})[0].values<float>()[0], .880797, 1e-6) << "no scale either";
  param.enableExpertMapping = true;
  const AtbTensor count = AtbTensor::of<std::int32_t>({8}, {1, 0, 1, 2, 1, 1, 1, 1});
  Ints table(16);
  for (std::int32_t i = 0; i < 16; ++i) table[static_cast<std::size_t>(i)] = 100 + i;
  const AtbTensor map = AtbTensor::of<std::int32_t>({8, 2}, table);
  std::vector<float> twice = x.values<float>();
  twice.insert(twice.end(), twice.begin(), twice.begin() + 8);
  const AtbTensor two = AtbTensor::of<float>({2, 8}, twice);
  EXPECT_EQ(atb.outputs_of(param, {&two, &bias, &count, &map})[1].values<std::int32_t>(),
            (Ints{106, 102, 107, 102}));
  table[6] = -5;
  const AtbTensor wrong = AtbTensor::of<std::int32_t>({8, 2}, table);
  const OperationPtr operation(make(param));
  const AtbTensor y = AtbTensor::empty<float>({2, 2}), indices = AtbTensor::empty<std::int32_t>({2, 2});
  EXPECT_EQ(atb.run(*operation, Atb::pack({&two, &bias, &count, &wrong}, {&y, &indices})), 507015);
  EXPECT_THAT(recent_message(), HasSubstr("mappingTable[3][0] is -5"));
  const AtbTensor many = AtbTensor::of<std::int32_t>({8}, {1, 0, 1, 3, 1, 1, 1, 1});
  EXPECT_EQ(atb.run(*operation, Atb::pack({&two, &bias, &many, &map}, {&y, &indices})), 507015);
  EXPECT_THAT(recent_message(), HasSubstr("mappingNum[3] is 3 but mappingTable has 2 columns"));
}

// Against plain loops over random scores, many of them equal.
TEST_F(AtbMoeTest, GroupsAndExpertsAreChosenInOrder) {
  for (int round = 0; round < 20; ++round) {
    const std::int64_t tokens = 3, groups = 8, width = 1 + static_cast<std::int64_t>(random() % 16),
                       experts = groups * width, kept = 1 + static_cast<std::int64_t>(random() % 8);
    infer::FusedAddTopkDivParam param;
    param.groupNum = 8;
    param.groupTopk = static_cast<std::uint32_t>(kept);
    param.n = 1 + static_cast<std::uint32_t>(random()) % static_cast<std::uint32_t>(width);
    param.k = 1 + static_cast<std::uint32_t>(random()) % static_cast<std::uint32_t>(experts);
    std::vector<float> x, bias;
    for (std::int64_t i = 0; i < tokens * experts; ++i) x.push_back(static_cast<float>(random() % 9) - 4);
    for (std::int64_t i = 0; i < experts; ++i) bias.push_back(static_cast<float>(random() % 5) / 4);
    const AtbTensor a = AtbTensor::of<float>({tokens, experts}, x), b = AtbTensor::of<float>({experts}, bias);
    const std::vector<AtbTensor> got = atb.outputs_of(param, {&a, &b});
    for (std::int64_t t = 0; t < tokens; ++t) {
      std::vector<float> weight, value;
      for (std::int64_t e = 0; e < experts; ++e) {
        const double logit = x[static_cast<std::size_t>(t * experts + e)];
        weight.push_back(static_cast<float>(1 / (1 + std::exp(-logit))));
        value.push_back(weight.back() + bias[static_cast<std::size_t>(e)]);
      }
      std::vector<std::pair<float, std::int64_t>> scores;
      for (std::int64_t g = 0; g < groups; ++g) {
        std::vector<float> members(value.begin() + g * width, value.begin() + (g + 1) * width);
        std::sort(members.begin(), members.end(), std::greater<>());
        scores.emplace_back(-std::accumulate(members.begin(), members.begin() + param.n, 0.0f), g);
      }
      std::sort(scores.begin(), scores.end());
      for (std::size_t i = static_cast<std::size_t>(kept); i < scores.size(); ++i)
        std::fill_n(value.begin() + scores[i].second * width, width, 0.0f);
      Ints order = up_to(static_cast<std::int32_t>(experts));
      std::stable_sort(order.begin(), order.end(), [&](std::int32_t p, std::int32_t q) {
        return value[static_cast<std::size_t>(p)] > value[static_cast<std::size_t>(q)];
      });
      float sum = 0;
      for (std::uint32_t i = 0; i < param.k; ++i) sum += weight[static_cast<std::size_t>(order[i])];
      for (std::uint32_t i = 0; i < param.k; ++i) {
        const std::size_t at = static_cast<std::size_t>(t) * param.k + i;
        ASSERT_EQ(got[1].values<std::int32_t>()[at], order[i]);
        ASSERT_FLOAT_EQ(got[0].values<float>()[at], weight[static_cast<std::size_t>(order[i])] / sum);
      }
    }
  }
}

TEST_F(AtbMoeTest, BadParametersAreRefused) {
  infer::GatingParam gating;
  gating.cumSumNum = 1025;
  refused(gating, "cumSumNum is 1025");
  gating.cumSumNum = 0;
  gating.topkExpertNum = 2;
  refused(gating, "topkExpertNum is 2 but");
  gating.cumSumNum = 4;
  gating.deviceExpert = {1, 1};
  refused(gating, "deviceExpert must name different experts in [0, 4)");
  gating.deviceExpert = {4};
  refused(gating, "deviceExpert");
  gating.deviceExpert = {};
  const atb::TensorDesc odd = desc_of(ACL_INT32, {3}), even = desc_of(ACL_INT32, {4}),
                        matrix = desc_of(ACL_INT32, {2, 2});
  EXPECT_EQ(Atb::infer(gating, {odd, odd}), 8);
  EXPECT_EQ(Atb::infer(gating, {matrix, even}), 9);
  infer::GroupTopkParam groups;
  refused(groups, "k 0 but 1 <= k <= groupNum");
  infer::FusedAddTopkDivParam fused;
  fused.groupTopk = 2;
  refused(fused, "groupTopk 2");
  fused.groupTopk = 1;
  fused.activationType = infer::ACTIVATION_SWISH;
  refused(fused, "activationType is 4");
  fused.activationType = infer::ACTIVATION_SIGMOID;
  EXPECT_EQ(Atb::infer(fused, {desc_of(ACL_FLOAT, {2, 33}), desc_of(ACL_FLOAT, {33})}), 8);
  EXPECT_EQ(Atb::infer(fused, {desc_of(ACL_FLOAT, {2, 16}), desc_of(ACL_FLOAT, {8})}), 8);
}

}  // namespace
}  // namespace oracle
