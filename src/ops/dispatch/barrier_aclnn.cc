// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_distribute_barrier.h"
#include "aclnnop/aclnn_distribute_barrier_v2.h"
#include "ops/dispatch/barrier.h"

using namespace moeyard;

namespace {

aclnnStatus plan_version(const char* function, const aclTensor* xRef, const aclTensor* timeOut,
                         const aclTensor* elasticInfo, const char* group, int64_t worldSize,
                         uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::Barrier>(function, workspaceSize, executor, [&] {
    return ops::BarrierArgs{.x_ref = view(xRef),
                            .time_out = view(timeOut),
                            .elastic_info = view(elasticInfo),
                            .has_group = group != nullptr,
                            .group = std::string(text(group)),
                            .world_size = worldSize};
  });
}

}  // namespace

aclnnStatus aclnnDistributeBarrierGetWorkspaceSize(aclTensor* xRef, const char* group, int64_t worldSize,
                                                   uint64_t* workspaceSize, aclOpExecutor** executor) {
  return plan_version("aclnnDistributeBarrier", xRef, nullptr, nullptr, group, worldSize, workspaceSize,
                      executor);
}

aclnnStatus aclnnDistributeBarrier(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                   aclrtStream stream) {
  return executor::run_call("aclnnDistributeBarrier", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnDistributeBarrierV2GetWorkspaceSize(const aclTensor* xRef, const aclTensor* timeOut,
                                                     const aclTensor* elasticInfo, const char* group,
                                                     int64_t worldSize, uint64_t* workspaceSize,
                                                     aclOpExecutor** executor) {
  return plan_version("aclnnDistributeBarrierV2", xRef, timeOut, elasticInfo, group, worldSize, workspaceSize,
                      executor);
}

aclnnStatus aclnnDistributeBarrierV2(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                     aclrtStream stream) {
  return executor::run_call("aclnnDistributeBarrierV2", workspace, workspaceSize, executor, stream);
}
