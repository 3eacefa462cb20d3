// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/gate_step.h"

#include "aclnnop/aclnn_moe_gating_top_k.h"
#include "aclnnop/aclnn_moe_gating_top_k_softmax_v2.h"
#include "aclnnop/aclnn_moe_update_expert.h"
#include "model/grouped_matmul.h"

namespace moeyard::model {
namespace {

// GatingTopK knows groups, bias and a scaling factor; plain softmax routers have the simpler operator.
bool is_plain(const Routing& routing) {
  return routing.score == Score::softmax && routing.choice == Choice::greedy && routing.scale == 1.0;
}

}  // namespace

Result<GateStep> GateStep::make(const Job& job, int rank) {
  const LayerConfig& config = job.layer.config;
  const std::int64_t tokens = job.tokens_of(rank), topk = config.topk;
  const auto values = job.values_of(rank);
  const std::vector<float> router = job.layer.router.widened();
  GateStep step;
  // The router reads tokens and weights as the files have them, not rounded to the type of the experts.
  step.tokens_ = MOEYARD_TRY(DeviceTensor::make(ACL_FLOAT, {tokens, config.hidden}, std::as_bytes(values)));
  step.router_ = MOEYARD_TRY(
      DeviceTensor::make(ACL_FLOAT, {1, config.experts, config.hidden}, std::as_bytes(std::span(router))));
  step.row_count_ = MOEYARD_TRY(DeviceTensor::make(ACL_INT64, {1}, std::as_bytes(std::span(&tokens, 1))));
  step.logits_ = MOEYARD_TRY(DeviceTensor::make(ACL_FLOAT, {tokens, config.experts}));
  step.experts_ = MOEYARD_TRY(DeviceTensor::make(ACL_INT32, {tokens, topk}));
  step.weights_ = MOEYARD_TRY(DeviceTensor::make(ACL_FLOAT, {tokens, topk}));
  if (!is_plain(config.routing))
    step.scores_ = MOEYARD_TRY(DeviceTensor::make(ACL_FLOAT, {tokens, config.experts}));
  if (!job.layer.bias.empty())
    step.bias_ = MOEYARD_TRY(
        DeviceTensor::make(ACL_FLOAT, {config.experts}, std::as_bytes(std::span(job.layer.bias))));
  if (const Placement& placement = job.placement; !placement.table.empty() && !job.afd) {
    step.table_ = MOEYARD_TRY(DeviceTensor::make(ACL_INT32, {config.experts, placement.columns},
                                                 std::as_bytes(std::span(placement.table))));
    step.instances_ = MOEYARD_TRY(DeviceTensor::make(ACL_INT32, {tokens, topk}));
    step.unused_mask_ = MOEYARD_TRY(DeviceTensor::make(ACL_BOOL, {tokens, topk}));
  }
  return step;
}

Status GateStep::queue(const Job& job, Rank& rank) {
  if (job.tokens_of(rank.number()) == 0) return {};
  MOEYARD_TRY(rank.begin(Phase::gate));
  MOEYARD_TRY(
      multiply_groups(rank, MOEYARD_TRY(tokens_.all()), router_, row_count_, MOEYARD_TRY(logits_.all())));
  MOEYARD_TRY(queue_choice(job, rank));
  if (table_) MOEYARD_TRY(queue_instances(job, rank));
  return rank.end(Phase::gate);
}

Status GateStep::queue_choice(const Job& job, Rank& rank) {
  const Routing& routing = job.layer.config.routing;
  const std::int64_t topk = job.layer.config.topk, normalise = routing.normalise ? 1 : 0;
  if (is_plain(routing))
    return rank.call("aclnnMoeGatingTopKSoftmaxV2", aclnnMoeGatingTopKSoftmaxV2GetWorkspaceSize,
                     aclnnMoeGatingTopKSoftmaxV2, logits_.get(), /*finished*/ nullptr, topk, normalise,
                     /*outputSoftmaxResultFlag*/ false, weights_.get(), experts_.get(),
                     /*softmaxResultOut*/ nullptr);
  const bool sigmoid = routing.score == Score::sigmoid;
  const std::int64_t two_best = routing.choice == Choice::two_best_of_groups_with_bias ? 1 : 0;
  // The operator always divides sigmoid scores by their sum + eps. For routers that do not, an eps beside
  // which the sum vanishes makes that a division by a power of two, which the scaling factor undoes exactly.
  constexpr double kBesideAnySum = 0x1p40;
  const bool undo = sigmoid && !routing.normalise;
  return rank.call("aclnnMoeGatingTopK", aclnnMoeGatingTopKGetWorkspaceSize, aclnnMoeGatingTopK,
                   logits_.get(), bias_ ? bias_->get() : nullptr, topk, routing.kept_groups, routing.groups,
                   two_best, normalise, static_cast<std::int64_t>(sigmoid ? 1 : 0), /*outFlag*/ true,
                   undo ? routing.scale * kBesideAnySum : routing.scale, undo ? kBesideAnySum : 1e-20,
                   weights_.get(), experts_.get(), scores_.get());
}

Status GateStep::queue_instances(const Job& job, Rank& rank) {
  return rank.call("aclnnMoeUpdateExpert", aclnnMoeUpdateExpertGetWorkspaceSize, aclnnMoeUpdateExpert,
                   experts_.get(), table_->get(), /*expertScales*/ nullptr, /*pruningThreshold*/ nullptr,
                   /*activeMask*/ nullptr, static_cast<std::int64_t>(rank.number()),
                   static_cast<std::int64_t>(rank.ranks()), static_cast<std::int64_t>(job.balance),
                   instances_->get(), unused_mask_->get());
}

}  // namespace moeyard::model
