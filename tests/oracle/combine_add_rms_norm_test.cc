// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnMoeDistributeCombineAddRmsNorm, V1 and V2: combine, a residual and the division by the root of the mean square.
#include <gmock/gmock.h>

#include <cmath>

#include "aclnnop/aclnn_moe_distribute_combine_add_rms_norm.h"
#include "aclnnop/aclnn_moe_distribute_combine_add_rms_norm_v2.h"
#include "oracle/ep_part.h"
#include "oracle/ep_reference.h"
#include "support/rerun.h"

namespace oracle {
namespace {

using testing::HasSubstr;

constexpr int kNull = 161001, kInvalid = 161002, kTiling = 561002, kNoKernel = 561003;

struct NormParams : CombineParams {
  aclTensor *residual = nullptr, *gamma = nullptr, *y = nullptr, *rstd = nullptr;
  float epsilon = 1e-6f;
};

aclnnStatus plan_norm(int version, const NormParams& p, std::uint64_t* size, aclOpExecutor** executor) {
  if (version == 1)
    return aclnnMoeDistributeCombineAddRmsNormGetWorkspaceSize(
        p.expand_x, p.ids, p.assist, p.counts, p.weights, p.residual, p.gamma, p.tp_counts, p.mask,
        p.activation_scale, p.weight_scale, p.group_list, p.expand_scales, p.shared_x, p.group, p.ranks,
        p.rank, p.experts, p.group_tp, p.tp_ranks, p.tp_rank, p.shard_type, p.shared, p.shared_ranks,
        p.global_bs, p.out_dtype, p.quant_mode, p.list_type, p.algorithm, p.epsilon, p.y, p.rstd, p.out, size,
        executor);
  return aclnnMoeDistributeCombineAddRmsNormV2GetWorkspaceSize(
      p.expand_x, p.ids, p.assist, p.counts, p.weights, p.residual, p.gamma, p.tp_counts, p.mask,
      p.activation_scale, p.weight_scale, p.group_list, p.expand_scales, p.shared_x, p.elastic, p.ori_x,
      p.alpha1, p.alpha2, p.v, p.group, p.ranks, p.rank, p.experts, p.group_tp, p.tp_ranks, p.tp_rank,
      p.shard_type, p.shared, p.shared_ranks, p.global_bs, p.out_dtype, p.quant_mode, p.list_type,
      p.algorithm, p.epsilon, p.zero, p.copy, p.constant, p.y, p.rstd, p.out, size, executor);
}
int run_norm(int version, const NormParams& p, const Device& device) {
  return run(
      [&](std::uint64_t* size, aclOpExecutor** executor) { return plan_norm(version, p, size, executor); },
      version == 1 ? aclnnMoeDistributeCombineAddRmsNorm : aclnnMoeDistributeCombineAddRmsNormV2, device);
}

// What a problem draws: experts return the token times 1 + e / 4, so a slot's row is known to its own rank.
struct Problem {
  int ranks, experts, tokens, topk, hidden, mask_dims, copies;
  std::uint32_t seed;
};

std::vector<B16> draw(std::mt19937& random, int n, float scale) {
  std::normal_distribution<float> normal;
  std::vector<B16> made;
  for (int i = 0; i < n; ++i) made.emplace_back(scale * normal(random));
  return made;
}

std::int32_t near(float got, float want) {  // in units of the last place of bf16
  const auto key = [](float value) {
    const auto bits = static_cast<std::int32_t>(B16(value).bits);
    return bits < 0x8000 ? bits : 0x8000 - bits;
  };
  return std::abs(key(got) - key(want));
}

void check_rank(const Problem& problem, const EpGroup& group, int rank, const Device& device) {
  std::mt19937 random(problem.seed * 31 + static_cast<unsigned>(rank));
  const std::int64_t bs = problem.tokens, k = problem.topk, h = problem.hidden;
  const int n = problem.tokens * problem.hidden, local = problem.experts / problem.ranks;
  const std::int64_t rows_fit = bs * problem.ranks * std::min<std::int64_t>(local, k);
  EpRank<B16> mine;
  mine.bs = problem.tokens, mine.mask_dims = problem.mask_dims;
  mine.x = draw(random, n, 1);
  mine.shared_x = draw(random, n, 0.5f);
  for (int t = 0; t < problem.tokens; ++t) {
    const auto first = static_cast<int>(random() % static_cast<unsigned>(problem.experts + problem.copies));
    for (int i = 0; i < problem.topk; ++i) {
      mine.ids.push_back((first + i) % (problem.experts + problem.copies));
      mine.weights.push_back(static_cast<float>(random() % 16) / 16);
      if (problem.mask_dims == 2) mine.mask.push_back(random() % 4 != 0 ? 1 : 0);
    }
    if (problem.mask_dims == 1) mine.mask.push_back(t < problem.tokens / 2 ? 1 : 0);
  }
  const std::vector<B16> residual = draw(random, n, 2), gamma = draw(random, problem.hidden, 1);

  constexpr Layout kLayouts[] = {Layout::dense, Layout::padded_rows, Layout::transposed, Layout::spread};
  const auto layout = [&] { return kLayouts[random() % 4]; };
  const Tensor x = Tensor::of<B16>({bs, h}, mine.x), ids = Tensor::of<std::int32_t>({bs, k}, mine.ids),
               weights = Tensor::of<float>({bs, k}, mine.weights), rows = Tensor::empty<B16>({rows_fit, h}),
               assist = Tensor::empty<std::int32_t>({rows_fit * 128}),
               nums = Tensor::empty<std::int64_t>({local}),
               counts = Tensor::empty<std::int32_t>({problem.experts}),
               expand_scales = Tensor::empty<float>({rows_fit});
  std::optional<Tensor> mask;
  if (problem.mask_dims == 1) mask = Tensor::of<std::uint8_t>({bs}, mine.mask);
  if (problem.mask_dims == 2) mask = Tensor::of<std::uint8_t>({bs, k}, mine.mask);
  DispatchParams d;
  d.group = group.name(), d.ranks = problem.ranks, d.rank = rank, d.experts = problem.experts,
  d.copy = problem.copies;
  d.x = x, d.ids = ids, d.weights = weights, d.mask = mask ? static_cast<aclTensor*>(*mask) : nullptr;
  d.expand_x = rows, d.assist = assist, d.nums = nums, d.counts = counts, d.expand_scales = expand_scales;
  ASSERT_EQ(run(d, device), 0) << recent_message();

  std::vector<B16> results = rows.values<B16>();
  std::int64_t row = 0;
  for (int e = 0; e < local; ++e)
    for (std::int64_t end = row + nums.values<std::int64_t>()[static_cast<std::size_t>(e)]; row < end; ++row)
      for (std::int64_t i = 0; i < h; ++i) {
        B16& value = results[static_cast<std::size_t>(row * h + i)];
        value = B16(widen(value) * (1 + static_cast<float>(rank * local + e) / 4));
      }
  const Tensor expand_x = Tensor::of<B16>({rows_fit, h}, results, layout());
  const Tensor residual_x = Tensor::of<B16>({bs, 1, h}, residual, layout()),
               factors = Tensor::of<B16>({h}, gamma, layout());
  const Tensor shared_x = Tensor::of<B16>({bs, 1, h}, mine.shared_x, layout());
  const Tensor x_out = Tensor::empty<B16>({bs, 1, h}, layout()), y = Tensor::empty<B16>({bs, 1, h}, layout());
  const Tensor rstd = Tensor::empty<float>({bs, 1, 1}, layout());
  NormParams p;
  static_cast<EpParams&>(p) = d;
  p.expand_x = expand_x, p.ids = ids, p.assist = assist, p.counts = counts, p.weights = weights;
  p.mask = d.mask, p.shared_x = shared_x, p.ori_x = problem.copies > 0 ? static_cast<aclTensor*>(x) : nullptr;
  p.residual = residual_x, p.gamma = factors, p.y = y, p.rstd = rstd, p.out = x_out;
  ASSERT_EQ(run_norm(problem.copies > 0 ? 2 : 1 + static_cast<int>(problem.seed % 2), p, device), 0)
      << recent_message();
  std::memset(expand_x.memory(), 0xFF, expand_x.bytes());

  const auto got_x = x_out.values<std::uint16_t>(), got_y = y.values<std::uint16_t>();
  const auto got_rstd = rstd.values<std::uint32_t>();
  for (int t = 0; t < problem.tokens; ++t) {
    const auto at = static_cast<std::size_t>(t * problem.hidden);
    if (!mine.token_active(t, problem.topk)) {
      EXPECT_EQ(got_rstd[static_cast<std::size_t>(t)], 0x5A5A5A5Au);
      for (std::size_t i = 0; i < static_cast<std::size_t>(h); ++i)
        EXPECT_EQ(got_x[at + i] + got_y[at + i], 2 * 0x5A5A);
      continue;
    }
    std::vector<float> a;
    double square = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(h); ++i) {
      float z = 0;
      for (int j = 0; j < problem.topk; ++j) {
        if (!mine.slot_active(t, j, problem.topk)) continue;
        const auto slot = static_cast<std::size_t>(t * problem.topk + j);
        float value = widen(mine.x[at + i]);
        if (mine.ids[slot] < problem.experts)
          value = widen(B16(value * (1 + static_cast<float>(mine.ids[slot]) / 4)));
        const float product = mine.weights[slot] * value;
        z = z + product;
      }
      z = z + widen(mine.shared_x[at + i]);
      z = z + widen(residual[at + i]);
      a.push_back(z);
      square += static_cast<double>(z) * z;
      ASSERT_EQ(got_x[at + i], B16(z).bits) << "xOut[" << t << "][" << i << "]";
    }
    // The order of the sum is free: rstd and what follows from it may differ in the last place.
    const double want = 1 / std::sqrt(square / problem.hidden + 1e-6);
    const double r = float_of(got_rstd[static_cast<std::size_t>(t)]);
    EXPECT_NEAR(r, want, want * 1e-6);
    for (std::size_t i = 0; i < static_cast<std::size_t>(h); ++i) {
      const float u = widen(B16(a[i] * static_cast<float>(r)));
      ASSERT_EQ(got_y[at + i], B16(u * widen(gamma[i])).bits) << "yOut[" << t << "][" << i << "]";
      EXPECT_LE(near(widen(B16::raw(got_y[at + i])), static_cast<float>(a[i] * want * widen(gamma[i]))), 2);
    }
  }
  for (const Tensor* tensor : {&x_out, &y, &rstd}) EXPECT_TRUE(tensor->gaps_untouched());
}

TEST(CombineAddRmsNorm, MatchesThePlainLoops) {
  for (const int ranks : {1, 2, 5}) {
    const EpGroup group(ranks);
    for (std::uint32_t i = 0; i < 8 && !HasFailure(); ++i) {
      std::mt19937 random(seed() + i);
      const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
      const int experts = ranks * (1 + below(3));
      const Problem problem{ranks,          experts,  1 + below(7), 1 + below(std::min(3, experts)),
                            1 + below(130), below(3), below(2),     seed() + i};
      SCOPED_TRACE("seed " + std::to_string(problem.seed) + ", ranks " + std::to_string(ranks));
      group.run([&](int rank, const Device& device) { check_rank(problem, group, rank, device); });
    }
  }
}

// A good call of rank 0 of two.
struct NormPart : EpPart {
  explicit NormPart(const EpGroup& group) : EpPart(group, 0) {
    static_cast<CombineParams&>(norm) = combine;
    norm.residual = residual, norm.gamma = gamma, norm.y = y, norm.rstd = rstd, norm.out = sum;
  }
  NormParams norm;
  Tensor residual = Tensor::empty<B16>({3, 1, 8}), gamma = Tensor::empty<B16>({8}),
         y = Tensor::empty<B16>({3, 1, 8}), rstd = Tensor::empty<float>({3, 1, 1}),
         sum = Tensor::empty<B16>({3, 1, 8});
};

TEST(CombineAddRmsNorm, RefusesInPhaseOne) {
  MOEYARD_SKIP_IN_PROCESSES();
  const EpGroup group(2);
  const Device device;
  const Tensor halves(ACL_FLOAT16, {12, 8}, 2),
      flat = Tensor::empty<B16>({3, 8}), narrow = Tensor::empty<B16>({7}),
      matrix = Tensor::empty<float>({3, 1}), wide = Tensor::empty<float>({3, 1, 8}),
      some = Tensor::empty<float>({1});
  struct Row {
    int code;
    const char* text;
    std::function<void(NormParams&)> spoil;
  };
  const Row kRows[] = {
      {kNull, "expandX is null", [](NormParams& p) { p.expand_x = nullptr; }},
      {kNull, "expertScales is null", [](NormParams& p) { p.weights = nullptr; }},
      {kNull, "residualX is null", [](NormParams& p) { p.residual = nullptr; }},
      {kNull, "gamma is null", [](NormParams& p) { p.gamma = nullptr; }},
      {kNull, "yOut is null", [](NormParams& p) { p.y = nullptr; }},
      {kNull, "rstdOut is null", [](NormParams& p) { p.rstd = nullptr; }},
      {kNull, "xOut is null", [](NormParams& p) { p.out = nullptr; }},
      {kNull, "groupEp", [](NormParams& p) { p.group = ""; }},
      {kInvalid, "expandX is FP16", [&](NormParams& p) { p.expand_x = halves; }},
      {kInvalid, "residualX is FP32", [&](NormParams& p) { p.residual = wide; }},
      {kTiling, "residualX is BF16[3,8]", [&](NormParams& p) { p.residual = flat; }},
      {kTiling, "gamma is BF16[7]", [&](NormParams& p) { p.gamma = narrow; }},
      {kTiling, "yOut is BF16[3,8]", [&](NormParams& p) { p.y = flat; }},
      {kTiling, "xOut is BF16[3,8]", [&](NormParams& p) { p.out = flat; }},
      {kTiling, "rstdOut is FP32[3,1]", [&](NormParams& p) { p.rstd = matrix; }},
      {kTiling, "commQuantMode is 2", [](NormParams& p) { p.quant_mode = 2; }},
      {kTiling, "outDtype is 1", [](NormParams& p) { p.out_dtype = 1; }},
      {kTiling, "groupListType is 1", [](NormParams& p) { p.list_type = 1; }},
      {kTiling, "activationScaleOptional", [&](NormParams& p) { p.activation_scale = some; }},
      {kTiling, "oriXOptional", [](NormParams& p) { p.copy = 1; }},
      {kInvalid, "group not found", [](NormParams& p) { p.group = "nobody"; }},
  };
  for (const Row& row : kRows) {
    NormPart part(group);
    row.spoil(part.norm);
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    EXPECT_EQ(plan_norm(2, part.norm, &size, &executor), row.code) << row.text;
    EXPECT_THAT(recent_message(), HasSubstr(row.text));
  }
}

TEST(CombineAddRmsNorm, IsNotOnA2) {
  MOEYARD_SKIP_IN_PROCESSES();
  if (!run_again_with("MOEYARD_SOC", "A2")) return;
  const EpGroup group(2);
  const Device device;
  NormPart part(group);
  std::uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  EXPECT_EQ(plan_norm(1, part.norm, &size, &executor), kNoKernel);
  EXPECT_THAT(recent_message(), HasSubstr("aclnnMoeDistributeCombineAddRmsNorm: no kernel on this product"));
}

}  // namespace
}  // namespace oracle
