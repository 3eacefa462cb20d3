// Moeyard. SPDX-License-Identifier: Apache-2.0
// Worked examples with numbers that were computed by hand: every output of dispatch, and what combine makes of it.
// Every row is v * (1, 2, -1, 0.5), so one number says what a row is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oracle/ep_calls.h"
#include "support/rerun.h"

namespace oracle {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

struct Input {
  std::vector<float> v;
  std::vector<std::int32_t> ids;
  std::vector<float> weights;
  std::vector<std::uint8_t> mask;  // empty: none
};

struct Output {
  std::vector<float> rows;  // v of the rows that arrived
  std::vector<std::int64_t> nums, prefix_nums;
  std::vector<std::int32_t> counts, assist;  // assist: what was written, in front
  std::vector<float> weights;
  std::vector<float> sums;      // v' of combine, -1 where nothing was written
  std::vector<float> sum_rows;  // all elements
  auto fields() { return std::tie(rows, nums, prefix_nums, counts, assist, weights, sums, sum_rows); }
};

constexpr std::uint16_t kUntouched = 0x5A5A;

class Example {
 public:
  Example(EpParams attributes, std::vector<Input> inputs, int hidden = 4)
      : group(static_cast<int>(inputs.size())),
        attributes_(attributes),
        inputs_(std::move(inputs)),
        hidden_(hidden) {
    attributes_.ranks = group.size();
    attributes_.group = group.name();
  }
  int topk = 2, mask_dims = 1;
  float shared_factor = 100;
  std::vector<float> alpha1, alpha2, v;  // of one constant expert
  const EpGroup group;

  std::vector<Output> run() {
    return group.results<Output>([this](int rank, const Device& device) { return run_rank(rank, device); });
  }

 private:
  std::vector<F16> matrix(const std::vector<float>& vs) const {
    constexpr float kPattern[] = {1, 2, -1, 0.5f};
    std::vector<F16> made;
    for (const float value : vs)
      for (int h = 0; h < hidden_; ++h) made.push_back(F16(value * kPattern[h % 4]));
    return made;
  }

  Output run_rank(int rank, const Device& device) const {
    const Input& in = inputs_[static_cast<std::size_t>(rank)];
    Output out;
    const std::int64_t bs = static_cast<std::int64_t>(in.v.size()), rows_fit = 20,
                       local = local_experts(rank);
    const Tensor x = Tensor::of<F16>({bs, hidden_}, matrix(in.v));
    const Tensor ids = Tensor::of<std::int32_t>({bs, topk}, in.ids);
    const Tensor weights = Tensor::of<float>({bs, topk}, in.weights);
    std::optional<Tensor> mask;
    if (!in.mask.empty())
      mask = mask_dims == 1 ? Tensor::of<std::uint8_t>({bs}, in.mask)
                            : Tensor::of<std::uint8_t>({bs, topk}, in.mask);
    const Tensor assist = Tensor::empty<std::int32_t>({rows_fit * 128});
    const Tensor counts = Tensor::empty<std::int32_t>({group.size() * local});
    const Tensor rows = Tensor::empty<F16>({rows_fit, hidden_});
    for (const std::int64_t type : {0, 1}) {
      const Tensor nums = Tensor::empty<std::int64_t>({local});
      const Tensor expand_scales = Tensor::empty<float>({rows_fit});
      DispatchParams p{attributes_};
      p.rank = rank, p.nums_type = type, p.x = x, p.ids = ids, p.mask = handle(mask), p.weights = weights;
      p.expand_x = rows, p.assist = assist, p.nums = nums, p.counts = counts, p.expand_scales = expand_scales;
      EXPECT_EQ(oracle::run(p, device), 0) << recent_message();
      (type == 1 ? out.nums : out.prefix_nums) = nums.values<std::int64_t>();
      out.weights = expand_scales.values<float>();
    }
    out.counts = counts.values<std::int32_t>();
    for (const std::int32_t value : assist.values<std::int32_t>())
      if (value != 0x5A5A5A5A) out.assist.push_back(value);
    const auto n = static_cast<std::size_t>(out.counts.back());
    std::vector<F16> values = rows.values<F16>();
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows_fit); ++i) {
      if (values[i * static_cast<std::size_t>(hidden_)].bits == kUntouched) continue;
      out.rows.push_back(widen(values[i * static_cast<std::size_t>(hidden_)]));
    }
    out.weights.resize(n);
    apply_experts(rank, out, values);
    combine(rank, device, {&ids, &assist, &counts, &weights, &x}, handle(mask), values, out);
    return out;
  }

  std::int64_t local_experts(int rank) const {
    return rank < attributes_.shared_ranks ? 1
                                           : attributes_.experts / (group.size() - attributes_.shared_ranks);
  }
  // Expert e multiplies by e + 1, a shared expert by shared_factor.
  void apply_experts(int rank, const Output& out, std::vector<F16>& rows) const {
    std::size_t i = 0;
    for (std::size_t l = 0; l < out.nums.size(); ++l)
      for (std::int64_t n = 0; n < out.nums[l]; ++n, ++i)
        for (std::size_t h = 0; h < static_cast<std::size_t>(hidden_); ++h) {
          F16& value = rows[i * static_cast<std::size_t>(hidden_) + h];
          const float expert = static_cast<float>((rank - attributes_.shared_ranks) * local_experts(rank)) +
                               static_cast<float>(l);
          value = F16(widen(value) * (rank < attributes_.shared_ranks ? shared_factor : expert + 1));
        }
  }

  struct Given {
    const Tensor *ids, *assist, *counts, *weights, *x;
  };
  void combine(int rank, const Device& device, const Given& given, aclTensor* mask,
               const std::vector<F16>& rows, Output& out) const {
    const std::int64_t bs = given.x->shape()[0];
    const Tensor expand_x =
        Tensor::of<F16>({static_cast<std::int64_t>(rows.size()) / hidden_, hidden_}, rows);
    const Tensor result = Tensor::empty<F16>({bs, hidden_});
    std::optional<Tensor> a1, a2, vector;
    const auto halves = [&](const std::vector<float>& values) {
      std::vector<F16> made;
      for (const float value : values) made.push_back(F16(value));
      return Tensor::of<F16>({1, hidden_}, made);
    };
    if (attributes_.constant > 0) a1 = halves(alpha1), a2 = halves(alpha2), vector = halves(v);
    CombineParams c{attributes_};
    c.rank = rank, c.expand_x = expand_x, c.ids = *given.ids, c.assist = *given.assist,
    c.counts = *given.counts;
    c.weights = *given.weights, c.mask = mask, c.out = result;
    if (attributes_.copy + attributes_.constant > 0) c.ori_x = *given.x;
    c.alpha1 = handle(a1), c.alpha2 = handle(a2), c.v = handle(vector);
    EXPECT_EQ(oracle::run(c, device), 0) << recent_message();
    const std::vector<F16> sums = result.values<F16>();
    for (std::int64_t t = 0; t < bs; ++t) {
      const F16 first = sums[static_cast<std::size_t>(t * hidden_)];
      out.sums.push_back(first.bits == kUntouched ? -1 : widen(first));
    }
    for (const F16 value : sums) out.sum_rows.push_back(widen(value));
  }

  EpParams attributes_;
  const std::vector<Input> inputs_;
  const int hidden_;
};

EpParams four_experts() {
  EpParams attributes;
  attributes.experts = 4;
  return attributes;
}
const Input kFirst{{1, 2, 3}, {0, 2, 3, 0, 1, 2}, {.75f, .25f, .5f, .5f, .625f, .375f}, {}};
const Input kSecond{{11, 12, 13}, {2, 1, 0, 3, 2, 0}, {.5f, .25f, .875f, .125f, 1, .5f}, {}};
Input masked(Input input, std::vector<std::uint8_t> mask) {
  input.mask = std::move(mask);
  return input;
}

// The rounded value: combine writes FP16.
float half(float value) { return widen(F16(value)); }

TEST(Examples, TwoRanksWithTwoExpertsEach) {
  const auto out = Example(four_experts(), {kFirst, kSecond}).run();
  EXPECT_THAT(out[0].rows, ElementsAre(1, 2, 12, 13, 3, 11));
  EXPECT_THAT(out[1].rows, ElementsAre(1, 3, 11, 13, 2, 12));
  for (const Output& rank : out) {
    EXPECT_THAT(rank.nums, ElementsAre(4, 2));
    EXPECT_THAT(rank.prefix_nums, ElementsAre(4, 6));
    EXPECT_THAT(rank.counts, ElementsAre(2, 4, 5, 6));
  }
  EXPECT_THAT(out[0].assist, ElementsAreArray({0, 0, 0, 0, 1, 1, 1, 1, 0, 1, 2, 1, 0, 2, 0, 1, 0, 1}));
  EXPECT_THAT(out[1].assist, ElementsAreArray({0, 0, 1, 0, 2, 1, 1, 0, 0, 1, 2, 0, 0, 1, 0, 1, 1, 1}));
  EXPECT_THAT(out[0].weights, ElementsAre(.75f, .5f, .875f, .5f, .625f, .25f));
  EXPECT_THAT(out[1].weights, ElementsAre(.25f, .375f, .5f, 1, .5f, .125f));
  EXPECT_THAT(out[0].sums, ElementsAre(1.5f, 5, 7.125f));
  EXPECT_THAT(out[1].sums, ElementsAre(22, 16.5f, 45.5f));
}

TEST(Examples, MaskOfTokens) {
  const auto out = Example(four_experts(), {masked(kFirst, {1, 1, 0}), masked(kSecond, {1, 0, 0})}).run();
  EXPECT_THAT(out[0].rows, ElementsAre(1, 2, 11));
  EXPECT_THAT(out[1].rows, ElementsAre(1, 11, 2));
  for (const Output& rank : out) {
    EXPECT_THAT(rank.nums, ElementsAre(2, 1));
    EXPECT_THAT(rank.prefix_nums, ElementsAre(2, 3));
  }
  EXPECT_THAT(out[0].counts, ElementsAre(2, 2, 2, 3));
  EXPECT_THAT(out[1].counts, ElementsAre(1, 2, 3, 3));
  EXPECT_THAT(out[0].assist, ElementsAre(0, 0, 0, 0, 1, 1, 1, 0, 1));
  EXPECT_THAT(out[1].assist, ElementsAre(0, 0, 1, 1, 0, 0, 0, 1, 0));
  EXPECT_THAT(out[0].sums, ElementsAre(1.5f, 5, -1));
  EXPECT_THAT(out[1].sums, ElementsAre(22, -1, -1));
}

TEST(Examples, MaskOfSlots) {
  Example example(four_experts(), {masked(kFirst, {1, 0, 1, 1, 0, 0}), masked(kSecond, {0, 1, 0, 0, 1, 1})});
  example.mask_dims = 2;
  const auto out = example.run();
  EXPECT_THAT(out[0].rows, ElementsAre(1, 2, 13, 11));
  EXPECT_THAT(out[1].rows, ElementsAre(13, 2));
  EXPECT_THAT(out[0].nums, ElementsAre(3, 1));
  EXPECT_THAT(out[0].prefix_nums, ElementsAre(3, 4));
  EXPECT_THAT(out[1].nums, ElementsAre(1, 1));
  EXPECT_THAT(out[1].prefix_nums, ElementsAre(1, 2));
  EXPECT_THAT(out[0].counts, ElementsAre(2, 3, 3, 4));
  EXPECT_THAT(out[1].counts, ElementsAre(0, 1, 2, 2));
  EXPECT_THAT(out[0].assist, ElementsAre(0, 0, 0, 0, 1, 1, 1, 2, 1, 1, 0, 1));
  EXPECT_THAT(out[1].assist, ElementsAre(1, 2, 0, 0, 1, 0));
  EXPECT_THAT(out[0].sums, ElementsAre(.75f, 5, -1));
  EXPECT_THAT(out[1].sums, ElementsAre(5.5f, -1, 45.5f));
}

TEST(Examples, SharedExpertOnARankOfItsOwn) {
  EpParams attributes = four_experts();
  attributes.shared = attributes.shared_ranks = 1;
  attributes.global_bs = 9;
  const auto out = Example(attributes, {kFirst, kSecond, {{21}, {3, 1}, {.5f, .5f}, {}}}).run();
  EXPECT_THAT(out[0].rows, ElementsAre(1, 2, 3, 11, 12, 13, 21));
  EXPECT_THAT(out[1].rows, ElementsAre(1, 2, 12, 13, 3, 11, 21));
  EXPECT_THAT(out[2].rows, ElementsAre(1, 3, 11, 13, 2, 12, 21));
  EXPECT_THAT(out[0].nums, ElementsAre(7));
  EXPECT_THAT(out[1].nums, ElementsAre(4, 3));
  EXPECT_THAT(out[2].nums, ElementsAre(4, 3));
  EXPECT_THAT(out[0].counts, ElementsAre(3, 6, 7));
  EXPECT_THAT(out[1].counts, ElementsAre(2, 4, 4, 5, 6, 7));
  EXPECT_THAT(out[2].counts, ElementsAre(2, 4, 4, 5, 6, 7));
  EXPECT_THAT(out[0].assist,
              ElementsAreArray({0, 0, 2, 0, 1, 2, 0, 2, 2, 1, 0, 2, 1, 1, 2, 1, 2, 2, 2, 0, 2}));
  EXPECT_THAT(out[1].assist,
              ElementsAreArray({0, 0, 0, 0, 1, 1, 1, 1, 0, 1, 2, 1, 0, 2, 0, 1, 0, 1, 2, 0, 1}));
  EXPECT_THAT(out[2].assist,
              ElementsAreArray({0, 0, 1, 0, 2, 1, 1, 0, 0, 1, 2, 0, 0, 1, 0, 1, 1, 1, 2, 0, 0}));
  EXPECT_THAT(out[0].sums, ElementsAre(101.5f, 205, half(307.125f)));
  EXPECT_THAT(out[1].sums, ElementsAre(1122, half(1216.5f), half(1345.5f)));
  EXPECT_THAT(out[2].sums, ElementsAre(half(2163)));
}

TEST(Examples, ReplicasOfASharedExpert) {
  EpParams attributes = four_experts();
  attributes.shared = 1, attributes.shared_ranks = 2;
  const std::vector<float> even{.5f, .5f};
  const auto out = Example(attributes, {{{1}, {0, 2}, even, {}},
                                        {{2}, {1, 2}, even, {}},
                                        {{3}, {3, 0}, even, {}},
                                        {{4}, {2, 3}, even, {}}})
                       .run();
  EXPECT_THAT(out[0].rows, ElementsAre(1, 3));
  EXPECT_THAT(out[0].counts, ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(out[1].rows, ElementsAre(2, 4));
  EXPECT_THAT(out[1].counts, ElementsAre(0, 1, 1, 2));
  EXPECT_THAT(out[2].rows, ElementsAre(1, 3, 2));
  EXPECT_THAT(out[2].counts, ElementsAre(1, 1, 2, 2, 2, 3, 3, 3));
  EXPECT_THAT(out[2].nums, ElementsAre(2, 1));
  EXPECT_THAT(out[3].rows, ElementsAre(1, 2, 4, 3, 4));
  EXPECT_THAT(out[3].counts, ElementsAre(1, 2, 2, 3, 3, 3, 4, 5));
  EXPECT_THAT(out[3].nums, ElementsAre(3, 2));
}

TEST(Examples, ZeroCopyAndConstantExperts) {
  EpParams attributes = four_experts();
  attributes.zero = attributes.copy = attributes.constant = 1;
  Input first = kFirst;
  first.ids = {0, 4, 5, 2, 6, 1};
  for (const bool even : {true, false}) {
    Example example(attributes, {first, kSecond});
    example.alpha1 = {.5f, 0, 0, 0};
    example.alpha2 = {0, 0, 0, even ? 1.0f : 0.0f};
    example.v = {8, 4, 2, 1};
    const auto out = example.run();
    EXPECT_THAT(out[0].rows, ElementsAre(1, 12, 13, 3, 11));
    EXPECT_THAT(out[0].nums, ElementsAre(3, 2));
    EXPECT_THAT(out[0].counts, ElementsAre(1, 3, 4, 5));
    EXPECT_THAT(out[1].rows, ElementsAre(2, 11, 13, 12));
    EXPECT_THAT(out[1].nums, ElementsAre(3, 1));
    EXPECT_THAT(out[1].counts, ElementsAre(1, 3, 3, 4));
    std::vector<float> want{0.75f, 1.5f, -0.75f, 0.375f, 4, 8, -4, 2};
    for (const float value : even ? std::vector<float>{5.6875f, 7.625f, -2.5625f, 1.90625f}
                                  : std::vector<float>{4.6950798f, 8.0219679f, -3.5549202f, 2.0054920f})
      want.push_back(half(value));
    EXPECT_EQ(out[0].sum_rows, want);
  }
}

// On A2 the private tensor for combine holds, per sent slot, its number among those for the same expert.
TEST(Examples, FormOfA2) {
  if (!run_again_with("MOEYARD_SOC", "A2")) return;
  const auto all = Example(four_experts(), {kFirst, kSecond}, 32).run();
  EXPECT_THAT(all[0].assist, ElementsAre(0, 0, 0, 1, 0, 1));
  EXPECT_THAT(all[1].assist, ElementsAre(0, 0, 0, 0, 1, 1));
  EXPECT_THAT(all[0].sums, ElementsAre(1.5f, 5, 7.125f));
  EXPECT_THAT(all[1].sums, ElementsAre(22, 16.5f, 45.5f));

  const auto some =
      Example(four_experts(), {masked(kFirst, {1, 1, 0}), masked(kSecond, {1, 0, 0})}, 32).run();
  EXPECT_THAT(some[0].assist, ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(some[1].assist, ElementsAre(0, 0));
  EXPECT_THAT(some[0].sums, ElementsAre(1.5f, 5, -1));
  EXPECT_THAT(some[1].sums, ElementsAre(22, -1, -1));

  Example slots(four_experts(), {masked(kFirst, {1, 0, 1, 1, 0, 0}), masked(kSecond, {0, 1, 0, 0, 1, 1})},
                32);
  slots.mask_dims = 2;
  const auto masked_slots = slots.run();
  EXPECT_THAT(masked_slots[0].assist, ElementsAre(0, 0, 0, 1, 0, 0));
  EXPECT_THAT(masked_slots[1].assist, ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(masked_slots[0].sums, ElementsAre(.75f, 5, -1));
  EXPECT_THAT(masked_slots[1].sums, ElementsAre(5.5f, -1, 45.5f));
}

// Two experts of one rank, the second with smooth factors of its own.
TEST(Examples, QuantisedRows) {
  const EpGroup group(1);
  group.run([&](int, const Device& device) {
    std::vector<B16> row;
    for (const float value : {1.0f, -2.5f, 0.3125f, 3.0f}) row.push_back(B16(value));
    const Tensor x = Tensor::of<B16>({1, 4}, row), ids = Tensor::of<std::int32_t>({1, 2}, {0, 1});
    const Tensor smooth = Tensor::of<float>({2, 4}, {1, 1, 1, 1, 1, .5f, 2, 1});
    const Tensor rows = Tensor::empty<std::int8_t>({2, 4}), scales = Tensor::empty<float>({2});
    const Tensor assist = Tensor::empty<std::int32_t>({256}), nums = Tensor::empty<std::int64_t>({2});
    const Tensor counts = Tensor::empty<std::int32_t>({2});
    DispatchParams p;
    p.group = group.name(), p.ranks = 1, p.experts = 2, p.quant_mode = 2, p.x = x, p.ids = ids,
    p.scales = smooth;
    p.expand_x = rows, p.dynamic_scales = scales, p.assist = assist, p.nums = nums, p.counts = counts;
    ASSERT_EQ(oracle::run(p, device), 0) << recent_message();
    EXPECT_THAT(rows.values<std::int8_t>(), ElementsAre(42, -106, 13, 127, 42, -53, 26, 127));
    EXPECT_THAT(scales.values<std::uint32_t>(), ElementsAre(0x3cc18306u, 0x3cc18306u));
  });
}

// What one expert on one rank gets of one token.
struct RowOfOne {
  std::vector<int> bits;
  std::vector<std::uint32_t> scales;
  std::vector<int> bytes;  // of scales
  auto fields() { return std::tie(bits, scales, bytes); }
};
RowOfOne row_of_one(std::int64_t mode, aclDataType to, const std::vector<float>& values,
                    const std::vector<float>& factors, std::vector<std::int64_t> shape_of_scales) {
  const EpGroup group(1);
  const auto run_rank = [&](int, const Device& device) {
    RowOfOne row;
    const auto hidden = static_cast<std::int64_t>(values.size());
    std::vector<B16> token;
    for (const float value : values) token.push_back(B16(value));
    const Tensor x = Tensor::of<B16>({1, hidden}, token), ids = Tensor::of<std::int32_t>({1, 1}, {0});
    const Tensor scales = Tensor::of<float>({static_cast<std::int64_t>(factors.size())}, factors);
    const bool in_blocks = mode == 4;
    const Tensor rows = to == ACL_FLOAT4_E2M1 ? Tensor::packed(to, {1, hidden}) : Tensor(to, {1, hidden}, 1);
    const Tensor dynamic_scales(in_blocks ? ACL_FLOAT8_E8M0 : ACL_FLOAT, std::move(shape_of_scales),
                                in_blocks ? 1 : 4);
    const Tensor assist = Tensor::empty<std::int32_t>({128}), nums = Tensor::empty<std::int64_t>({1});
    const Tensor counts = Tensor::empty<std::int32_t>({1});
    DispatchParams p;
    p.group = group.name(), p.ranks = 1, p.experts = 1, p.quant_mode = mode, p.x = x, p.ids = ids;
    p.scales = factors.empty() ? nullptr : static_cast<aclTensor*>(scales);
    p.expand_x = rows, p.dynamic_scales = dynamic_scales, p.assist = assist, p.nums = nums, p.counts = counts;
    EXPECT_EQ(oracle::run(p, device), 0) << recent_message();
    for (const std::uint8_t bits : rows.values<std::uint8_t>()) row.bits.push_back(bits);
    if (!in_blocks) row.scales = dynamic_scales.values<std::uint32_t>();
    for (std::size_t i = 0; i < dynamic_scales.bytes(); ++i)
      row.bytes.push_back(static_cast<unsigned char*>(dynamic_scales.memory())[i]);
    return row;
  };
  return group.results<RowOfOne>(run_rank)[0];
}

// 448 / 3.5 = 128 and 57344 / 3.5 = 16384: the products are exact.
TEST(Examples, Fp8Rows) {
  const RowOfOne e4m3 = row_of_one(2, ACL_FLOAT8_E4M3FN, {3.5f, -1, 0, 0.0078125f}, {}, {1});
  EXPECT_THAT(e4m3.bits, ElementsAre(0x7E, 0xF0, 0, 0x38));  // 448, -128, 0, 1
  EXPECT_THAT(e4m3.scales, ElementsAre(0x3C000000u));        // 1 / 128
  const RowOfOne e5m2 = row_of_one(2, ACL_FLOAT8_E5M2, {3.5f, -1, 0, 0.0078125f}, {}, {1});
  EXPECT_THAT(e5m2.bits, ElementsAre(0x7B, 0xF4, 0, 0x58));  // 57344, -16384, 0, 128
  EXPECT_THAT(e5m2.scales, ElementsAre(0x38800000u));        // 1 / 16384
}

TEST(Examples, RowsByGivenFactors) {
  const std::vector<float> token{1, -2.5f, 0.3125f, 3};
  EXPECT_THAT(row_of_one(1, ACL_INT8, token, {20}, {1}).bits, ElementsAre(20, 256 - 50, 6, 60));  // 6.25
  const RowOfOne each = row_of_one(1, ACL_INT8, token, {2.5f, 100, 8, -50}, {1});
  EXPECT_THAT(each.bits,
              ElementsAre(2, 256 - 128, 2, 256 - 128));  // 2.5 goes to even, -250 and -150 to the last
  EXPECT_THAT(each.scales, ElementsAre(0x5A5A5A5Au));
}

// A scale is its group's largest element times 1 / 448, neither 3 / 448 nor 1 / (448 / 3).
TEST(Examples, RowsInGroups) {
  std::vector<float> token(200, 0.0f);
  token[7] = -3, token[127] = 1.5f, token[199] = 3;
  const RowOfOne row = row_of_one(3, ACL_FLOAT8_E4M3FN, token, {}, {1, 2});
  EXPECT_THAT(row.scales, ElementsAre(0x3bdb6db8u, 0x3bdb6db8u));
  EXPECT_EQ(row.bits[7], 0xFE);
  EXPECT_EQ(row.bits[127], 0x76);  // 224
  EXPECT_EQ(row.bits[128], 0);
  EXPECT_EQ(row.bits[199], 0x7E);
}

// Scales are powers of two, for 32 elements each; an odd number of them is filled up with 0.
TEST(Examples, RowsInBlocks) {
  const RowOfOne plain = row_of_one(4, ACL_FLOAT8_E4M3FN, {1, -0.8125f, 7.5f, 0.01f, 448, 500}, {}, {1, 2});
  EXPECT_THAT(plain.bits, ElementsAre(0x38, 0xB5, 0x4F, 0x05, 0x7E, 0x7E));  // 0.01 becomes 0.009765625
  EXPECT_THAT(plain.bytes, ElementsAre(127, 0));
  const RowOfOne scaled = row_of_one(4, ACL_FLOAT8_E4M3FN, {1, 1.9375f, -0.3f}, {}, {1, 1, 2});
  EXPECT_THAT(scaled.bits, ElementsAre(0x78, 0x7E, 0xEA));  // 256, 496 as 448, -77 as -80
  EXPECT_THAT(scaled.bytes, ElementsAre(119, 0));
  const RowOfOne halves = row_of_one(4, ACL_FLOAT4_E2M1, {6, -0.5f, 1.5f, 0}, {}, {1, 2});
  EXPECT_THAT(halves.bits, ElementsAre(0x97, 0x03));
  EXPECT_THAT(halves.bytes, ElementsAre(127, 0));
}

TEST(Examples, RowsOfHifloat8) {
  const std::vector<float> token{1, -2.5f, 0.3125f, 3};
  EXPECT_THAT(row_of_one(0, ACL_HIFLOAT8, token, {}, {1}).bits, ElementsAre(0x08, 0x92, 0x32, 0x14));
  // 40; -100 goes to -96; 12.5 and 120 lie in the middle between two numbers and go to 13 and 128.
  EXPECT_THAT(row_of_one(1, ACL_HIFLOAT8, token, {40}, {1}).bits, ElementsAre(0x45, 0xCA, 0x2D, 0x4C));
}

// xOut is what communication leaves of the one expert's row.
TEST(Examples, QuantisedCommunication) {
  const auto left = [](std::int64_t mode, const std::vector<float>& values) {
    const EpGroup group(1);
    const auto run_rank = [&](int, const Device& device) {
      std::vector<float> sums;
      const auto hidden = static_cast<std::int64_t>(values.size());
      std::vector<B16> row;
      for (const float value : values) row.push_back(B16(value));
      CombineParams p;
      const Tensor expand_x = Tensor::of<B16>({1, hidden}, row), out = Tensor::empty<B16>({1, hidden});
      const Tensor ids = Tensor::of<std::int32_t>({1, 1}, {0}), counts = Tensor::of<std::int32_t>({1}, {1});
      const Tensor assist = Tensor::of<std::int32_t>({128}, std::vector<std::int32_t>(128, 0));
      const Tensor weights = Tensor::of<float>({1, 1}, {1});
      p.group = group.name(), p.ranks = 1, p.experts = 1, p.quant_mode = mode;
      p.expand_x = expand_x, p.ids = ids, p.assist = assist, p.counts = counts, p.weights = weights,
      p.out = out;
      EXPECT_EQ(oracle::run(p, device), 0) << recent_message();
      for (const B16 value : out.values<B16>()) sums.push_back(widen(value));
      return sums;
    };
    return group.results<std::vector<float>>(run_rank)[0];
  };
  EXPECT_THAT(left(2, {1, -2, .5f, .25f, 3, -.75f, 0, 1.5f}),
              ElementsAre(0.99609375f, -2.015625f, 0.498046875f, 0.259765625f, 3, -0.7578125f, 0, 1.515625f));
  EXPECT_THAT(left(4, {1, 1.9375f, -0.3f}), ElementsAre(1, 1.75f, -0.3125f));
  EXPECT_THAT(left(3, {1, -1.125f, 0.0625f, 1.875f}), ElementsAre(1, -1, 0.0625f, 1.75f));
}

}  // namespace
}  // namespace oracle
