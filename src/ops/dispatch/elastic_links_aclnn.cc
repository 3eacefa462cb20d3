// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_elastic_receivable_info_collect.h"
#include "aclnnop/aclnn_elastic_receivable_test.h"
#include "aclnnop/aclnn_moe_distribute_buffer_reset.h"
#include "ops/dispatch/elastic_links.h"

using namespace moeyard;

namespace {

ops::LinkAttributes attributes(const char* group, int64_t worldSize) {
  return {.has_group = group != nullptr, .group = std::string(text(group)), .world_size = worldSize};
}

}  // namespace

aclnnStatus aclnnMoeDistributeBufferResetGetWorkspaceSize(const aclTensor* elasticInfo, const char* groupEp,
                                                          int64_t epWorldSize, int64_t needSync,
                                                          uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::BufferReset>("aclnnMoeDistributeBufferReset", workspaceSize, executor, [&] {
    return ops::BufferResetArgs{attributes(groupEp, epWorldSize), view(elasticInfo), needSync};
  });
}

aclnnStatus aclnnMoeDistributeBufferReset(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                          aclrtStream stream) {
  return executor::run_call("aclnnMoeDistributeBufferReset", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnElasticReceivableTestGetWorkspaceSize(const aclTensor* dstRank, const char* group,
                                                       int64_t worldSize, int64_t rankNum,
                                                       uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::ReceivableTest>("aclnnElasticReceivableTest", workspaceSize, executor, [&] {
    return ops::ReceivableTestArgs{attributes(group, worldSize), view(dstRank), rankNum};
  });
}

aclnnStatus aclnnElasticReceivableTest(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                       aclrtStream stream) {
  return executor::run_call("aclnnElasticReceivableTest", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnElasticReceivableInfoCollectGetWorkspaceSize(const char* group, int64_t worldSize,
                                                              const aclTensor* y, uint64_t* workspaceSize,
                                                              aclOpExecutor** executor) {
  return executor::plan_call<ops::ReceivableInfo>(
      "aclnnElasticReceivableInfoCollect", workspaceSize, executor, [&] {
        return ops::ReceivableInfoArgs{attributes(group, worldSize), view(y)};
      });
}

aclnnStatus aclnnElasticReceivableInfoCollect(void* workspace, uint64_t workspaceSize,
                                              aclOpExecutor* executor, aclrtStream stream) {
  return executor::run_call("aclnnElasticReceivableInfoCollect", workspace, workspaceSize, executor, stream);
}
