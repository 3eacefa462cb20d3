// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_cast.h"
#include "aclnnop/aclnn_div.h"
#include "aclnnop/aclnn_gelu.h"
#include "aclnnop/aclnn_gelu_v2.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_sigmoid.h"
#include "aclnnop/aclnn_sub.h"
#include "aclnnop/aclnn_swi_glu.h"
#include "ops/compute/arithmetic.h"
#include "ops/compute/cast.h"
#include "ops/compute/gelu.h"
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
    return ops::ArithmeticArgs{
        .kind = ops::Arithmetic::multiply, .self = view(self), .other = view(other), .out = view(out)};
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

aclnnStatus aclnnAddGetWorkspaceSize(const aclTensor* self, const aclTensor* other, const aclScalar* alpha,
                                     aclTensor* out, uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::Add>("aclnnAdd", workspaceSize, executor, [&] {
    return ops::ArithmeticArgs{.kind = ops::Arithmetic::add,
                               .self = view(self),
                               .other = view(other),
                               .alpha = view(alpha),
                               .out = view(out)};
  });
}

aclnnStatus aclnnAdd(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) {
  return executor::run_call("aclnnAdd", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnSubGetWorkspaceSize(const aclTensor* self, const aclTensor* other, const aclScalar* alpha,
                                     aclTensor* out, uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::Sub>("aclnnSub", workspaceSize, executor, [&] {
    return ops::ArithmeticArgs{.kind = ops::Arithmetic::subtract,
                               .self = view(self),
                               .other = view(other),
                               .alpha = view(alpha),
                               .out = view(out)};
  });
}

aclnnStatus aclnnSub(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) {
  return executor::run_call("aclnnSub", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnDivGetWorkspaceSize(const aclTensor* self, const aclTensor* other, aclTensor* out,
                                     uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::Div>("aclnnDiv", workspaceSize, executor, [&] {
    return ops::ArithmeticArgs{
        .kind = ops::Arithmetic::divide, .self = view(self), .other = view(other), .out = view(out)};
  });
}

aclnnStatus aclnnDiv(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) {
  return executor::run_call("aclnnDiv", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnMulsGetWorkspaceSize(const aclTensor* self, const aclScalar* other, aclTensor* out,
                                      uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::Muls>("aclnnMuls", workspaceSize, executor, [&] {
    return ops::MulsArgs{.self = view(self), .other = view(other), .out = view(out)};
  });
}

aclnnStatus aclnnMuls(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) {
  return executor::run_call("aclnnMuls", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnGeluGetWorkspaceSize(const aclTensor* self, aclTensor* out, uint64_t* workspaceSize,
                                      aclOpExecutor** executor) {
  return executor::plan_call<ops::Gelu>("aclnnGelu", workspaceSize, executor,
                                        [&] { return ops::GeluArgs{.x = view(self), .y = view(out)}; });
}

aclnnStatus aclnnGelu(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream) {
  return executor::run_call("aclnnGelu", workspace, workspaceSize, executor, stream);
}

aclnnStatus aclnnGeluV2GetWorkspaceSize(const aclTensor* x, int64_t approximate, aclTensor* y,
                                        uint64_t* workspaceSize, aclOpExecutor** executor) {
  return executor::plan_call<ops::GeluV2>("aclnnGeluV2", workspaceSize, executor, [&] {
    return ops::GeluArgs{.x = view(x), .approximate = approximate, .y = view(y)};
  });
}

aclnnStatus aclnnGeluV2(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                        aclrtStream stream) {
  return executor::run_call("aclnnGeluV2", workspace, workspaceSize, executor, stream);
}
