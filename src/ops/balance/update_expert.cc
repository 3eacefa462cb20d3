// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/balance/update_expert.h"

#include "base/numbers.h"
#include "base/parallel.h"
#include "base/settings.h"
#include "ops/typed.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using A = UpdateExpertArgs;

constexpr Param kParams[] = {
    in<&A::expert_ids>("expertIds", kINT32 | kINT64, "BS, K", "logical expert of each slot"),
    in<&A::eplb_table>("eplbTable", kINT32, "E, F", "per expert: number of instances, then their ids"),
    in<&A::expert_scales>("expertScalesOptional", kFloats, "BS, K", "weight of each slot").optional(),
    in<&A::pruning_threshold>("pruningThresholdOptional", kFP32, "K | 1, K",
                              "least share of a token's weight")
        .optional(),
    in<&A::active_mask>("activeMaskOptional", kBOOL, "BS", "tokens in use, trues first").optional(),
    attribute<&A::local_rank_id>("localRankId", "this rank; used when balanceMode is 0"),
    attribute<&A::world_size>("worldSize", "number of ranks; used when balanceMode is 0"),
    attribute<&A::balance_mode>("balanceMode", "0 instance by rank, 1 instance by token"),
    out<&A::balanced_expert_ids>("balancedExpertIds", kINT32 | kINT64, "BS, K", "instance of each slot")
        .like("expertIds")
        .or_in_place(),
    out<&A::balanced_active_mask>("balancedActiveMask", kBOOL, "BS, K",
                                  "slots that stay; written when pruning"),
};

constexpr Dim kDims[] = {
    dim("BS", "tokens of this rank"),
    dim("K", "experts per token"),
    dim("E", "logical experts"),
    dim("F", "columns of eplbTable"),
};

// On an absent or wrongly shaped table the shape rules have spoken before these are asked.
constexpr Rule kRules[] = {
    rule<A>(Stage::attributes, kEverywhere, "balanceMode", "be 0 or 1",
            [](const A& a) { return a.balance_mode == 0 || a.balance_mode == 1; }),
    rule<A>(Stage::attributes, kDevices, "worldSize", "be in [2, 768] when balanceMode is 0",
            [](const A& a) { return !a.by_rank() || (2 <= a.world_size && a.world_size <= 768); }),
    rule<A>(Stage::attributes, kHost, "worldSize", "be at least 1 when balanceMode is 0",
            [](const A& a) { return !a.by_rank() || a.world_size >= 1; }),
    rule<A>(
        Stage::attributes, kEverywhere, "localRankId", "be in [0, worldSize) when balanceMode is 0",
        [](const A& a) { return !a.by_rank() || (0 <= a.local_rank_id && a.local_rank_id < a.world_size); }),
    rule<A>(
        Stage::attributes, kEverywhere, "pruningThresholdOptional",
        "be given together with expertScalesOptional",
        [](const A& a) { return a.expert_scales.present() == a.pruning_threshold.present(); },
        "pass both, or neither"),
    rule<A>(Stage::attributes, kEverywhere, "activeMaskOptional",
            "be null unless expertScalesOptional and pruningThresholdOptional are given",
            [](const A& a) { return !a.active_mask.present() || a.prunes(); }),
    rule<A>(Stage::shapes, kDevices, "expertIds", "have BS in [1, 512] and K in [1, 16]",
            [](const A& a) {
              return 1 <= a.expert_ids.dim(0) && a.expert_ids.dim(0) <= 512 && 1 <= a.expert_ids.dim(1) &&
                     a.expert_ids.dim(1) <= 16;
            }),
    rule<A>(Stage::shapes, kDevices, "eplbTable", "have at most 1024 experts",
            [](const A& a) { return a.eplb_table.dim(0) <= 1024; }),
    rule<A>(Stage::shapes, kEverywhere, "eplbTable", "have at least K experts",
            [](const A& a) { return a.eplb_table.dim(0) >= a.expert_ids.dim(1); }),
    rule<A>(
        Stage::shapes, kEverywhere, "eplbTable", "have at least 2 columns and at most worldSize + 1",
        [](const A& a) {
          return a.eplb_table.dim(1) >= 2 && (!a.by_rank() || a.eplb_table.dim(1) - 1 <= a.world_size);
        },
        "column 0 holds the number of instances, one column follows for each"),
    rule<A>(Stage::shapes, kDevices, "eplbTable", "have at most 769 columns",
            [](const A& a) { return a.eplb_table.dim(1) <= 769; }),
};

constexpr std::int64_t kTokensPerTask = 4096;  // some 10 us of table look-ups at K = 8
constexpr std::int64_t kTinySlots = 4096;  // below that, waking the stream's thread costs more than the work

// The instance that a slot of token t goes to, or why the table has none.
struct Mapping {
  const char* function;
  const A& args;
  std::int64_t most_instances;  // that a row may name
  std::int64_t experts;
  std::int64_t instance_limit;

  Mapping(const char* function, const A& args)
      : function(function), args(args), experts(args.eplb_table.dim(0)) {
    most_instances = args.eplb_table.dim(1) - 1;
    if (args.by_rank()) most_instances = std::min(most_instances, args.world_size);
    instance_limit = product() == Product::host ? INT64_C(1) << 31 : 1024;
  }

  std::int64_t column(std::int64_t token, std::int64_t instances) const {
    if (instances == 1) return 1;
    if (!args.by_rank()) return token % instances + 1;
    const std::int64_t ranks_per_instance = (args.world_size - 1) / instances + 1;
    return args.local_rank_id / ranks_per_instance + 1;
  }

  template <class Id>
  Status check(std::int64_t token, std::int64_t k) const {
    const std::int64_t expert = args.expert_ids.at<Id>(token, k);
    if (expert < 0 || expert >= experts)
      return wrong_data(function, "expertIds[{}][{}] is {} but must be in [0, {}), the rows of eplbTable",
                        token, k, expert, experts);
    const std::int64_t instances = args.eplb_table.at<std::int32_t>(expert, 0);
    if (instances < 1 || instances > most_instances)
      return wrong_data(function, "eplbTable[{}][0] is {} but must be a number of instances in [1, {}]",
                        expert, instances, most_instances);
    const std::int64_t chosen = column(token, instances);
    const std::int64_t instance = args.eplb_table.at<std::int32_t>(expert, chosen);
    if (instance < 0 || instance >= instance_limit)
      return wrong_data(function, "eplbTable[{}][{}] is {} but must be an instance id in [0, {})", expert,
                        chosen, instance, instance_limit);
    return {};
  }

  template <class Id>
  Id instance(std::int64_t token, std::int64_t k) const {
    const std::int64_t expert = args.expert_ids.at<Id>(token, k);
    return static_cast<Id>(
        args.eplb_table.at<std::int32_t>(expert, column(token, args.eplb_table.at<std::int32_t>(expert, 0))));
  }
};

template <class Id>
Status check_data(const Mapping& mapping, Range tokens) {
  const std::int64_t topk = mapping.args.expert_ids.dim(1);
  for (std::int64_t t = tokens.begin; t < tokens.end; ++t)
    for (std::int64_t k = 0; k < topk; ++k) MOEYARD_TRY(mapping.check<Id>(t, k));
  return {};
}

Status check_mask(const char* function, const TensorView& mask) {
  if (!mask.present() || settings().lenient) return {};
  for (std::int64_t t = 1; t < mask.dim(0); ++t)
    if (mask.at<std::uint8_t>(t) != 0 && mask.at<std::uint8_t>(t - 1) == 0)
      return wrong_data(function,
                        "activeMaskOptional[{}] is true after a false but all trues must come first", t);
  return {};
}

template <class Id>
void map_tokens(const Mapping& mapping, Range tokens) {
  const A& args = mapping.args;
  const std::int64_t topk = args.expert_ids.dim(1);
  for (std::int64_t t = tokens.begin; t < tokens.end; ++t)
    for (std::int64_t k = 0; k < topk; ++k)
      args.balanced_expert_ids.at<Id>(t, k) = mapping.instance<Id>(t, k);
}

template <class Scale>
void prune_tokens(const A& args, Range tokens) {
  const std::int64_t topk = args.expert_ids.dim(1);
  const TensorView& threshold = args.pruning_threshold;
  const std::int64_t threshold_stride = threshold.strides[threshold.rank - 1];
  for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
    const bool active = !args.active_mask.present() || args.active_mask.at<std::uint8_t>(t) != 0;
    float sum = 0;
    for (std::int64_t k = 0; k < topk; ++k) sum += to_float(args.expert_scales.at<Scale>(t, k));
    for (std::int64_t k = 0; k < topk; ++k) {
      const float least = threshold.begin_as<float>()[k * threshold_stride] * sum;
      const bool keep = to_float(args.expert_scales.at<Scale>(t, k)) >= least;
      args.balanced_active_mask.at<std::uint8_t>(t, k) = active && keep ? 1 : 0;
    }
  }
}

}  // namespace

const Contract UpdateExpert::kContract{{
    .name = "MoeUpdateExpert",
    .family = "balance",
    .summary = "Maps logical experts to the instances that hold them and prunes slots of small weight.",
    .source = "aclnnMoeUpdateExpert",
    .products = kHost | kA2 | kA3 | k950,
    .codes = {.same_dtype = ACLNN_ERR_INNER_TILING_ERROR,
              .format = ACLNN_ERR_INNER_TILING_ERROR,
              .shape = ACLNN_ERR_INNER_TILING_ERROR,
              .rule = ACLNN_ERR_INNER_TILING_ERROR},
    .params = kParams,
    .dims = kDims,
    .rules = kRules,
}};

Result<UpdateExpert::Plan> UpdateExpert::plan(const char* /*function*/, const Args& args) {
  Plan plan;
  plan.tiny = args.expert_ids.numel() <= kTinySlots;
  return plan;
}

Status UpdateExpert::run(const executor::Run& run, const Args& args, const Plan& /*plan*/) {
  const std::int64_t tokens = args.expert_ids.dim(0);
  const Mapping mapping(run.function, args);
  return with_type<std::int32_t, std::int64_t>(args.expert_ids.dtype, [&]<class Id>() -> Status {
    // All data is checked before anything is written.
    MOEYARD_TRY(check_mask(run.function, args.active_mask));
    MOEYARD_TRY(check_data<Id>(mapping, {0, tokens}));
    parallel_for(tokens, kTokensPerTask, [&](Range range) { map_tokens<Id>(mapping, range); });
    if (!args.prunes()) return {};
    return with_type<float, Fp16, Bf16>(args.expert_scales.dtype, [&]<class Scale>() -> Status {
      parallel_for(tokens, kTokensPerTask, [&](Range range) { prune_tokens<Scale>(args, range); });
      return {};
    });
  });
}

}  // namespace moeyard::ops
