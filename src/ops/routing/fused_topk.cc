// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/routing/fused_topk.h"

#include <algorithm>

namespace moeyard::ops {
namespace {

using namespace contract;
using A = FusedTopkArgs;

constexpr Param kParams[] = {
    in<&A::x>("x", kFloats, "T, E", "router logits"),
    in<&A::add_num>("addNum", kFloats, "E", "added to the scores that experts are chosen by").like("x"),
    in<&A::mapping_num>("mappingNum", kINT32, "", "instances of each expert").optional(),
    in<&A::mapping_table>("mappingTable", kINT32, "", "ids of instances").optional(),
    attribute<&A::group_num>("groupNum", "groups of experts"),
    attribute<&A::group_topk>("groupTopk", "groups that are kept"),
    attribute<&A::top_n>("topN", "experts that a group is judged by"),
    attribute<&A::topk>("topK", "experts per token"),
    attribute<&A::activate_type>("activateType", "0: sigmoid"),
    attribute<&A::is_norm>("isNorm", "1: weights are divided by their sum"),
    attribute<&A::scale>("scale", "factor of divided weights"),
    attribute<&A::maps>("enableExpertMapping", "1: experts are mapped to instances"),
    out<&A::y>("y", kFP32, "T, topK", "weights of the chosen experts"),
    out<&A::indices>("indices", kINT32, "T, topK", "the chosen experts, best first"),
};
constexpr Dim kDims[] = {dim("T", "tokens"), dim("E", "experts")};

constexpr Rule kRules[] = {
    rule<A>(
        Stage::nulls, kEverywhere, "mappingNum", "be given, with mappingTable, when enableExpertMapping is 1",
        [](const A& a) { return !a.maps || (a.mapping_num.present() && a.mapping_table.present()); }, {},
        ACLNN_ERR_PARAM_NULLPTR),
    rule<A>(Stage::attributes, kEverywhere, "groupNum", "be above 0, as groupTopk, topN and topK",
            [](const A& a) {
              return a.empty() || (a.group_num > 0 && a.group_topk > 0 && a.top_n > 0 && a.topk > 0);
            }),
    rule<A>(Stage::attributes, kDevices, "groupNum", "be at most 256",
            [](const A& a) { return a.empty() || a.group_num <= 256; }),
    rule<A>(Stage::attributes, kEverywhere, "groupTopk", "be at most groupNum",
            [](const A& a) { return a.empty() || a.group_topk <= a.group_num; }),
    rule<A>(Stage::attributes, kEverywhere, "activateType", "be 0",
            [](const A& a) { return a.empty() || a.activate_type == 0; }),
    rule<A>(Stage::shapes, kDevices, "x", "have at most 1024 experts",
            [](const A& a) { return a.empty() || a.experts() <= 1024; }),
    rule<A>(Stage::shapes, kEverywhere, "groupNum", "divide E",
            [](const A& a) { return a.empty() || a.experts() % a.group_num == 0; }),
    rule<A>(Stage::shapes, kEverywhere, "topK", "be at most E",
            [](const A& a) { return a.empty() || a.topk <= a.experts(); }),
    rule<A>(Stage::shapes, kEverywhere, "topN", "be at most E / groupNum",
            [](const A& a) { return a.empty() || a.top_n <= a.experts() / a.group_num; }),
    rule<A>(Stage::shapes, kEverywhere, "mappingNum", "have shape (E)",
            [](const A& a) {
              return a.empty() || !a.maps || (a.mapping_num.rank == 1 && a.mapping_num.dim(0) == a.experts());
            }),
    rule<A>(Stage::shapes, kEverywhere, "mappingTable", "have E rows of at least one instance",
            [](const A& a) {
              return a.empty() || !a.maps ||
                     (a.mapping_table.rank == 2 && a.mapping_table.dim(0) == a.experts() &&
                      a.mapping_table.dim(1) > 0);
            }),
    rule<A>(Stage::shapes, kDevices, "mappingTable", "have at most 128 instances of an expert",
            [](const A& a) { return a.empty() || !a.maps || a.mapping_table.dim(1) <= 128; }),
};

constexpr std::int64_t kTinyLogits = 2048;  // below that, waking the stream's thread costs more than the work

void choose(const float* value, std::int64_t n, std::int64_t k, const GateScratch& scratch) {
  static const kernels::TopKFn top_k = kernels::top_k_variants().front().run;
  top_k({.value = value,
         .n = n,
         .k = k,
         .groups = 1,
         .kept_groups = 1,
         .group_score = kernels::GroupScore::largest,
         .scratch = scratch.choosing,
         .ids = scratch.ids});
}

// Makes the values of all groups 0 but those of the groups whose topN largest values add up to the most.
void mask_groups(const A& args, const GateScratch& scratch) {
  const std::int64_t size = args.experts() / args.group_num;
  for (std::int64_t group = 0; group < args.group_num; ++group) {
    const float* value = scratch.value + group * size;
    choose(value, size, args.top_n, scratch);
    float sum = 0;
    for (std::int64_t i = 0; i < args.top_n; ++i) sum += value[scratch.ids[i]];
    scratch.weight[group] = sum;
  }
  choose(scratch.weight, args.group_num, args.group_topk, scratch);
  std::sort(scratch.ids, scratch.ids + args.group_topk);
  const std::int32_t* kept = scratch.ids;
  for (std::int64_t group = 0; group < args.group_num; ++group) {
    if (kept < scratch.ids + args.group_topk && *kept == group)
      ++kept;
    else
      std::fill_n(scratch.value + group * size, size, 0.0f);
  }
}

void normalise_weights(const A& args, float* weight) {
  float sum = 0;
  for (std::int64_t j = 0; j < args.topk; ++j) sum += weight[j];
  for (std::int64_t j = 0; j < args.topk; ++j) weight[j] = weight[j] / sum * args.scale;
}

// Numbers of instances beyond those of the table are outside what CANN documents: they count as all of them.
std::int32_t instance_of(const A& args, std::int64_t token, std::int64_t expert) {
  const std::int64_t count =
      std::clamp<std::int64_t>(args.mapping_num.at<std::int32_t>(expert), 0, args.mapping_table.dim(1));
  return args.mapping_table.at<std::int32_t>(expert, count == 0 ? 0 : token % count);
}

}  // namespace

const Contract FusedTopk::kContract{{
    .name = "MoeFusedTopk",
    .family = "routing",
    .summary = "Chooses experts by sigmoid scores within the best groups and maps them to instances.",
    .source = "aclnnMoeFusedTopk",
    .products = kHost | kA2 | kA3,
    .params = kParams,
    .dims = kDims,
    .rules = kRules,
}};

Result<FusedTopk::Plan> FusedTopk::plan(const char* /*function*/, const Args& args) {
  Plan plan;
  plan.tiny = args.x.numel() <= kTinyLogits;
  if (args.empty()) return plan;
  // Weights and ids also hold those of groups, and of the experts that a group is judged by.
  plan.layout = GateScratch::layout(args.x.dim(0), args.experts(),
                                    std::max({args.topk, args.group_num, args.top_n}), 1);
  plan.workspace_bytes = plan.layout.workspace_bytes();
  return plan;
}

Status FusedTopk::run(const executor::Run& run, const Args& args, const Plan& plan) {
  if (args.empty()) return {};
  for_each_piece(plan.layout, run.workspace, [&](const GateScratch& scratch, Range rows) {
    normalise_row(args.add_num, 0, kernels::Normalisation::widen, scratch.bias);
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      normalise_row(args.x, row, kernels::Normalisation::sigmoid, scratch.score);
      for (std::int64_t e = 0; e < args.experts(); ++e) scratch.value[e] = scratch.score[e] + scratch.bias[e];
      mask_groups(args, scratch);
      choose(scratch.value, args.experts(), args.topk, scratch);
      for (std::int64_t j = 0; j < args.topk; ++j) scratch.weight[j] = scratch.score[scratch.ids[j]];
      if (args.is_norm) normalise_weights(args, scratch.weight);
      for (std::int64_t j = 0; args.maps && j < args.topk; ++j)
        scratch.ids[j] = instance_of(args, row, scratch.ids[j]);
      write_row(scratch.weight, args.y, row);
      write_row(scratch.ids, args.indices, row);
    }
  });
  return {};
}

}  // namespace moeyard::ops
