// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/combine_step.h"

#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_moe_distribute_combine_v4.h"
#include "base/product.h"

namespace moeyard::model {

namespace {

// A2's combine takes no rows of a shared expert: they are added to what it has rounded.
bool combine_adds_shared_rows() { return product() != Product::a2; }

Status add(Rank& rank, const DeviceTensor& to, const DeviceTensor& rows) {
  float one = 1;
  const std::unique_ptr<aclScalar, aclnnStatus (*)(const aclScalar*)> alpha(aclCreateScalar(&one, ACL_FLOAT),
                                                                            aclDestroyScalar);
  return rank.call("aclnnAdd", aclnnAddGetWorkspaceSize, aclnnAdd, to.get(), rows.get(), alpha.get(),
                   to.get());
}

}  // namespace

Result<CombineStep> CombineStep::make(const Job& job, int rank) {
  CombineStep step;
  step.out_ = MOEYARD_TRY(DeviceTensor::make(job.dtype(), {job.tokens_of(rank), job.layer.config.hidden}));
  return step;
}

Status CombineStep::queue(const Job& job, Rank& rank, const GateStep& gate, const DispatchStep& dispatch,
                          const ExpertsStep& experts) {
  constexpr std::int64_t kNoTp = 0, kByInstance = 0, kNoSharedRanks = 0, kReserved = 0, kNotQuantised = 0;
  const DeviceTensor* shared = experts.shared_out();
  MOEYARD_TRY(rank.meet());  // as before dispatch
  MOEYARD_TRY(rank.begin(Phase::combine));
  MOEYARD_TRY(rank.call(
      "aclnnMoeDistributeCombineV4", aclnnMoeDistributeCombineV4GetWorkspaceSize, aclnnMoeDistributeCombineV4,
      experts.out().get(), gate.instances().get(), dispatch.assist_info().get(), dispatch.recv_counts().get(),
      gate.weights().get(), /*tpSendCounts*/ nullptr, /*xActiveMask*/ nullptr, /*activationScale*/ nullptr,
      /*weightScale*/ nullptr, /*groupList*/ nullptr, dispatch.row_weights().get(),
      shared == nullptr || !combine_adds_shared_rows() ? nullptr : shared->get(), /*elasticInfo*/ nullptr,
      /*oriX*/ nullptr, /*constExpertAlpha1*/ nullptr, /*constExpertAlpha2*/ nullptr,
      /*constExpertV*/ nullptr,
      /*performanceInfo*/ nullptr, rank.group(), static_cast<std::int64_t>(rank.ranks()),
      static_cast<std::int64_t>(rank.number()), job.placement.instances(), /*groupTp*/ "", kNoTp, kNoTp,
      kByInstance, kNoSharedRanks, kNoSharedRanks, job.global_bs(), /*outDtype*/ kReserved, kNotQuantised,
      /*groupListType*/ kReserved, /*commAlg*/ "", /*zeroExpertNum*/ std::int64_t{0},
      /*copyExpertNum*/ std::int64_t{0}, /*constExpertNum*/ std::int64_t{0}, out_.get()));
  if (shared != nullptr && !combine_adds_shared_rows()) MOEYARD_TRY(add(rank, out_, *shared));
  return rank.end(Phase::combine);
}

}  // namespace moeyard::model
