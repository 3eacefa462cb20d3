// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/afd/context_rules.h"
#include "ops/afd/ffn_worker_batching.h"

namespace moeyard::ops {

std::int64_t FfnWorkerBatchingArgs::rows() const {
  if (max_out_shape.size() != 4) return 0;
  std::int64_t rows = max_out_shape[0];
  for (int i = 1; i < 3; ++i)
    if (__builtin_mul_overflow(rows, max_out_shape[i], &rows)) return INT64_MAX;
  return rows;
}

namespace {

using namespace contract;
using A = FfnWorkerBatchingArgs;

constexpr Param kParams[] = {
    in<&A::schedule_context>("scheduleContext", kINT8, "",
                             "context of this FFN worker; with needSchedule 1 its polling_index moves on"),
    attribute<&A::expert_num>("expertNum", "experts of this rank over all layers"),
    attribute<&A::max_out_shape>("maxOutShape",
                                 "{A, BS, topK + shared experts, H}: Y is at most the first three"),
    attribute<&A::token_dtype>("tokenDtype", "0 FP16, 1 BF16, 2 INT8 with an FP32 scale behind each row"),
    attribute<&A::need_schedule>("needSchedule",
                                 "0 takes what the scheduler collected, 1 waits and takes here"),
    attribute<&A::layer_num>("layerNum", "layers whose experts this rank has; not used"),
    out<&A::y>("y", kHalves | kINT8, "Y, H", "rows by expert").contiguous_only(),
    out<&A::group_list>("groupList", kINT64, "expertNum, 2", "expert id and number of its rows")
        .contiguous_only(),
    out<&A::session_ids>("sessionIds", kINT32, "Y", "session of each row").contiguous_only(),
    out<&A::micro_batch_ids>("microBatchIds", kINT32, "Y", "micro-batch of each row").contiguous_only(),
    out<&A::token_ids>("tokenIds", kINT32, "Y", "token in its micro-batch").contiguous_only(),
    out<&A::expert_offsets>("expertOffsets", kINT32, "Y", "slot of the token").contiguous_only(),
    out<&A::dynamic_scale>("dynamicScale", kFP32, "", "scale of each row; written for tokenDtype 2")
        .optional()
        .contiguous_only(),
    out<&A::actual_token_num>("actualTokenNum", kINT64, "1 | ()", "rows that were written"),
};

constexpr Dim kDims[] = {
    dim<A>("Y", "rows at most", [](const A& a) { return a.rows(); }),
    dim<A>("H", "elements of a row", [](const A& a) { return a.hidden(); }),
};

constexpr std::int32_t kRange = ACLNN_ERR_INNER_TILING_ERROR;

constexpr Rule kRules[] = {
    rule<A>(
        Stage::nulls, kEverywhere, "dynamicScale", "be given when tokenDtype is 2",
        [](const A& a) { return !a.quantised() || a.dynamic_scale.present(); },
        "pass an FP32 tensor of Y elements", ACLNN_ERR_PARAM_NULLPTR),
    rule<A>(Stage::attributes, kEverywhere, "y", "be FP16, BF16 or INT8 for tokenDtype 0, 1 or 2",
            [](const A& a) {
              constexpr aclDataType kDtypes[] = {ACL_FLOAT16, ACL_BF16, ACL_INT8};
              return a.token_dtype < 0 || a.token_dtype > 2 || a.y.dtype == kDtypes[a.token_dtype];
            }),
    rule<A>(
        Stage::attributes, kEverywhere, "scheduleContext", "have one dimension",
        [](const A& a) { return a.schedule_context.rank == 1; }, {}, kRange),
    rule<A>(
        Stage::attributes, kEverywhere, "expertNum", "be in [1, 8192]",
        [](const A& a) { return 1 <= a.expert_num && a.expert_num <= 8192; }, {}, kRange),
    rule<A>(
        Stage::attributes, kEverywhere, "maxOutShape", "have 4 values, {A, BS, topK + shared experts, H}",
        [](const A& a) { return a.max_out_shape.size() == 4; }, {}, kRange),
    rule<A>(
        Stage::attributes, kEverywhere, "maxOutShape",
        "have A in [1, 1024], BS above 0, topK + 1 in [1, 64], H above 0",
        [](const A& a) {
          const IntArrayView& m = a.max_out_shape;
          return 1 <= m[0] && m[0] <= 1024 && m[1] > 0 && 1 <= m[2] && m[2] <= 64 && m[3] > 0;
        },
        {}, kRange),
    rule<A>(
        Stage::attributes, kEverywhere, "tokenDtype", "be 0, 1 or 2",
        [](const A& a) { return 0 <= a.token_dtype && a.token_dtype <= 2; }, {}, kRange),
    rule<A>(
        Stage::attributes, kEverywhere, "needSchedule", "be 0 or 1",
        [](const A& a) { return a.need_schedule == 0 || a.need_schedule == 1; }, {}, kRange),
    rule<A>(
        Stage::attributes, kEverywhere, "layerNum", "be in [0, expertNum]",
        [](const A& a) { return 0 <= a.layer_num && a.layer_num <= a.expert_num; }, {}, kRange),
    context_is_whole<A>("scheduleContext"),
    context_is_aligned<A>("scheduleContext"),
    rule<A>(Stage::shapes, kEverywhere, "dynamicScale", "have shape (Y) when tokenDtype is 2",
            [](const A& a) {
              return !a.quantised() || (a.dynamic_scale.rank == 1 && a.dynamic_scale.dim(0) == a.rows());
            }),
};

}  // namespace

const Contract FfnWorkerBatching::kContract{{
    .name = "FfnWorkerBatching",
    .family = "afd",
    .summary = "Gathers the tokens that attention workers sent to an FFN worker, by expert.",
    .source = "aclnnFfnWorkerBatching",
    .products = kHost | kA2 | kA3 | k950,
    .params = kParams,
    .dims = kDims,
    .rules = kRules,
}};

}  // namespace moeyard::ops
