// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/afd/attention_to_ffn.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using A = AttentionToFfnArgs;

constexpr std::int64_t kMostSharedExperts = 4;

constexpr Param kParams[] = {
    in<&A::x>("x", kHalves, "X, BS, H", "tokens of a micro-batch"),
    in<&A::session_id>("sessionId", kINT32, "X", "this attention worker"),
    in<&A::micro_batch_id>("microBatchId", kINT32, "X", "micro-batch"),
    in<&A::layer_id>("layerId", kINT32, "X", "forwarded to the FFN workers"),
    in<&A::expert_ids>("expertIds", kINT32, "X, BS, K", "experts of each token"),
    in<&A::expert_rank_table>("expertRankTable", kINT32, "L, E, T",
                              "per expert: number of copies, then rank and local id of each"),
    in<&A::scales>("scalesOptional", kFP32, "L, E, H", "smooth factors per expert, for quantMode 2")
        .optional(),
    in<&A::active_mask>("activeMaskOptional", kBOOL, "X, BS", "tokens in use, trues first").optional(),
    attribute<&A::group>("group", "name of the communicator"),
    attribute<&A::world_size>("worldSize", "ranks of the communicator"),
    attribute<&A::ffn_token_info_table_shape>("ffnTokenInfoTableShape", "{A, M, 2 + BS * slots}"),
    attribute<&A::ffn_token_data_shape>(
        "ffnTokenDataShape",
        "{A, M, BS, slots, S}: S is from slot to slot, elements for quantMode 0, bytes for 2"),
    attribute<&A::attn_token_info_table_shape>("attnTokenInfoTableShape", "{M, BS, slots}"),
    attribute<&A::moe_expert_num>("moeExpertNum",
                                  "routed experts; further rows of the table are shared ones"),
    attribute<&A::quant_mode>("quantMode", "0 none, 2 int8 with a scale per row"),
    attribute<&A::sync_flag>("syncFlag", "0 flags every FFN worker, 1 those that get a token"),
    attribute<&A::ffn_start_rank_id>("ffnStartRankId", "first rank of the FFN workers"),
};

constexpr Dim kDims[] = {dim("X", "1"),
                         dim("BS", "tokens of a micro-batch"),
                         dim("H", "elements of a token"),
                         dim("K", "routed experts of a token"),
                         dim("L", "1"),
                         dim("E", "routed and shared experts"),
                         dim("T", "columns of the table")};

bool in_range(std::int64_t value, std::int64_t low, std::int64_t high) {
  return low <= value && value <= high;
}
bool are_counts(const IntArrayView& values) {
  return std::all_of(values.items.begin(), values.items.end(),
                     [](std::int64_t value) { return in_range(value, 1, INT32_MAX); });
}

constexpr Rule kRules[] = {
    group_is_named<A>(),
    group_is_short<A>(),
    world_size_on_devices<A>(),
    world_size_on_host<A>(),
    rule<A>(Stage::attributes, kDevices, "moeExpertNum", "be in [1, 1024]",
            [](const A& a) { return in_range(a.moe_expert_num, 1, 1024); }),
    rule<A>(Stage::attributes, kHost, "moeExpertNum", "be at least 1",
            [](const A& a) { return a.moe_expert_num >= 1; }),
    rule<A>(Stage::attributes, kEverywhere, "quantMode", "be 0 or 2",
            [](const A& a) { return a.quant_mode == 0 || a.quant_mode == 2; }),
    rule<A>(Stage::attributes, kEverywhere, "syncFlag", "be 0 or 1",
            [](const A& a) { return a.sync_flag == 0 || a.sync_flag == 1; }),
    rule<A>(Stage::attributes, kEverywhere, "ffnStartRankId", "be in [0, worldSize)",
            [](const A& a) { return in_range(a.ffn_start_rank_id, 0, a.world_size - 1); }),
    rule<A>(Stage::attributes, kEverywhere, "scalesOptional", "be null when quantMode is 0",
            [](const A& a) { return a.quantises() || !a.scales.present(); }),
    rule<A>(Stage::attributes, kEverywhere, "ffnTokenInfoTableShape",
            "have 3 values, {A, M, 2 + BS * slots}, above 0",
            [](const A& a) {
              return a.ffn_token_info_table_shape.size() == 3 && are_counts(a.ffn_token_info_table_shape);
            }),
    rule<A>(
        Stage::attributes, kEverywhere, "ffnTokenDataShape", "have 5 values, {A, M, BS, slots, S}, above 0",
        [](const A& a) { return a.ffn_token_data_shape.size() == 5 && are_counts(a.ffn_token_data_shape); }),
    rule<A>(Stage::attributes, kEverywhere, "attnTokenInfoTableShape",
            "have 3 values, {M, BS, slots}, above 0",
            [](const A& a) {
              return a.attn_token_info_table_shape.size() == 3 && are_counts(a.attn_token_info_table_shape);
            }),
    rule<A>(Stage::attributes, kEverywhere, "ffnTokenInfoTableShape", "have an A below worldSize",
            [](const A& a) { return a.ffn_token_info_table_shape[0] < a.world_size; }),
    rule<A>(Stage::attributes, kEverywhere, "ffnTokenDataShape",
            "begin with the A and M of ffnTokenInfoTableShape",
            [](const A& a) {
              return std::equal(a.ffn_token_data_shape.items.begin(),
                                a.ffn_token_data_shape.items.begin() + 2,
                                a.ffn_token_info_table_shape.items.begin());
            }),
    rule<A>(Stage::attributes, kEverywhere, "attnTokenInfoTableShape",
            "have the M, BS and slots of ffnTokenDataShape",
            [](const A& a) {
              return std::equal(a.attn_token_info_table_shape.items.begin(),
                                a.attn_token_info_table_shape.items.end(),
                                a.ffn_token_data_shape.items.begin() + 1);
            }),
    rule<A>(Stage::attributes, kEverywhere, "ffnStartRankId",
            "leave room for the worldSize - A ranks of the FFN workers",
            [](const A& a) { return a.ffn_start_rank_id + a.ffn_workers() <= a.world_size; }),
    rule<A>(Stage::shapes, kEverywhere, "x", "have X = 1", [](const A& a) { return a.x.dim(0) == 1; }),
    rule<A>(Stage::shapes, kDevices, "x", "have BS in [1, 512] and H in [1024, 8192]",
            [](const A& a) { return in_range(a.tokens(), 1, 512) && in_range(a.hidden(), 1024, 8192); }),
    rule<A>(Stage::shapes, kEverywhere, "x", "have BS and H above 0",
            [](const A& a) { return a.tokens() >= 1 && a.hidden() >= 1; }),
    rule<A>(Stage::shapes, kDevices, "expertIds", "have K in [1, 16]",
            [](const A& a) { return in_range(a.topk(), 1, 16); }),
    rule<A>(Stage::shapes, kEverywhere, "expertIds", "have K in [1, moeExpertNum]",
            [](const A& a) { return in_range(a.topk(), 1, a.moe_expert_num); }),
    rule<A>(Stage::shapes, kEverywhere, "expertRankTable", "have L = 1",
            [](const A& a) { return a.expert_rank_table.dim(0) == 1; }),
    rule<A>(Stage::shapes, kEverywhere, "expertRankTable", "have moeExpertNum to moeExpertNum + 4 experts",
            [](const A& a) { return in_range(a.shared_experts(), 0, kMostSharedExperts); }),
    rule<A>(Stage::shapes, kEverywhere, "ffnTokenDataShape",
            "have the BS of x and K plus the shared experts as slots",
            [](const A& a) {
              return a.ffn_token_data_shape[2] == a.tokens() && a.ffn_token_data_shape[3] == a.slots();
            }),
    rule<A>(Stage::shapes, kEverywhere, "ffnTokenInfoTableShape", "end with 2 + BS * slots",
            [](const A& a) { return a.ffn_token_info_table_shape[2] == 2 + a.tokens() * a.slots(); }),
    rule<A>(Stage::shapes, kEverywhere, "ffnTokenDataShape",
            "have slots for H elements, and their scale for quantMode 2",
            [](const A& a) { return a.ffn_token_data_shape[4] >= a.hidden() + (a.quantises() ? 4 : 0); }),
};

}  // namespace

const Contract AttentionToFfn::kContract{{
    .name = "AttentionToFFN",
    .family = "afd",
    .summary =
        "Sends the tokens of a micro-batch into the windows of the FFN workers that have their experts.",
    .source = "aclnnAttentionToFFN",
    .products = kHost | kA2 | kA3 | k950,
    .codes = {.format = ACLNN_ERR_INNER_TILING_ERROR,
              .shape = ACLNN_ERR_INNER_TILING_ERROR,
              .rule = ACLNN_ERR_INNER_TILING_ERROR},
    .params = kParams,
    .dims = kDims,
    .rules = kRules,
}};

}  // namespace moeyard::ops
