// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/dispatch/split_combine.h"
#include "ops/dispatch/split_rules.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using namespace ep_rules;
using A = CombineArgs;

constexpr Param kGroup[] = {
    attribute<&A::group_ep>("groupEp", "name of the expert-parallel group"),
    attribute<&A::ep_world_size>("epWorldSize", "ranks of the group"),
    attribute<&A::ep_rank_id>("epRankId", "this rank"),
    attribute<&A::moe_expert_num>("moeExpertNum", "real experts on all ranks"),
};
constexpr Param kMore[] = {
    attribute<&A::shared_expert_num>("sharedExpertNum", "shared experts"),
    attribute<&A::shared_expert_rank_num>("sharedExpertRankNum", "ranks set aside for shared experts"),
    attribute<&A::global_bs>("globalBs",
                             "0: all ranks have the same BS; else the largest BS times epWorldSize"),
    attribute<&A::comm_quant_mode>("commQuantMode", "0: rows travel as they are; 2: as INT8"),
    attribute<&A::comm_type>("commType", "2; has no effect"),
    attribute<&A::comm_alg>("commAlg", "null"),
};

constexpr Param kSetupTensors[] = {
    in<&A::expand_x>("expandX", kHalves, ">= A, H", "rows of the experts, in the order of dispatch"),
    in<&A::expert_ids>("expertIds", kINT32, "BS, K", "as in dispatch"),
    in<&A::assist_info>("assistInfoForCombine", kINT32, ">= 128*A", "from dispatch's Teardown"),
};
constexpr Param kSetupOutputs[] = {
    out<&A::quant_expand_x>("quantExpandXOut", kINT8, ">= A, Y", "for Teardown; keeps what it holds"),
    out<&A::comm_cmd_info>("commCmdInfoOut", kINT32, ">= 16*(A + W)", "for Teardown: the slot of each row"),
};
// The document spells the attribute in another way than all others.
constexpr auto kSetupParams =
    joined<Param>(kSetupTensors, kGroup,
                  attribute<&A::expert_shard_type>("expertSharedType", "0: shared experts come first"), kMore,
                  kSetupOutputs);

constexpr Param kTeardownTensors[] = {
    in<&A::expand_x>("expandX", kHalves, ">= A, H", "as in Setup"),
    in<&A::quant_expand_x>("quantExpandX", kINT8, ">= A, Y", "quantExpandXOut of Setup"),
    in<&A::expert_ids>("expertIds", kINT32, "BS, K", "as in dispatch"),
    in<&A::expand_idx>("expandIdx", kINT32, ">= BS*K", "expandIdxOut of dispatch's Setup"),
    in<&A::expert_scales>("expertScales", kFP32, "", "weight of each slot; empty: all are 1"),
    in<&A::comm_cmd_info>("commCmdInfo", kINT32, ">= 16*(A + W)", "commCmdInfoOut of Setup"),
    in<&A::active_mask>("xActiveMaskOptional", kBOOL, "BS | BS, K", "as in dispatch").optional(),
    in<&A::shared_expert_x>("sharedExpertXOptional", kHalves, "BS, H | *, *, H",
                            "rows of a local shared expert, weight 1")
        .optional()
        .like("expandX"),
};
constexpr auto kTeardownParams =
    joined<Param>(kTeardownTensors, kGroup,
                  attribute<&A::expert_shard_type>("expertShardType", "0: shared experts come first"), kMore,
                  out<&A::x_out>("xOut", kHalves, "BS, H", "sum of the rows of each token").like("expandX"));

constexpr Dim kDims[] = {
    dim<A>("BS", "tokens of this rank", [](const A& a) { return a.bs(); }),
    dim<A>("K", "experts per token", [](const A& a) { return a.topk(); }),
    dim("H", "elements of a token"),
    dim<A>("W", "ranks of the group", [](const A& a) { return a.ep_world_size; }),
    dim<A>("A", "rows that this rank may receive", [](const A& a) { return ep_rules::capacity(a); }),
    dim<A>("Y", "elements of a row of quantExpandX: tokenMsgSize of the function for the sizes",
           [](const A& a) { return combine_message_elements(a.hidden()); }),
};

constexpr auto kStrings = std::to_array<Rule>({
    rule<A>(
        Stage::strings, kEverywhere, "groupEp", "have fewer than 128 characters",
        [](const A& a) { return a.group_ep.size() < 128; }, "pass what HcclGetCommName gives",
        ACLNN_ERR_PARAM_INVALID),
});

constexpr auto kBothAttributes = std::to_array<Rule>({
    rule<A>(Stage::attributes, k950, "commQuantMode", "be 0 in the split operators",
            [](const A& a) { return a.comm_quant_mode == 0; }),
    rule<A>(Stage::attributes, kHost, "commQuantMode", "be 0 or 2",
            [](const A& a) { return a.comm_quant_mode == 0 || a.comm_quant_mode == 2; }),
    rule<A>(Stage::attributes, kEverywhere, "expandX", "have 2 dimensions",
            [](const A& a) { return a.expand_x.rank == 2; }),
    rule<A>(Stage::attributes, kEverywhere, "expertIds", "have 2 dimensions",
            [](const A& a) { return a.expert_ids.rank == 2; }),
});
constexpr auto kSetupAttributes =
    join(kBothAttributes, std::to_array<Rule>({
                              rule<A>(Stage::attributes, kEverywhere, "expertSharedType", "be 0",
                                      [](const A& a) { return a.expert_shard_type == 0; }),
                          }));
constexpr std::array<Rule, 0> kNoRules{};
constexpr auto kSetupRules = split_rules<A, kSetupParams, kDims, kStrings, kSetupAttributes, kNoRules>();

constexpr auto kTeardownAttributes =
    join(kBothAttributes,
         std::to_array<Rule>({
             rule<A>(
                 Stage::attributes, kEverywhere, "sharedExpertXOptional",
                 "be null with sharedExpertRankNum above 0",
                 [](const A& a) { return !a.shared_expert_x.present() || a.shared_expert_rank_num == 0; },
                 "shared experts are either local or on ranks of their own"),
         }));
constexpr auto kTeardownShapes = std::to_array<Rule>({
    rule<A>(Stage::shapes, kEverywhere, "expertScales", "have shape (BS, K), or be empty for weights of 1",
            [](const A& a) {
              const TensorView& scales = a.expert_scales;
              return scales.numel() == 0 ||
                     (scales.rank == 2 && scales.dim(0) == a.bs() && scales.dim(1) == a.topk());
            }),
    rule<A>(Stage::shapes, kEverywhere, "sharedExpertXOptional", "have BS rows",
            [](const A& a) {
              return a.shared_expert_x.rank != 3 ||
                     a.shared_expert_x.dim(0) * a.shared_expert_x.dim(1) == a.bs();
            }),
});
constexpr auto kTeardownRules =
    split_rules<A, kTeardownParams, kDims, kStrings, kTeardownAttributes, kTeardownShapes>();

constexpr auto kFacts = combine_facts<A>();
constexpr auto kNeeds = shared_needs<A>();

}  // namespace

const Contract CombineSetup::kContract{{
    .name = "MoeDistributeCombineSetup",
    .family = "dispatch",
    .summary = "Makes the rows of a rank's experts ready to go back: the first half of a split combine.",
    .source = "aclnnMoeDistributeCombineSetup",
    .products = kSplit,
    .codes = kTilingCodes,
    .params = kSetupParams,
    .dims = kDims,
    .rules = kSetupRules,
    .needs = kNeeds,
    .facts = kFacts,
}};

const Contract CombineTeardown::kContract{{
    .name = "MoeDistributeCombineTeardown",
    .family = "dispatch",
    .summary = "Adds up the rows that come back for each token: the second half of a split combine.",
    .source = "aclnnMoeDistributeCombineTeardown",
    .products = kSplit,
    .codes = kTilingCodes,
    .params = kTeardownParams,
    .dims = kDims,
    .rules = kTeardownRules,
    .needs = kNeeds,
    .facts = kFacts,
}};

}  // namespace moeyard::ops
