// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_cast.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_sigmoid.h"
#include "aclnnop/aclnn_swi_glu.h"
#include "ops/compute/cast.h"
#include "ops/compute/mul.h"
#include "ops/compute/sigmoid.h"
#include "ops/compute/swi_glu.h"

using namespace moeyard;

aclnnStatus aclnnSwiGluGetWorkspaceSize(const aclTensor* x, int64_t dim, const aclTensor* out,
                                        uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::SwiGlu>("aclnnSwiGlu", workspaceSize, executor, [&] {
    return ops::SwiGluArgs{.x = view(x), .dim = dim, .out = view(out)};
  });
}

aclnnStatus aclnnSwiGlu(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                        aclrtStream stream) {
  return executor::run_call("aclnnSwiGlu", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnSigmoidGetWorkspaceSize(const aclTensor* self, aclTensor* out, uint64_t* workspaceSize,
                                         aclOpExecutor** executor) {
  return executor::plan_call<ops::Sigmoid>("aclnnSigmoid", workspaceSize, executor, [&] {
    return ops::SigmoidArgs{.self = view(self), .out = view(out)};
  });
}

aclnnStatus aclnnSigmoid(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                         aclrtStream stream) {
  return executor::run_call("aclnnSigmoid", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMulGetWorkspaceSize(const aclTensor* self, const aclTensor* other, aclTensor* out,
                                     uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::Mul>("aclnnMul", workspaceSize, executor, [&] {
    return ops::MulArgs{.self = view(self), .other = view(other), .out = view(out)};
  });
}

aclnnStatus aclnnMul(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) {
  return executor::run_call("aclnnMul", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnCastGetWorkspaceSize(const aclTensor* self, const aclDataType dtype, aclTensor* out,
                                      uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::Cast>("aclnnCast", workspaceSize, executor, [&] {
    return ops::CastArgs{.self = view(self), .dtype = dtype, .out = view(out)};
  });
}

aclnnStatus aclnnCast(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) {
  return executor::run_call("aclnnCast", workspace, workspaceSize, executor, stream);
}
