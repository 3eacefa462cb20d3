// Moeyard. SPDX-License-Identifier: Apache-2.0
// What the operators of token_unpermute_test.cc refuse.
#include <gtest/gtest.h>

#include "aclnnop/aclnn_moe_init_routing_v2_grad.h"
#include "aclnnop/aclnn_moe_token_permute_grad.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_ep.h"
#include "support/int_array.h"
#include "support/refusals.h"
#include "support/rerun.h"

namespace oracle {
namespace {

using Values = std::optional<std::vector<std::int64_t>>;

// 3 tokens, 2 slots each, rows of 2 elements.
struct Tensors {
  std::optional<Tensor> rows = Tensor::empty<float>({6, 2}), indices = Tensor::empty<std::int32_t>({6}),
                        probs = Tensor::empty<float>({3, 2}), out = Tensor::empty<float>({3, 2});
  bool padded = false;
  std::int64_t topk = 2;
  Values range;
};

struct Unpermute : Tensors {
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    return aclnnMoeTokenUnpermuteGetWorkspaceSize(handle(rows), handle(indices), handle(probs), padded,
                                                  nullptr, handle(out), size, executor);
  }
};
const Refusal<Unpermute> kUnpermute[] = {
    {"rows", 161001, "permutedTokens is null", [](Unpermute& c) { c.rows.reset(); }},
    {"indices", 161001, "sortedIndices is null", [](Unpermute& c) { c.indices.reset(); }},
    {"out", 161001, "out is null", [](Unpermute& c) { c.out.reset(); }},
    {"rows_dtype", 161002, "permutedTokens is INT8[6,2]",
     [](Unpermute& c) {
       c.rows = Tensor::empty<std::int8_t>({6, 2});
     }},
    {"indices_dtype", 161002, "sortedIndices is INT64[6]",
     [](Unpermute& c) { c.indices = Tensor::empty<std::int64_t>({6}); }},
    {"probs_dtype", 161002, "probsOptional is INT32[3,2]",
     [](Unpermute& c) {
       c.probs = Tensor::empty<std::int32_t>({3, 2});
     }},
    {"out_dtype", 161002, "out is BF16[3,2] but must have the dtype of permutedTokens",
     [](Unpermute& c) {
       c.out = Tensor::empty<B16>({3, 2});
     }},
    {"padded", 561002, "paddedMode is 1 but must be 0", [](Unpermute& c) { c.padded = true; }},
    {"rows_rank", 561002, "permutedTokens is FP32[12]",
     [](Unpermute& c) { c.rows = Tensor::empty<float>({12}); }},
    {"probs_rank", 561002, "sortedIndices is INT32[6] but must have shape (T*K) with T = 6, K = 0",
     [](Unpermute& c) { c.probs = Tensor::empty<float>({6}); }},
    {"indices_count", 561002, "sortedIndices is INT32[5] but must have shape (T*K) with T = 3, K = 2",
     [](Unpermute& c) { c.indices = Tensor::empty<std::int32_t>({5}); }},
    {"out_shape", 561002, "out is FP32[2,2] but must have shape (T, H) with T = 3, H = 2",
     [](Unpermute& c) {
       c.out = Tensor::empty<float>({2, 2});
     }},
    {"many", 561002,
     "sortedIndices is INT32[513] but must have at most 512 slots for each of T tokens (T = 1)",
     [](Unpermute& c) {
       c.indices = Tensor::empty<std::int32_t>({513});
       c.probs = Tensor::empty<float>({1, 513});
       c.out = Tensor::empty<float>({1, 2});
     }},
};

struct UnpermuteWithEp : Tensors {
  UnpermuteWithEp() { range = {0, 6}; }
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    return aclnnMoeTokenUnpermuteWithEpGetWorkspaceSize(handle(rows), handle(indices), handle(probs), topk,
                                                        IntArray(range), padded, nullptr, handle(out), size,
                                                        executor);
  }
};
const Refusal<UnpermuteWithEp> kUnpermuteWithEp[] = {
    {"rows", 161001, "permutedTokens is null", [](UnpermuteWithEp& c) { c.rows.reset(); }},
    {"indices", 161001, "sortedIndices is null", [](UnpermuteWithEp& c) { c.indices.reset(); }},
    {"out", 161001, "out is null", [](UnpermuteWithEp& c) { c.out.reset(); }},
    {"rows_dtype", 161002, "permutedTokens is INT8[6,2]",
     [](UnpermuteWithEp& c) {
       c.rows = Tensor::empty<std::int8_t>({6, 2});
     }},
    {"indices_dtype", 161002, "sortedIndices is INT64[6]",
     [](UnpermuteWithEp& c) { c.indices = Tensor::empty<std::int64_t>({6}); }},
    {"probs_dtype", 161002, "probsOptional is INT32[3,2]",
     [](UnpermuteWithEp& c) {
       c.probs = Tensor::empty<std::int32_t>({3, 2});
     }},
    {"out_dtype", 161002, "out is BF16[3,2] but must have the dtype of permutedTokens",
     [](UnpermuteWithEp& c) {
       c.out = Tensor::empty<B16>({3, 2});
     }},
    {"padded", 561002, "paddedMode is 1", [](UnpermuteWithEp& c) { c.padded = true; }},
    {"rows_rank", 561002, "permutedTokens is FP32[12]",
     [](UnpermuteWithEp& c) { c.rows = Tensor::empty<float>({12}); }},
    {"indices_count", 561002, "sortedIndices is INT32[7]",
     [](UnpermuteWithEp& c) { c.indices = Tensor::empty<std::int32_t>({7}); }},
    {"out_shape", 561002, "out is FP32[2,2]",
     [](UnpermuteWithEp& c) {
       c.out = Tensor::empty<float>({2, 2});
     }},
    {"many", 561002, "sortedIndices is INT32[513] but must have at most 512 slots for each of T tokens",
     [](UnpermuteWithEp& c) {
       c.indices = Tensor::empty<std::int32_t>({513});
       c.probs = Tensor::empty<float>({1, 513});
       c.out = Tensor::empty<float>({1, 2});
       c.topk = 513;
     }},
    {"topk", 561002, "numTopk is 3 but must be above 0 and be the number of columns of probsOptional",
     [](UnpermuteWithEp& c) { c.topk = 3; }},
    {"no_topk", 561002, "numTopk is 0",
     [](UnpermuteWithEp& c) {
       c.probs.reset();
       c.topk = 0;
     }},
    {"range", 561002, "rangeOptional is {0, 7}",
     [](UnpermuteWithEp& c) {
       c.range = {0, 7};
     }},
    {"one_end", 561002, "rangeOptional is {3}", [](UnpermuteWithEp& c) { c.range = {3}; }},
    {"rows_shape", 561002, "permutedTokens is FP32[6,2] but must have shape (R, H) with R = 4",
     [](UnpermuteWithEp& c) {
       c.range = {1, 5};
     }},
};

struct PermuteGrad : Tensors {
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    return aclnnMoeTokenPermuteGradGetWorkspaceSize(handle(rows), handle(indices), topk, padded, handle(out),
                                                    size, executor);
  }
};
const Refusal<PermuteGrad> kPermuteGrad[] = {
    {"rows", 161001, "permutedOutputGrad is null", [](PermuteGrad& c) { c.rows.reset(); }},
    {"indices", 161001, "sortedIndices is null", [](PermuteGrad& c) { c.indices.reset(); }},
    {"out", 161001, "out is null", [](PermuteGrad& c) { c.out.reset(); }},
    {"rows_dtype", 161002, "permutedOutputGrad is INT8[6,2]",
     [](PermuteGrad& c) {
       c.rows = Tensor::empty<std::int8_t>({6, 2});
     }},
    {"indices_dtype", 161002, "sortedIndices is INT64[6]",
     [](PermuteGrad& c) { c.indices = Tensor::empty<std::int64_t>({6}); }},
    {"out_dtype", 161002, "out is BF16[3,2]",
     [](PermuteGrad& c) {
       c.out = Tensor::empty<B16>({3, 2});
     }},
    {"no_topk", 161002, "numTopk is 0 but must be above 0 and divide", [](PermuteGrad& c) { c.topk = 0; }},
    {"topk", 161002, "numTopk is 4", [](PermuteGrad& c) { c.topk = 4; }},
    {"many", 561002, "numTopk is 513 but must be at most 512",
     [](PermuteGrad& c) {
       c.topk = 513;
       c.indices = Tensor::empty<std::int32_t>({513});
     }},
    {"padded", 561002, "paddedMode is 1", [](PermuteGrad& c) { c.padded = true; }},
    {"rows_rank", 561002, "permutedOutputGrad is FP32[12]",
     [](PermuteGrad& c) { c.rows = Tensor::empty<float>({12}); }},
    {"out_shape", 561002, "out is FP32[2,2]",
     [](PermuteGrad& c) {
       c.out = Tensor::empty<float>({2, 2});
     }},
};

struct PermuteWithEpGrad : Tensors {
  PermuteWithEpGrad() { range = {0, 6}; }
  std::optional<Tensor> row_probs = Tensor::empty<float>({6});
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    return aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(handle(rows), handle(indices), handle(row_probs),
                                                          topk, IntArray(range), padded, handle(out),
                                                          handle(probs), size, executor);
  }
};
const Refusal<PermuteWithEpGrad> kPermuteWithEpGrad[] = {
    {"rows", 161001, "permutedTokensOutputGrad is null", [](PermuteWithEpGrad& c) { c.rows.reset(); }},
    {"probs", 161001, "probsGradOut is null", [](PermuteWithEpGrad& c) { c.probs.reset(); }},
    {"indices", 161001, "sortedIndices is null", [](PermuteWithEpGrad& c) { c.indices.reset(); }},
    {"out", 161001, "tokenGradOut is null", [](PermuteWithEpGrad& c) { c.out.reset(); }},
    {"rows_dtype", 161002, "permutedTokensOutputGrad is INT8[6,2]",
     [](PermuteWithEpGrad& c) {
       c.rows = Tensor::empty<std::int8_t>({6, 2});
     }},
    {"indices_dtype", 161002, "sortedIndices is INT64[6]",
     [](PermuteWithEpGrad& c) { c.indices = Tensor::empty<std::int64_t>({6}); }},
    {"row_probs_dtype", 161002, "permutedProbsOutputGradOptional is INT32[6]",
     [](PermuteWithEpGrad& c) { c.row_probs = Tensor::empty<std::int32_t>({6}); }},
    {"out_dtype", 161002, "tokenGradOut is BF16[3,2]",
     [](PermuteWithEpGrad& c) {
       c.out = Tensor::empty<B16>({3, 2});
     }},
    {"padded", 561002, "paddedMode is 1", [](PermuteWithEpGrad& c) { c.padded = true; }},
    {"many", 561002, "numTopk is 513 but must be at most 512",
     [](PermuteWithEpGrad& c) {
       c.topk = 513;
       c.indices = Tensor::empty<std::int32_t>({513});
     }},
    {"out_shape", 561002, "tokenGradOut is FP32[2,2]",
     [](PermuteWithEpGrad& c) {
       c.out = Tensor::empty<float>({2, 2});
     }},
    {"probs_dtype", 161002,
     "probsGradOut is BF16[3,2] but must have the dtype of permutedProbsOutputGradOptional",
     [](PermuteWithEpGrad& c) {
       c.probs = Tensor::empty<B16>({3, 2});
     }},
    {"topk", 561002, "numTopk is 4", [](PermuteWithEpGrad& c) { c.topk = 4; }},
    {"range", 561002, "rangeOptional is {6, 5}",
     [](PermuteWithEpGrad& c) {
       c.range = {6, 5};
     }},
    {"row_probs", 561002,
     "permutedProbsOutputGradOptional is FP32[5] but must have one dimension, of R elements (R = 6)",
     [](PermuteWithEpGrad& c) { c.row_probs = Tensor::empty<float>({5}); }},
    {"probs_shape", 561002, "probsGradOut is FP32[2,3] but must have shape (T, K) (T = 3, K = 2)",
     [](PermuteWithEpGrad& c) {
       c.probs = Tensor::empty<float>({2, 3});
     }},
};

struct InitRoutingGrad : Tensors {
  std::int64_t mode = 0, active = 0;
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    return aclnnMoeInitRoutingV2GradGetWorkspaceSize(handle(rows), handle(indices), topk, mode, active,
                                                     handle(out), size, executor);
  }
};
const Refusal<InitRoutingGrad> kInitRoutingGrad[] = {
    {"rows", 161001, "gradExpandedX is null", [](InitRoutingGrad& c) { c.rows.reset(); }},
    {"indices", 161001, "expandedRowIdx is null", [](InitRoutingGrad& c) { c.indices.reset(); }},
    {"out", 161001, "out is null", [](InitRoutingGrad& c) { c.out.reset(); }},
    {"dtype", 161002, "gradExpandedX is INT8[6,2]",
     [](InitRoutingGrad& c) {
       c.rows = Tensor::empty<std::int8_t>({6, 2});
     }},
    {"indices_dtype", 161002, "expandedRowIdx is INT64[6]",
     [](InitRoutingGrad& c) { c.indices = Tensor::empty<std::int64_t>({6}); }},
    {"out_dtype", 161002, "out is BF16[3,2]",
     [](InitRoutingGrad& c) {
       c.out = Tensor::empty<B16>({3, 2});
     }},
    {"mode", 561103, "dropPadMode is 2 but must be 0 or 1", [](InitRoutingGrad& c) { c.mode = 2; }},
    {"topk", 561103, "topK is 0 but must be above 0", [](InitRoutingGrad& c) { c.topk = 0; }},
    {"active", 561103, "activeNum is -1 but must be 0 or more", [](InitRoutingGrad& c) { c.active = -1; }},
    {"rank", 561103, "gradExpandedX is FP32[6,2] but must have 3 dimensions in dropPadMode 1",
     [](InitRoutingGrad& c) { c.mode = 1; }},
    {"rank_4", 561103, "gradExpandedX is FP32[6,1,1,2]",
     [](InitRoutingGrad& c) {
       c.rows = Tensor::empty<float>({6, 1, 1, 2});
     }},
    {"rows_count", 561103, "gradExpandedX is FP32[5,2] but must have T*K rows",
     [](InitRoutingGrad& c) {
       c.rows = Tensor::empty<float>({5, 2});
     }},
    {"active_rows", 561103,
     "gradExpandedX is FP32[6,2] but must have T*K rows, or activeNum where that is above 0",
     [](InitRoutingGrad& c) { c.active = 5; }},
    {"hidden", 561103, "out is FP32[3,3]",
     [](InitRoutingGrad& c) {
       c.out = Tensor::empty<float>({3, 3});
     }},
    {"out_rows", 561103, "out is FP32[2,2]",
     [](InitRoutingGrad& c) {
       c.out = Tensor::empty<float>({2, 2});
     }},
};

template <class Call, std::size_t kCount>
void refuses(const Refusal<Call> (&table)[kCount]) {
  const Device device;
  expect_refusals(table, [] { return Call(); });
  Call call;
  expect_null_results_refused(call);
}

TEST(TokenUnpermuteRefuses, WithCodeAndReason) { refuses(kUnpermute); }
TEST(TokenUnpermuteWithEpRefuses, WithCodeAndReason) { refuses(kUnpermuteWithEp); }
TEST(TokenPermuteGradRefuses, WithCodeAndReason) { refuses(kPermuteGrad); }
TEST(TokenPermuteWithEpGradRefuses, WithCodeAndReason) { refuses(kPermuteWithEpGrad); }
TEST(InitRoutingV2GradRefuses, WithCodeAndReason) { refuses(kInitRoutingGrad); }

TEST(TokenUnpermuteProducts, FollowThe950) {
  if (!run_again_with("MOEYARD_SOC", "950")) return;
  const Device device;
  Unpermute unpermute;
  unpermute.padded = true;
  expect_refusal(unpermute, 161002, "paddedMode is 1");
  PermuteGrad permute_grad;
  permute_grad.padded = true;
  expect_refusal(permute_grad, 161002, "paddedMode is 1");
  UnpermuteWithEp with_ep;
  expect_refusal(with_ep, 561003, "does not exist on 950");
}

TEST(TokenUnpermuteProducts, FollowThe310P) {
  if (!run_again_with("MOEYARD_SOC", "310P")) return;
  const Device device;
  Unpermute call;
  expect_refusal(
      call, 561002,
      "permutedTokens is FP32[6,2] but must have rows of a multiple of 128 elements, at most 10240");
  call.rows = Tensor::empty<float>({6, 10368});
  call.out = Tensor::empty<float>({3, 10368});
  expect_refusal(call, 561002, "at most 10240");
  call.rows = Tensor::empty<B16>({6, 128});
  call.out = Tensor::empty<B16>({3, 128});
  expect_refusal(call, 161002, "must be FP16 or FP32");
  call.rows = Tensor::empty<F16>({6, 10240});
  call.out = Tensor::empty<F16>({3, 10240});
  std::uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  EXPECT_EQ(call.phase_one(&size, &executor), 0) << recent_message();
  aclDestroyAclOpExecutor(executor);
}

}  // namespace
}  // namespace oracle
