// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/dispatch/quant_rules.h"
#include "ops/dispatch/split_dispatch.h"
#include "ops/dispatch/split_rules.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using namespace ep_rules;
using namespace quant_rules;
using A = DispatchArgs;

constexpr Dtypes kRows = kHalves | kINT8 | kHIF8 | kFp8;

constexpr Param kGroup[] = {
    attribute<&A::group_ep>("groupEp", "name of the expert-parallel group"),
    attribute<&A::ep_world_size>("epWorldSize", "ranks of the group"),
    attribute<&A::ep_rank_id>("epRankId", "this rank"),
    attribute<&A::moe_expert_num>("moeExpertNum", "real experts on all ranks"),
    attribute<&A::expert_shard_type>("expertShardType", "0: shared experts come first"),
    attribute<&A::shared_expert_num>("sharedExpertNum", "shared experts"),
    attribute<&A::shared_expert_rank_num>("sharedExpertRankNum", "ranks set aside for shared experts"),
    attribute<&A::quant_mode>("quantMode",
                              "0 none, 1 given scales, 2 a scale per row, 3 per 128 elements, 4 per 32"),
    attribute<&A::global_bs>("globalBs",
                             "0: all ranks have the same BS; else the largest BS times epWorldSize"),
};
constexpr Param kWay[] = {
    attribute<&A::comm_type>("commType", "2; has no effect"),
    attribute<&A::comm_alg>("commAlg", "null"),
};

constexpr Param kSetupTensors[] = {
    in<&A::x>("x", kHalves, "BS, H", "tokens of this rank"),
    in<&A::expert_ids>("expertIds", kINT32, "BS, K", "expert of each slot"),
    in<&A::scales>("scalesOptional", kFP32, "",
                   "factors of the elements per expert, or for all with quantMode 1")
        .optional(),
    in<&A::active_mask>("xActiveMaskOptional", kBOOL, "BS | BS, K", "active tokens (trues first), or slots")
        .optional(),
};
constexpr Param kSetupOutputs[] = {
    out<&A::y>("yOut", kRows, "BS*(K+S), Y", "for Teardown: rows of the slots, and their scales"),
    out<&A::expand_idx>("expandIdxOut", kINT32, ">= BS*K",
                        "for combine: each slot's place among its expert's"),
    out<&A::comm_cmd_info>("commCmdInfoOut", kINT32, ">= 16*(BS*(K+S) + W*L)",
                           "for Teardown: where slots go"),
};
constexpr auto kSetupParams = joined<Param>(kSetupTensors, kGroup, kWay, kSetupOutputs);

constexpr Param kTeardownTensors[] = {
    in<&A::x>("x", kHalves, "BS, H", "as in Setup"),
    in<&A::y>("y", kRows, "BS*(K+S), Y", "yOut of Setup"),
    in<&A::expert_ids>("expertIds", kINT32, "BS, K", "as in Setup"),
    in<&A::comm_cmd_info>("commCmdInfo", kINT32, ">= 16*(BS*(K+S) + W*L)", "commCmdInfoOut of Setup"),
};
constexpr Param kTeardownOutputs[] = {
    out<&A::expand_x>("expandXOut", kRows, ">= A, H", "received rows by local expert, source rank, token")
        .like("y"),
    out<&A::dynamic_scales>("dynamicScalesOut", kFP32 | kE8M0, "", "scales of each received row").optional(),
    out<&A::assist_info>("assistInfoForCombineOut", kINT32, ">= 128*A",
                         "for combine: where each row came from"),
    out<&A::expert_token_nums>("expertTokenNumsOut", kINT64, "L", "rows of each local expert"),
};
constexpr auto kTeardownParams =
    joined<Param>(kTeardownTensors, kGroup,
                  attribute<&A::expert_token_nums_type>("expertTokenNumsType", "0 prefix sums, 1 counts"),
                  kWay, kTeardownOutputs);

constexpr Dim kDims[] = {
    dim("BS", "tokens of this rank"),
    dim("H", "elements of a token"),
    dim<A>("K", "experts per token", [](const A& a) { return a.topk(); }),  // y comes before expertIds
    dim<A>("S", "shared experts that have ranks of their own",
           [](const A& a) { return EpLayout(a).shared_experts(); }),
    dim<A>("Y", "elements of a row of yOut: tokenMsgSize of the function for the sizes",
           [](const A& a) { return dispatch_message(a.quant_mode, a.hidden()).elements; }),
    dim<A>("W", "ranks of the group", [](const A& a) { return a.ep_world_size; }),
    dim<A>("L", "experts of this rank", [](const A& a) { return local_experts(a); }),
    dim<A>("E", "rows of the smooth factors, shared experts first",
           [](const A& a) { return EpLayout(a).scale_rows(); }),
    dim<A>("T", "ranks of the TP domain: 1", [](const A& a) { return tp_ranks(a); }),
    dim<A>("A", "rows that this rank may receive", [](const A& a) { return ep_rules::capacity(a); }),
};

constexpr auto kStrings = std::to_array<Rule>({
    rule<A>(
        Stage::strings, kEverywhere, "groupEp", "have fewer than 128 characters",
        [](const A& a) { return a.group_ep.size() < 128; }, "pass what HcclGetCommName gives",
        ACLNN_ERR_PARAM_NULLPTR),
});

constexpr auto kBothModes = std::to_array<Rule>({
    rule<A>(Stage::attributes, k950, "quantMode", "be 0 or 4 in the split operators",
            [](const A& a) { return a.quant_mode == 0 || a.quant_mode == 4; }),
    rule<A>(Stage::attributes, kHost, "quantMode", "be in [0, 4]",
            [](const A& a) { return in_range(a.quant_mode, 0, 4); }),
    rule<A>(Stage::attributes, kEverywhere, "x", "have 2 dimensions",
            [](const A& a) { return a.x.rank == 2; }),
    rule<A>(Stage::attributes, kEverywhere, "expertIds", "have 2 dimensions",
            [](const A& a) { return a.expert_ids.rank == 2; }),
});

bool rows_fit_mode(const A& a) {
  const aclDataType rows = a.row_dtype();
  switch (a.quant_mode) {
    case 0:
      return rows == a.x.dtype;
    case 1:
      return (kINT8 | kHIF8).has(rows);
    case 2:
      return (kINT8 | kFp8).has(rows);
    default:
      return kFp8.has(rows);
  }
}
constexpr std::string_view kRowTypes =
    "have the dtype of x when quantMode is 0, INT8 or HIFLOAT8 when it is 1, INT8, FLOAT8_E4M3FN or "
    "FLOAT8_E5M2 when it is 2, and one of the latter two when it is 3 or 4";

constexpr auto kSetupAttributes =
    join(kBothModes,
         std::to_array<Rule>({
             rule<A>(Stage::attributes, kEverywhere, "yOut", kRowTypes,
                     [](const A& a) { return rows_fit_mode(a); }),
             rule<A>(
                 Stage::attributes, kEverywhere, "scalesOptional", "be null when quantMode is 0 or 4",
                 [](const A& a) { return (a.quant_mode != 0 && a.quant_mode != 4) || !a.scales.present(); },
                 "pass null"),
             rule<A>(
                 Stage::attributes, kEverywhere, "scalesOptional", "be given when quantMode is 1",
                 [](const A& a) { return a.quant_mode != 1 || a.scales.present(); },
                 "pass one factor, H of them, or H for each expert"),
         }));
constexpr auto kSetupShapes = std::to_array<Rule>({
    rule<A>(Stage::shapes, kEverywhere, "scalesOptional", "have shape (E, H) when quantMode is 2 or 3",
            [](const A& a) { return a.quant_mode < 2 || !a.scales.present() || is_row_per_expert(a); }),
    rule<A>(Stage::shapes, kEverywhere, "scalesOptional",
            "have shape (1) when quantMode is 1, or (H) or (E, H) if yOut is INT8",
            [](const A& a) {
              if (a.quant_mode != 1) return true;
              if (a.scales.rank == 1 && a.scales.dim(0) == 1) return true;
              if (a.y.dtype != ACL_INT8) return false;
              return is_row_per_expert(a) || (a.scales.rank == 1 && a.scales.dim(0) == a.hidden());
            }),
});
constexpr auto kSetupRules = split_rules<A, kSetupParams, kDims, kStrings, kSetupAttributes, kSetupShapes>();

constexpr auto kTeardownFirst = join(kMadeNulls, kStrings);
constexpr auto kTeardownAttributes = join(
    kBothModes,
    std::to_array<Rule>({
        rule<A>(Stage::attributes, kEverywhere, "expertTokenNumsType", "be 0 or 1",
                [](const A& a) { return in_range(a.expert_token_nums_type, 0, 1); }),
        rule<A>(Stage::attributes, kEverywhere, "y", kRowTypes, [](const A& a) { return rows_fit_mode(a); }),
    }),
    kMadeTypes);
constexpr auto kTeardownRules =
    split_rules<A, kTeardownParams, kDims, kTeardownFirst, kTeardownAttributes, kMadeShapes>();

constexpr auto kFacts = dispatch_facts<A>();
constexpr auto kNeeds = shared_needs<A>();

}  // namespace

const Contract DispatchSetup::kContract{{
    .name = "MoeDistributeDispatchSetup",
    .family = "dispatch",
    .summary = "Makes the rows that a rank sends to experts: the first half of a split dispatch.",
    .source = "aclnnMoeDistributeDispatchSetup",
    .products = kSplit,
    .codes = kTilingCodes,
    .params = kSetupParams,
    .dims = kDims,
    .rules = kSetupRules,
    .needs = kNeeds,
    .facts = kFacts,
}};

const Contract DispatchTeardown::kContract{{
    .name = "MoeDistributeDispatchTeardown",
    .family = "dispatch",
    .summary = "Receives the rows that all ranks have made: the second half of a split dispatch.",
    .source = "aclnnMoeDistributeDispatchTeardown",
    .products = kSplit,
    .codes = kTilingCodes,
    .params = kTeardownParams,
    .dims = kDims,
    .rules = kTeardownRules,
    .needs = kNeeds,
    .facts = kFacts,
}};

}  // namespace moeyard::ops
