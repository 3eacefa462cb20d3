// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/dispatch_step.h"

#include "aclnnop/aclnn_moe_distribute_dispatch_v4.h"
namespace moeyard::model {

Result<DispatchStep> DispatchStep::make(const Job& job, int rank) {
  const std::int64_t tokens = job.tokens_of(rank), hidden = job.layer.config.hidden,
                     capacity = job.capacity();
  const auto rounded = MOEYARD_TRY(job.rounded_tokens(rank));
  // The weight of each row and room for counts of a TP domain: neither is used here, but A2 asks for the weights.
  constexpr std::int64_t kAssistWords = 128;
  DispatchStep step;
  step.tokens_ =
      MOEYARD_TRY(DeviceTensor::make(job.dtype(), {tokens, hidden}, std::as_bytes(std::span(rounded))));
  step.rows_ = MOEYARD_TRY(DeviceTensor::make(job.dtype(), {capacity, hidden}));
  step.rows_of_expert_ = MOEYARD_TRY(DeviceTensor::make(ACL_INT64, {job.local_instances()}));
  step.assist_info_ = MOEYARD_TRY(DeviceTensor::make(ACL_INT32, {capacity * kAssistWords}));
  step.recv_counts_ = MOEYARD_TRY(DeviceTensor::make(ACL_INT32, {job.placement.instances()}));
  step.tp_counts_ = MOEYARD_TRY(DeviceTensor::make(ACL_INT32, {1}));
  step.row_weights_ = MOEYARD_TRY(DeviceTensor::make(ACL_FLOAT, {capacity}));
  return step;
}

Status DispatchStep::queue(const Job& job, Rank& rank, const GateStep& gate) {
  constexpr std::int64_t kNoTp = 0, kByInstance = 0, kNoSharedRanks = 0, kNotQuantised = 0, kCounts = 1;
  MOEYARD_TRY(rank.meet());  // so that the time below is not that of a rank which comes late
  MOEYARD_TRY(rank.begin(Phase::dispatch));
  MOEYARD_TRY(rank.call(
      "aclnnMoeDistributeDispatchV4", aclnnMoeDistributeDispatchV4GetWorkspaceSize,
      aclnnMoeDistributeDispatchV4, tokens_.get(), gate.instances().get(),
      /*scales*/ nullptr, /*xActiveMask*/ nullptr, gate.weights().get(), /*elasticInfo*/ nullptr,
      /*performanceInfo*/ nullptr, rank.group(), static_cast<std::int64_t>(rank.ranks()),
      static_cast<std::int64_t>(rank.number()), job.placement.instances(),
      /*groupTp*/ "", kNoTp, kNoTp, kByInstance, kNoSharedRanks, kNoSharedRanks, kNotQuantised,
      job.global_bs(), kCounts, /*commAlg*/ "",
      /*zeroExpertNum*/ std::int64_t{0}, /*copyExpertNum*/ std::int64_t{0},
      /*constExpertNum*/ std::int64_t{0}, rows_.get(), /*dynamicScales*/ nullptr, assist_info_.get(),
      rows_of_expert_.get(), recv_counts_.get(), tp_counts_.get(), row_weights_.get()));
  return rank.end(Phase::dispatch);
}

}  // namespace moeyard::model
