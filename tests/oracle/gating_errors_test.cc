// Moeyard. SPDX-License-Identifier: Apache-2.0
// What the first phases of the gating operators refuse.
#include <gtest/gtest.h>

#include "aclnnop/aclnn_moe_gating_top_k.h"
#include "aclnnop/aclnn_moe_gating_top_k_softmax.h"
#include "aclnnop/aclnn_moe_gating_top_k_softmax_v2.h"
#include "aclnnop/aclnn_moe_gating_top_k_v2.h"
#include "support/device.h"
#include "support/refusals.h"
#include "support/rerun.h"

namespace oracle {
namespace {

// 3 tokens, 8 experts, k 2, until something is changed.
struct TopKCall {
  std::optional<Tensor> x = Tensor::empty<float>({3, 8}), bias, keys, table, y = Tensor::empty<float>({3, 2}),
                        ids = Tensor::empty<std::int32_t>({3, 2}), out = Tensor::empty<float>({3, 8});
  std::int64_t k = 2, k_group = 1, groups = 1, mode = 0, renorm = 0, norm = 0;
  bool out_flag = false;

  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    return aclnnMoeGatingTopKV2GetWorkspaceSize(handle(x), handle(bias), handle(keys), handle(table), k,
                                                k_group, groups, mode, renorm, norm, out_flag, 1.0, 1e-20,
                                                handle(y), handle(ids), handle(out), size, executor);
  }
};

template <class T>
Tensor of(std::vector<std::int64_t> shape) {
  return Tensor::empty<T>(std::move(shape));
}

void make_hash(TopKCall& c) { c.keys = of<std::int64_t>({3}), c.table = of<std::int32_t>({10, 2}); }

const Refusal<TopKCall> kTopKTable[] = {
    {"x null", 161001, "x is null", [](auto& c) { c.x.reset(); }},
    {"yOut null", 161001, "yOut is null", [](auto& c) { c.y.reset(); }},
    {"expertIdxOut null", 161001, "expertIdxOut is null", [](auto& c) { c.ids.reset(); }},
    {"outOut null", 161001, "outOut is null", [](auto& c) { c.out.reset(); }},
    {"null before dtype", 161001, "outOut is null",
     [](auto& c) {
       c.x = of<std::int32_t>({3, 8}), c.out.reset();
     }},
    {"x dtype", 161002, "x is INT32[3,8] but must be FP32, FP16 or BF16",
     [](auto& c) {
       c.x = of<std::int32_t>({3, 8});
     }},
    {"bias dtype", 161002, "biasOptional is BF16[8]", [](auto& c) { c.bias = of<B16>({8}); }},
    {"yOut dtype", 161002, "yOut is FP16[3,2]",
     [](auto& c) {
       c.y = of<F16>({3, 2});
     }},
    {"ids dtype", 161002, "expertIdxOut is INT64[3,2] but must be INT32",
     [](auto& c) {
       c.ids = of<std::int64_t>({3, 2});
     }},
    {"inputIds dtype", 161002, "inputIdsOptional is FP32[3]",
     [](auto& c) { make_hash(c), c.keys = of<float>({3}); }},
    {"tid2eid dtype", 161002, "tid2eidOptional is FP32[10,2]",
     [](auto& c) {
       make_hash(c), c.table = of<float>({10, 2});
     }},
    {"outOut dtype", 161002, "outOut is FP16[3,8] but must be FP32",
     [](auto& c) {
       c.out = of<F16>({3, 8});
     }},
    {"dtype of an x without tokens", 161002, "x is INT32[0,8] but must be FP32, FP16 or BF16",
     [](auto& c) {
       c.x = of<std::int32_t>({0, 8}), c.y = of<float>({0, 2}), c.ids = of<std::int32_t>({0, 2});
     }},
    {"dtype of a yOut without elements", 161002, "yOut is FP16[0,2]",
     [](auto& c) {
       c.x = of<float>({0, 8}), c.y = of<F16>({0, 2}), c.ids = of<std::int32_t>({0, 2});
     }},
    {"dtype of an outOut without elements", 161002, "outOut is BF16[0,8] but must be FP32",
     [](auto& c) {
       c.out = of<B16>({0, 8});
     }},
    {"x rank", 561002, "x is FP32[3,2,4] but must have shape (T, E)",
     [](auto& c) {
       c.x = of<float>({3, 2, 4});
     }},
    {"bias rank", 561002, "biasOptional is FP32[1,8]",
     [](auto& c) {
       c.bias = of<float>({1, 8});
     }},
    {"bias length", 561002, "biasOptional is FP32[7] but must have shape (E) with E = 8",
     [](auto& c) { c.bias = of<float>({7}); }},
    {"k 0", 561002, "k is 0 but must be at least 1", [](auto& c) { c.k = 0; }},
    {"k above E", 561002, "k is 9 but must be at most E (E = 8)",
     [](auto& c) {
       c.k = 9, c.y = of<float>({3, 9}), c.ids = of<std::int32_t>({3, 9});
     }},
    {"k above the groups that stay", 561002, "k is 3 but must be at most kGroup * E / groupCount",
     [](auto& c) {
       c.k = 3, c.groups = 4, c.y = of<float>({3, 3}), c.ids = of<std::int32_t>({3, 3});
     }},
    {"groupCount 0", 561002, "groupCount is 0 but must be at least 1", [](auto& c) { c.groups = 0; }},
    {"kGroup 0", 561002, "kGroup is 0 but must be in [1, groupCount]", [](auto& c) { c.k_group = 0; }},
    {"kGroup above groupCount", 561002, "kGroup is 3 but must be in [1, groupCount] (groupCount = 2)",
     [](auto& c) { c.k_group = 3, c.groups = 2; }},
    {"groupCount does not divide", 561002, "groupCount is 3 but must divide E (E = 8)",
     [](auto& c) { c.groups = 3; }},
    {"groupSelectMode", 561002, "groupSelectMode is 2 but must be 0 or 1", [](auto& c) { c.mode = 2; }},
    {"renorm", 561002, "renorm is -1 but must be 0 or 1", [](auto& c) { c.renorm = -1; }},
    {"normType", 561002, "normType is 3 but must be 0, 1 or 2", [](auto& c) { c.norm = 3; }},
    {"two largest of one", 561002, "groupSelectMode is 1 but must be 0 for groups of one expert",
     [](auto& c) { c.mode = 1, c.groups = 8, c.k_group = 2; }},
    {"yOut shape", 561002, "yOut is FP32[3,3] but must have shape (T, k) with T = 3, k = 2",
     [](auto& c) {
       c.y = of<float>({3, 3});
     }},
    {"ids shape", 561002, "expertIdxOut is INT32[2,2]",
     [](auto& c) {
       c.ids = of<std::int32_t>({2, 2});
     }},
    {"outOut rank", 561002, "outOut is FP32[24]", [](auto& c) { c.out = of<float>({24}); }},
    {"outOut shape when it is written", 561002,
     "outOut is FP32[3,7] but must have the shape of x when outFlag is true",
     [](auto& c) {
       c.out_flag = true, c.out = of<float>({3, 7});
     }},
    {"tid2eid columns", 561002, "tid2eidOptional is INT32[10,3]",
     [](auto& c) {
       make_hash(c), c.table = of<std::int32_t>({10, 3});
     }},
    {"inputIds length", 561002, "inputIdsOptional is INT64[4] but must have shape (T) with T = 3",
     [](auto& c) { make_hash(c), c.keys = of<std::int64_t>({4}); }},
    {"hash with large k", 561002, "k is 65 but must be at most 64",
     [](auto& c) {
       c.k = 65, c.x = of<float>({3, 100}), c.y = of<float>({3, 65}), c.ids = of<std::int32_t>({3, 65});
       c.keys = of<std::int64_t>({3}), c.table = of<std::int32_t>({10, 65});
     }},
    {"hash with groups", 561002,
     "kGroup is 1 but must be groupCount with inputIdsOptional and tid2eidOptional",
     [](auto& c) { make_hash(c), c.groups = 2; }},
};

class GatingErrorsTest : public testing::Test {
 protected:
  template <class Call>
  void expect_accepted(Call& call) {
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    EXPECT_EQ(call.phase_one(&size, &executor), 0) << recent_message();
    aclDestroyAclOpExecutor(executor);
  }
  Device device;
};

TEST_F(GatingErrorsTest, TopKRefusesEveryRowOfItsTable) {
  expect_refusals(kTopKTable, [] { return TopKCall(); });
  TopKCall good;
  expect_null_results_refused(good);
  expect_accepted(good);
}

TEST_F(GatingErrorsTest, TopKLooksAtOutOutOnlyWhereItIsWritten) {
  TopKCall call;
  call.out = of<float>({1, 1});
  expect_accepted(call);
}

TEST_F(GatingErrorsTest, TopKTakesGroupsThatDoNotMatterWithTheHashMode) {
  TopKCall call;
  make_hash(call);
  call.k_group = call.groups = 2;
  expect_accepted(call);
}

TEST(GatingProducts, LimitExperts) {
  if (!run_again_with("MOEYARD_SOC", "A2")) return;
  const Device device;
  TopKCall wide;
  wide.x = of<float>({3, 2049});
  expect_refusal(wide, 561002, "x is FP32[3,2049] but must have at most 2048 experts");
  TopKCall padded;  // 65 groups of 31, filled up to 32 each, are 2080
  padded.x = of<float>({3, 65 * 31}), padded.groups = 65;
  expect_refusal(padded, 561002, "groupCount is 65 but must be such that its groups");
  TopKCall softplus;
  softplus.norm = 2;
  expect_refusal(softplus, 561002, "normType is 2 but must be 0 or 1");
}

TEST(GatingProducts, AllowSoftplusOn950) {
  if (!run_again_with("MOEYARD_SOC", "950")) return;
  const Device device;
  TopKCall call;
  call.norm = 2;
  std::uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  EXPECT_EQ(call.phase_one(&size, &executor), 0) << recent_message();
  aclDestroyAclOpExecutor(executor);
}

// Both versions of the softmax operator; what one lacks stays unused.
template <int kVersion>
struct SoftmaxCall {
  std::optional<Tensor> x = Tensor::empty<float>({3, 8}), finished, y = Tensor::empty<float>({3, 2}),
                        ids = Tensor::empty<std::int32_t>({3, 2}),
                        slots = Tensor::empty<std::int32_t>({3, 2}), scores;
  std::int64_t k = 2, renorm = 0;
  bool flag = false;

  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    if constexpr (kVersion == 1)
      return aclnnMoeGatingTopKSoftmaxGetWorkspaceSize(handle(x), handle(finished), k, handle(y), handle(ids),
                                                       handle(slots), size, executor);
    else
      return aclnnMoeGatingTopKSoftmaxV2GetWorkspaceSize(handle(x), handle(finished), k, renorm, flag,
                                                         handle(y), handle(ids), handle(scores), size,
                                                         executor);
  }
};

template <int kVersion>
void expect_common_refusals() {
  using Call = SoftmaxCall<kVersion>;
  const Refusal<Call> table[] = {
      {"x null", 161001, "x is null", [](Call& c) { c.x.reset(); }},
      {"yOut null", 161001, "yOut is null", [](Call& c) { c.y.reset(); }},
      {"expertIdxOut null", 161001, "expertIdxOut is null", [](Call& c) { c.ids.reset(); }},
      {"x dtype", 161002, "x is INT32[3,8]",
       [](Call& c) {
         c.x = of<std::int32_t>({3, 8});
       }},
      {"yOut dtype", 161002, "yOut is BF16[3,2]",
       [](Call& c) {
         c.y = of<B16>({3, 2});
       }},
      {"ids dtype", 161002, "expertIdxOut is INT64[3,2]",
       [](Call& c) {
         c.ids = of<std::int64_t>({3, 2});
       }},
      {"finished dtype", 161002, "finishedOptional is INT32[3] but must be BOOL",
       [](Call& c) { c.finished = of<std::int32_t>({3}); }},
      {"x format", 161002, "x is FP32[3,8] but must not be in format FRACTAL_NZ",
       [](Call& c) { c.x->set_format(ACL_FORMAT_FRACTAL_NZ); }},
      {"x rank 1", 561002, "x is FP32[8]", [](Call& c) { c.x = of<float>({8}); }},
      {"x rank 4", 561002, "x is FP32[1,1,3,8]",
       [](Call& c) {
         c.x = of<float>({1, 1, 3, 8});
       }},
      {"no experts", 561002, "x is FP32[3,0]",
       [](Call& c) {
         c.x = of<float>({3, 0});
       }},
      {"finished shape", 561002, "finishedOptional is BOOL[4]",
       [](Call& c) { c.finished = of<std::uint8_t>({4}); }},
      {"finished rank", 561002, "finishedOptional is BOOL[3,1]",
       [](Call& c) {
         c.finished = of<std::uint8_t>({3, 1});
       }},
      {"yOut rank", 561002, "yOut is FP32[3,1,2]",
       [](Call& c) {
         c.y = of<float>({3, 1, 2});
       }},
      {"yOut rows", 561002, "yOut is FP32[4,2]",
       [](Call& c) {
         c.y = of<float>({4, 2});
       }},
      {"yOut columns", 561002, "yOut is FP32[3,3]",
       [](Call& c) {
         c.y = of<float>({3, 3});
       }},
      {"ids rows", 561002, "expertIdxOut is INT32[4,2]",
       [](Call& c) {
         c.ids = of<std::int32_t>({4, 2});
       }},
      {"ids rank", 561002, "expertIdxOut is INT32[1,3,2]",
       [](Call& c) {
         c.ids = of<std::int32_t>({1, 3, 2});
       }},
      {"k 0", 561002, "k is 0 but must be at least 1", [](Call& c) { c.k = 0; }},
      {"k above E", 561002, "k is 9 but must be at most E",
       [](Call& c) {
         c.k = 9, c.y = of<float>({3, 9}), c.ids = of<std::int32_t>({3, 9}),
         c.slots = of<std::int32_t>({3, 9});
       }},
  };
  expect_refusals(table, [] { return Call(); });
  Call good;
  expect_null_results_refused(good);
}

TEST_F(GatingErrorsTest, SoftmaxRefusesEveryRowOfItsTable) {
  using Call = SoftmaxCall<1>;
  expect_common_refusals<1>();
  const Refusal<Call> table[] = {
      {"rowIdxOut null", 161001, "rowIdxOut is null", [](Call& c) { c.slots.reset(); }},
      {"rowIdxOut dtype", 161002, "rowIdxOut is FP32[3,2]",
       [](Call& c) {
         c.slots = of<float>({3, 2});
       }},
      {"rowIdxOut shape", 561002, "rowIdxOut is INT32[3,1]",
       [](Call& c) {
         c.slots = of<std::int32_t>({3, 1});
       }},
      {"rowIdxOut rank", 561002, "rowIdxOut is INT32[3,1,2]",
       [](Call& c) {
         c.slots = of<std::int32_t>({3, 1, 2});
       }},
      {"no rows", 561002, "x is FP32[0,8] but must have no dimension of 0",
       [](Call& c) {
         c.x = of<float>({0, 8}), c.y = of<float>({0, 2}), c.ids = of<std::int32_t>({0, 2}),
         c.slots = of<std::int32_t>({0, 2});
       }},
  };
  expect_refusals(table, [] { return Call(); });
}

TEST_F(GatingErrorsTest, SoftmaxV2RefusesEveryRowOfItsTable) {
  using Call = SoftmaxCall<2>;
  expect_common_refusals<2>();
  const Refusal<Call> table[] = {
      {"renorm", 561002, "renorm is 2 but must be 0 or 1", [](Call& c) { c.renorm = 2; }},
      {"scores missing", 561002, "softmaxResultOutOptional is null but must be FP32 with the shape of x",
       [](Call& c) { c.flag = true; }},
      {"scores dtype", 561002, "softmaxResultOutOptional is BF16[3,8]",
       [](Call& c) {
         c.flag = true, c.scores = of<B16>({3, 8});
       }},
      {"scores shape", 561002, "softmaxResultOutOptional is FP32[3,7]",
       [](Call& c) {
         c.flag = true, c.scores = of<float>({3, 7});
       }},
  };
  expect_refusals(table, [] { return Call(); });
  Call unused;  // nothing is written there with renorm 1
  unused.renorm = 1, unused.flag = true, unused.scores = of<float>({0});
  expect_accepted(unused);
}

TEST(GatingProducts, LimitTheSoftmaxOn310P) {
  if (!run_again_with("MOEYARD_SOC", "310P")) return;
  const Device device;
  SoftmaxCall<1> wide;
  expect_refusal(wide, 561002, "x is FP32[3,8] but must be FP16 with 2 dimensions");
  SoftmaxCall<1> good;
  good.x = Tensor::of<F16>({3, 16}, std::vector<F16>(48)), good.y = of<F16>({3, 2});
  const int code = run([&](auto* size, auto** executor) { return good.phase_one(size, executor); },
                       aclnnMoeGatingTopKSoftmax, device);
  ASSERT_EQ(code, 0) << recent_message();
  EXPECT_EQ(good.slots->values<std::int32_t>(), std::vector<std::int32_t>(6, 0));
  good.finished = of<std::uint8_t>({3});
  expect_refusal(good, 561002, "finishedOptional is BOOL[3] but must be null");
}

TEST(GatingProducts, LimitTheSoftmaxOnA3) {
  if (!run_again_with("MOEYARD_SOC", "A3")) return;
  const Device device;
  SoftmaxCall<2> call;
  call.k = 1025, call.x = of<float>({1, 1100}), call.y = of<float>({1, 1025}),
  call.ids = of<std::int32_t>({1, 1025});
  expect_refusal(call, 561002, "k is 1025 but must be at most 1024");
}

TEST(GatingProducts, LackTheTopKAndTheSecondSoftmaxOn310P) {
  if (!run_again_with("MOEYARD_SOC", "310P")) return;
  const Device device;
  TopKCall call;
  expect_refusal(call, 561003, "no kernel on this product");
  SoftmaxCall<2> softmax;
  expect_refusal(softmax, 561003, "no kernel on this product");
}

TEST(GatingProducts, LimitTheExpertsOfSoftmaxOn950) {
  if (!run_again_with("MOEYARD_SOC", "950")) return;
  const Device device;
  SoftmaxCall<1> first;
  SoftmaxCall<2> second;
  first.x = of<float>({3, 2049}), second.x = of<float>({3, 2049});
  expect_refusal(first, 561002, "x is FP32[3,2049] but must have at most 2048 experts");
  expect_refusal(second, 561002, "x is FP32[3,2049] but must have at most 2048 experts");
}

}  // namespace
}  // namespace oracle
