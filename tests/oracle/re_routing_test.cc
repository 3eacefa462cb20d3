// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnMoeReRouting and V2.
#include "aclnnop/aclnn_moe_re_routing.h"

#include <gtest/gtest.h>

#include "aclnnop/aclnn_moe_re_routing_v2.h"
#include "support/refusals.h"
#include "support/rerun.h"
#include "support/rows.h"

namespace oracle {
namespace {

using Ids = std::vector<std::int32_t>;
using Values = std::vector<std::int64_t>;
using Floats = std::vector<float>;

struct Case {
  std::int64_t ranks = 0, experts = 0, rows = 0, hidden = 0;
  Values counts;
  bool v2 = false, scaled = true;
  std::optional<aclDataType> packed;  // FP4 rows: `hidden` counts bytes
  std::int64_t scales = 0;            // per row; 0: one dimension
  std::int64_t count_type = 1, idx_type = 0;
};

template <class T, class N>
struct Call {
  Call(const Case& c, std::mt19937& random, bool views = false) : c(c) {
    auto layout = [&] { return views ? random_layout(random) : Layout::dense; };
    const std::int64_t width = std::max<std::int64_t>(c.scales, 1);
    values = random_bits<T>(random, c.rows * c.hidden);
    scale_values = random_bits<float>(random, c.rows * width);
    weight_values = random_bits<float>(random, c.rows);
    const Values scale_shape = c.scales > 0 ? Values{c.rows, c.scales} : Values{c.rows};
    tokens = Tensor::of<T>({c.rows, c.hidden}, values, layout());
    counts = Tensor::of<N>({c.ranks, c.experts}, std::vector<N>(c.counts.begin(), c.counts.end()), layout());
    if (c.scaled) scales = Tensor::of<float>(scale_shape, scale_values, layout());
    if (c.v2) weights = Tensor::of<float>({c.rows, 1}, weight_values, layout());
    out = Tensor::empty<T>({c.rows, c.hidden}, layout());
    out_scales = Tensor::empty<float>(scale_shape, layout());
    idx = Tensor::empty<std::int32_t>({c.rows}, layout());
    num = Tensor::empty<N>({c.experts}, layout());
    if (c.v2) out_weights = Tensor::empty<float>({c.rows, 1}, layout());
    if (!c.packed) return;
    tokens->split_bytes(*c.packed);
    out->split_bytes(*c.packed);
  }
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    if (c.v2)
      return aclnnMoeReRoutingV2GetWorkspaceSize(
          handle(tokens), handle(counts), handle(scales), handle(weights), c.count_type, c.idx_type,
          handle(out), handle(out_scales), handle(idx), handle(num), handle(out_weights), size, executor);
    return aclnnMoeReRoutingGetWorkspaceSize(handle(tokens), handle(counts), handle(scales), c.count_type,
                                             c.idx_type, handle(out), handle(out_scales), handle(idx),
                                             handle(num), size, executor);
  }
  int run(const Device& device) {
    return oracle::run([this](auto* size, auto** executor) { return phase_one(size, executor); },
                       c.v2 ? aclnnMoeReRoutingV2 : aclnnMoeReRouting, device);
  }

  Case c;
  std::vector<T> values;
  Floats scale_values, weight_values;
  std::optional<Tensor> tokens, counts, scales, weights, out, out_scales, idx, num, out_weights;
};

// The definition: where each row comes from.
Ids sources(const Case& c) {
  Ids from;
  for (std::int64_t e = 0; e < c.experts; ++e)
    for (std::int64_t r = 0; r < c.ranks; ++r) {
      std::int64_t first = 0;
      for (std::int64_t before = 0; before < r * c.experts + e; ++before)
        first += c.counts[static_cast<std::size_t>(before)];
      for (std::int64_t i = 0; i < c.counts[static_cast<std::size_t>(r * c.experts + e)]; ++i)
        from.push_back(static_cast<std::int32_t>(first + i));
    }
  return from;
}

template <class T, class N>
void matches_reference(const Case& c, std::mt19937& random, const Device& device, bool views = true) {
  Call<T, N> call(c, random, views);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  const Ids from = sources(c);
  Ids idx(from.size());
  std::vector<T> rows;
  Floats scales, weights;
  const std::int64_t width = std::max<std::int64_t>(c.scales, 1);
  for (std::size_t row = 0; row < from.size(); ++row) {
    (c.idx_type == 1 ? idx[static_cast<std::size_t>(from[row])] : idx[row]) =
        c.idx_type == 1 ? static_cast<std::int32_t>(row) : from[row];
    for (std::int64_t h = 0; h < c.hidden; ++h)
      rows.push_back(call.values[static_cast<std::size_t>(from[row] * c.hidden + h)]);
    for (std::int64_t s = 0; s < width; ++s)
      scales.push_back(c.scaled ? call.scale_values[static_cast<std::size_t>(from[row] * width + s)]
                                : sentinel<float>());
    weights.push_back(call.weight_values[static_cast<std::size_t>(from[row])]);
  }
  std::vector<N> num;
  std::int64_t sum = 0;
  for (std::int64_t e = 0; e < c.experts; ++e) {
    if (c.count_type == 1) sum = 0;
    for (std::int64_t r = 0; r < c.ranks; ++r) sum += c.counts[static_cast<std::size_t>(r * c.experts + e)];
    num.push_back(static_cast<N>(sum));
  }
  EXPECT_EQ(bits(call.out->template values<T>()), bits(rows));
  EXPECT_EQ(bits(call.out_scales->template values<float>()), bits(scales));
  EXPECT_EQ(call.idx->template values<std::int32_t>(), idx);
  EXPECT_EQ(call.num->template values<N>(), num);
  if (c.v2) {
    EXPECT_EQ(bits(call.out_weights->template values<float>()), bits(weights));
  }
  EXPECT_TRUE(call.out->gaps_untouched() && call.idx->gaps_untouched() && call.num->gaps_untouched());
}

Case random_case(std::mt19937& random, std::int64_t most = 6) {
  Case c{1 + below(random, 8), 1 + below(random, 9), 0, 1 + below(random, 70)};
  for (std::int64_t i = 0; i < c.ranks * c.experts; ++i) {
    c.counts.push_back(below(random, most));
    c.rows += c.counts.back();
  }
  c.v2 = below(random, 2) == 0, c.scaled = below(random, 2) == 0, c.scales = below(random, 3);
  c.count_type = below(random, 2), c.idx_type = below(random, 2);
  return c;
}

class ReRoutingTest : public testing::Test {
 protected:
  Case example() const { return {3, 2, 7, 1, {2, 1, 1, 2, 1, 0}}; }
  Device device;
  std::mt19937 random{seed()};
};

TEST_F(ReRoutingTest, GivesTheWorkedExample) {
  for (const std::int64_t idx_type : {0, 1}) {
    Case c = example();
    c.idx_type = idx_type;
    Call<F16, std::int32_t> call(c, random);
    ASSERT_EQ(call.run(device), 0) << recent_message();
    EXPECT_EQ(call.idx->values<std::int32_t>(),
              idx_type == 0 ? (Ids{0, 1, 3, 6, 2, 4, 5}) : (Ids{0, 1, 4, 2, 5, 6, 3}));
    EXPECT_EQ(call.num->values<std::int32_t>(), (Ids{4, 3}));
  }
}

TEST_F(ReRoutingTest, MatchesItsDefinition) {
  SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()));
  for (int round = 0; round < 300 && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Case c = random_case(random);
    switch (below(random, 3)) {
      case 0:
        matches_reference<F16, std::int32_t>(c, random, device);
        break;
      case 1:
        matches_reference<B16, std::int64_t>(c, random, device);
        break;
      default:
        matches_reference<std::int8_t, std::int32_t>(c, random, device);
    }
  }
}

TEST_F(ReRoutingTest, MovesFourBitRows) {
  for (const aclDataType dtype : {ACL_FLOAT4_E2M1, ACL_FLOAT4_E1M2}) {
    Case c = random_case(random);
    c.packed = dtype;
    matches_reference<std::int8_t, std::int32_t>(c, random, device, false);
  }
}

TEST_F(ReRoutingTest, IsTheSameOnOneThreadAndMany) {
  const bool asked = std::getenv("MOEYARD_THREADS") != nullptr;
  Case c = random_case(random, 800);
  c.hidden = 300;
  matches_reference<B16, std::int64_t>(c, random, device, false);
  if (asked) return;
  run_again_with("MOEYARD_THREADS", "1");
  run_again_with("MOEYARD_THREADS", "5");
}

TEST_F(ReRoutingTest, LeavesWhatTheCountsDoNotCover) {
  Case c = example();
  c.rows = 9;
  Call<F16, std::int64_t> call(c, random);
  call.counts->set(Values{2, 1, 1, 2, 1, -5});
  ASSERT_EQ(call.run(device), 0) << recent_message();
  const Ids idx = call.idx->values<std::int32_t>();
  EXPECT_EQ(Ids(idx.begin(), idx.begin() + 7), (Ids{0, 1, 3, 6, 2, 4, 5}));
  EXPECT_EQ(idx[7], 0x5A5A5A5A);
  EXPECT_EQ(bits(call.out->values<F16>())[8], bits(std::vector<F16>{sentinel<F16>()})[0]);
}

TEST_F(ReRoutingTest, StopsAtTheRowsThatThereAre) {
  for (const std::int64_t huge : {INT64_C(1000), INT64_MAX}) {
    Case c = example();
    Call<F16, std::int64_t> call(c, random);
    call.counts->set(Values{3, huge, huge, 2, 0, huge});
    ASSERT_EQ(call.run(device), 0) << recent_message();
    for (const std::int32_t source : call.idx->values<std::int32_t>())
      EXPECT_TRUE((0 <= source && source < 7) || source == 0x5A5A5A5A) << source;
  }
}

// --- What is refused -------------------------------------------------------------------------------------

using Good = Call<F16, std::int32_t>;
template <class T>
auto make(std::optional<Tensor> Good::*member, Values shape) {
  return [member, shape](Good& c) { c.*member = Tensor::empty<T>(shape); };
}
auto drop(std::optional<Tensor> Good::*member) {
  return [member](Good& c) { (c.*member).reset(); };
}

const Refusal<Good> kRefusals[] = {
    {"tokens", 161001, "tokens is null", drop(&Good::tokens)},
    {"counts", 161001, "expertTokenNumPerRank is null", drop(&Good::counts)},
    {"out", 161001, "permuteTokensOut is null", drop(&Good::out)},
    {"out_scales", 161001, "permutePerTokenScalesOut is null", drop(&Good::out_scales)},
    {"idx", 161001, "permuteTokenIdxOut is null", drop(&Good::idx)},
    {"num", 161001, "expertTokenNumOut is null", drop(&Good::num)},
    {"tokens_dtype", 561002, "tokens is FP32[7,1]", make<float>(&Good::tokens, {7, 1})},
    {"counts_dtype", 561002, "expertTokenNumPerRank is FP32[3,2]", make<float>(&Good::counts, {3, 2})},
    {"scales_dtype", 561002, "perTokenScalesOptional is FP16[7]", make<F16>(&Good::scales, {7})},
    {"out_dtype", 561002, "permuteTokensOut is BF16[7,1]", make<B16>(&Good::out, {7, 1})},
    {"out_scales_dtype", 561002, "permutePerTokenScalesOut is INT32[7]",
     make<std::int32_t>(&Good::out_scales, {7})},
    {"num_dtype", 561002, "expertTokenNumOut is INT64[2]", make<std::int64_t>(&Good::num, {2})},
    {"idx_dtype", 561002, "permuteTokenIdxOut is INT64[7]", make<std::int64_t>(&Good::idx, {7})},
    {"scales_rank", 561002, "perTokenScalesOptional is FP32[7,1,1]", make<float>(&Good::scales, {7, 1, 1})},
    {"tokens_rank", 561002, "tokens is FP16[7]", make<F16>(&Good::tokens, {7})},
    {"counts_rank", 561002, "expertTokenNumPerRank is INT32[6]", make<std::int32_t>(&Good::counts, {6})},
    {"count_type", 561002, "expertTokenNumType is 2 but must be 0 or 1", [](Good& c) { c.c.count_type = 2; }},
    {"idx_type", 561002, "idxType is 2 but must be 0 or 1", [](Good& c) { c.c.idx_type = 2; }},
    {"out_shape", 561002, "permuteTokensOut is FP16[6,1]", make<F16>(&Good::out, {6, 1})},
    {"scales_shape", 561002, "perTokenScalesOptional is FP32[6]", make<float>(&Good::scales, {6})},
    {"out_scales_shape", 561002, "permutePerTokenScalesOut is FP32[6] but must have the shape of",
     make<float>(&Good::out_scales, {6})},
    {"idx_shape", 561002, "permuteTokenIdxOut is INT32[6]", make<std::int32_t>(&Good::idx, {6})},
    {"num_shape", 561002, "expertTokenNumOut is INT32[3]", make<std::int32_t>(&Good::num, {3})},
};

TEST_F(ReRoutingTest, RefusesWithCodeAndReason) {
  for (const bool v2 : {false, true})
    expect_refusals(kRefusals, [&] {
      Case c = example();
      c.v2 = v2;
      return Good(c, random);
    });
  Case c = example();
  c.v2 = true;
  Good lonely(c, random);
  expect_null_results_refused(lonely);
  lonely.weights = Tensor::empty<F16>({7, 1});
  expect_refusal(lonely, 561002, "expertTopkWeightOptional is FP16[7,1] but must be FP32");
  lonely.weights = Tensor::empty<float>({7});
  expect_refusal(lonely, 561002, "expertTopkWeightOptional is FP32[7]");
  lonely.weights.reset();
  for (const bool v2 : {false, true}) {
    Case odd{1, 1, 1, 3, {1}};
    odd.v2 = v2;
    Good call(odd, random);
    call.tokens = Tensor(ACL_FLOAT4_E2M1, {1, 3}, 1), call.out = Tensor(ACL_FLOAT4_E2M1, {1, 3}, 1);
    expect_refusal(call, 561002,
                   "tokens is FLOAT4_E2M1[1,3] but must have rows of an even number of elements in FP4");
  }
  expect_refusal(lonely, 561002, "permuteTopkWeightOutOptional is FP32[7,1] but must be given exactly when");
}

TEST(ReRoutingProducts, FollowTheProduct) {
  if (!run_again_with("MOEYARD_SOC", "A2")) return;
  const Device device;
  std::mt19937 random;
  Case c{1, 1, 1, 16384, {1}};
  EXPECT_EQ(Good(c, random).run(device), 0) << recent_message();
  c.hidden = 16385;
  EXPECT_EQ(Good(c, random).run(device), 561002);
  c.hidden = 1, c.idx_type = 1;
  EXPECT_EQ(Good(c, random).run(device), 561002);
  c.idx_type = 0, c.count_type = 0;
  EXPECT_EQ(Good(c, random).run(device), 561002);
  c.count_type = 1, c.scales = 2;
  EXPECT_EQ(Good(c, random).run(device), 561002);
  c.scales = 0, c.packed = ACL_FLOAT4_E2M1;
  EXPECT_EQ((Call<std::int8_t, std::int32_t>(c, random).run(device)), 561002);
  c.packed.reset(), c.v2 = true;
  EXPECT_EQ(Good(c, random).run(device), 561003);
}

TEST(ReRoutingProducts, HaveNoBf16OnKirin) {
  if (!run_again_with("MOEYARD_SOC", "Kirin")) return;
  const Device device;
  std::mt19937 random;
  const Case c{1, 1, 1, 1, {1}};
  EXPECT_EQ(Good(c, random).run(device), 0) << recent_message();
  EXPECT_EQ((Call<B16, std::int32_t>(c, random).run(device)), 561002);
}

}  // namespace
}  // namespace oracle
