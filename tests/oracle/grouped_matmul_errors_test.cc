// Moeyard. SPDX-License-Identifier: Apache-2.0
// What the first phase of aclnnGroupedMatmulV5 (and its forerunners) refuses.
#include <gtest/gtest.h>

#include "aclnnop/aclnn_grouped_matmul.h"
#include "aclnnop/aclnn_grouped_matmul_v2.h"
#include "aclnnop/aclnn_grouped_matmul_v4.h"
#include "aclnnop/aclnn_grouped_matmul_v5.h"
#include "support/device.h"
#include "support/refusals.h"
#include "support/rerun.h"

namespace oracle {
namespace {

// Groups of 2 and 3 rows of BF16, K 4, N 6, until something is changed.
struct Call {
  TensorList x = list_of(Tensor::empty<B16>({5, 4})), weight = list_of(Tensor::empty<B16>({2, 4, 6})), bias,
             scale, offset, antiquant_scale, antiquant_offset, per_token, activation_input, activation_scale,
             activation_offset, out = list_of(Tensor::empty<B16>({5, 6})), feature_out, scale_out;
  std::optional<Tensor> list = Tensor::of<std::int64_t>({2}, {2, 5});
  std::int64_t split = 3, type = 0, list_type = 0, act = 0;
  std::vector<std::int64_t> tuning;

  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    aclIntArray* hints = tuning.empty() ? nullptr : aclCreateIntArray(tuning.data(), tuning.size());
    const int code = aclnnGroupedMatmulV5GetWorkspaceSize(
        x, weight, bias, scale, offset, antiquant_scale, antiquant_offset, per_token, handle(list),
        activation_input, activation_scale, activation_offset, split, type, list_type, act, hints, out,
        feature_out, scale_out, size, executor);
    aclDestroyIntArray(hints);
    return code;
  }
};

template <class T>
TensorList one(std::vector<std::int64_t> shape) {
  return list_of(Tensor::empty<T>(std::move(shape)));
}

TensorList with_a_null_member() {
  aclTensor* none = nullptr;
  TensorList list;
  list.adopt(aclCreateTensorList(&none, 1));
  return list;
}

// A good INT8 call with a BF16 result.
void make_int8(Call& c) {
  c.x = one<std::int8_t>({5, 4}), c.weight = one<std::int8_t>({2, 4, 6}), c.scale = one<float>({2, 6});
}

const Refusal<Call> kTable[] = {
    {"x null", 161001, "x is null", [](Call& c) { c.x = TensorList(); }},
    {"weight null", 161001, "weight is null", [](Call& c) { c.weight = TensorList(); }},
    {"out null", 161001, "out is null", [](Call& c) { c.out = TensorList(); }},
    {"member of x null", 161001, "x is a list of 1: null", [](Call& c) { c.x = with_a_null_member(); }},
    {"member of weight null", 161001, "weight is a list of 1: null",
     [](Call& c) { c.weight = with_a_null_member(); }},
    {"member of out null", 161001, "out is a list of 1: null", [](Call& c) { c.out = with_a_null_member(); }},
    {"null before dtype", 161001, "out is null",
     [](Call& c) {
       c.x = one<std::int64_t>({5, 4}), c.out = TensorList();
     }},
    {"x empty", 161002, "x is a list of 0 but must have a member",
     [](Call& c) { c.x = TensorList(std::vector<Tensor>()); }},
    {"offset", 561002, "offsetOptional",
     [](Call& c) {
       c.offset = one<float>({2, 6});
     }},
    {"antiquant scale", 561002, "not supported yet",
     [](Call& c) {
       c.antiquant_scale = one<B16>({2, 6});
     }},
    {"antiquant offset", 561002, "not supported yet",
     [](Call& c) {
       c.antiquant_offset = one<B16>({2, 6});
     }},
    {"activation input", 561002, "activationInputOptional",
     [](Call& c) {
       c.activation_input = one<B16>({2, 6});
     }},
    {"activation scale", 561002, "activationQuantScaleOptional",
     [](Call& c) { c.activation_scale = one<float>({6}); }},
    {"activation offset", 561002, "activationQuantOffsetOptional",
     [](Call& c) { c.activation_offset = one<float>({6}); }},
    {"feature out", 561002, "activationFeatureOutOptional",
     [](Call& c) {
       c.feature_out = one<B16>({5, 6});
     }},
    {"scale out", 561002, "dynQuantScaleOutOptional", [](Call& c) { c.scale_out = one<float>({5}); }},
    {"x dtype", 161002, "x is INT64[5,4] but must be FP32, FP16, INT8 or BF16",
     [](Call& c) {
       c.x = one<std::int64_t>({5, 4});
     }},
    {"group list dtype", 161002, "groupListOptional is INT32[2] but must be INT64",
     [](Call& c) { c.list = Tensor::empty<std::int32_t>({2}); }},
    {"weight of another dtype", 161002, "data types that go together",
     [](Call& c) {
       c.weight = one<F16>({2, 4, 6});
     }},
    {"out of another dtype", 161002, "data types that go together",
     [](Call& c) {
       c.out = one<float>({5, 6});
     }},
    {"bias of another dtype", 161002, "data types that go together",
     [](Call& c) {
       c.bias = one<F16>({2, 6});
     }},
    {"scale for BF16", 161002, "data types that go together",
     [](Call& c) {
       c.scale = one<float>({2, 6});
     }},
    {"per-token scale for BF16", 161002, "data types that go together",
     [](Call& c) { c.per_token = one<float>({5}); }},
    {"mixed list", 161002, "x is a list of 2: BF16[5,4], FP16[5,4] but must be of one data type",
     [](Call& c) {
       c.x = list_of(Tensor::empty<B16>({5, 4}), Tensor::empty<F16>({5, 4}));
     }},
    {"INT8 without scale", 161002, "data types that go together",
     [](Call& c) { make_int8(c), c.scale = TensorList(); }},
    {"INT8 to FP16 with a BF16 scale", 161002, "data types that go together",
     [](Call& c) {
       make_int8(c), c.scale = one<B16>({2, 6}), c.out = one<F16>({5, 6});
     }},
    {"INT8 to FP16 with a BF16 bias", 161002, "data types that go together",
     [](Call& c) {
       make_int8(c), c.bias = one<B16>({2, 6}), c.out = one<F16>({5, 6});
     }},
    {"INT8 to INT8 with an FP32 scale", 161002, "data types that go together",
     [](Call& c) {
       make_int8(c), c.out = one<std::int8_t>({5, 6});
     }},
    {"INT8 to INT8 with a per-token scale", 161002, "data types that go together",
     [](Call& c) {
       make_int8(c), c.scale = one<std::uint64_t>({2, 6}), c.per_token = one<float>({5}),
                     c.out = one<std::int8_t>({5, 6});
     }},
    {"INT8 to INT32 with a scale", 161002, "data types that go together",
     [](Call& c) {
       make_int8(c), c.out = one<std::int32_t>({5, 6});
     }},
    {"INT8 to FP32", 161002, "data types that go together",
     [](Call& c) {
       make_int8(c), c.out = one<float>({5, 6});
     }},
    {"splitItem", 161002, "splitItem is 4 but must be in [0, 3]", [](Call& c) { c.split = 4; }},
    {"groupType 1", 161002, "groupType is 1 but must be -1, 0 or 2", [](Call& c) { c.type = 1; }},
    {"groupListType", 161002, "groupListType is 3 but must be 0, 1 or 2", [](Call& c) { c.list_type = 3; }},
    {"groupListType 2 for BF16", 161002, "groupListType is 2 but must be 0 or 1 unless x is INT8",
     [](Call& c) { c.list_type = 2; }},
    {"actType", 161002, "actType is 6 but must be 0, 1, 2, 4 or 5", [](Call& c) { c.act = 6; }},
    {"actType 3", 161002, "actType is 3 but must be 0, 1, 2, 4 or 5", [](Call& c) { c.act = 3; }},
    {"actType for BF16", 161002, "actType is 5 but must be 0 unless x is INT8", [](Call& c) { c.act = 5; }},
    {"one output for split 0", 161002, "splitItem is 0 but must fit groupType", [](Call& c) { c.split = 0; }},
    {"two outputs for split 3", 161002, "splitItem is 3 but must fit groupType",
     [](Call& c) {
       c.out = list_of(Tensor::empty<B16>({2, 6}), Tensor::empty<B16>({3, 6}));
     }},
    {"groupType -1 with one output", 161002, "splitItem is 3 but must fit groupType",
     [](Call& c) { c.type = -1; }},
    {"groupType -1 with a list", 161002, "groupListOptional is INT64[2] but must be null",
     [](Call& c) {
       c.type = -1, c.split = 0, c.weight = one<B16>({4, 6});
     }},
    {"INT8 in lists", 161002, "groupType is 0 but must be 0, with one tensor each, for INT8",
     [](Call& c) {
       make_int8(c);
       c.weight = list_of(Tensor::empty<std::int8_t>({4, 6}), Tensor::empty<std::int8_t>({4, 6}));
       c.scale = list_of(Tensor::empty<float>({6}), Tensor::empty<float>({6}));
     }},
    {"no group list", 161002, "groupListOptional is null but must be given", [](Call& c) { c.list.reset(); }},
    {"bias for groupType 2", 161002, "biasOptional",
     [](Call& c) {
       c.type = 2, c.weight = one<B16>({4, 6}), c.bias = one<float>({2, 6}), c.out = one<B16>({2, 5, 6});
     }},
    {"weight of 4 dimensions", 161002, "weight is a list of 1: BF16[1,2,4,6] but must have 2 dimensions each",
     [](Call& c) {
       c.weight = one<B16>({1, 2, 4, 6});
     }},
    {"x of 3 dimensions", 161002, "x is a list of 1: BF16[1,5,4] but must have 2 dimensions each",
     [](Call& c) {
       c.x = one<B16>({1, 5, 4});
     }},
    {"K differs", 161002, "x is a list of 1: BF16[5,3] but must have as many columns as weight has rows",
     [](Call& c) {
       c.x = one<B16>({5, 3});
     }},
    {"N differs between groups", 161002, "must have as many columns in every group",
     [](Call& c) {
       c.weight = list_of(Tensor::empty<B16>({4, 6}), Tensor::empty<B16>({4, 5}));
     }},
    {"out has other rows", 161002, "out is a list of 1: BF16[4,6] but must have a row per row of x",
     [](Call& c) {
       c.out = one<B16>({4, 6});
     }},
    {"out has other columns", 161002, "out is a list of 1: BF16[5,7]",
     [](Call& c) {
       c.out = one<B16>({5, 7});
     }},
    {"bias of other shape", 161002,
     "biasOptional is a list of 1: FP32[6] but must have as many members as weight",
     [](Call& c) { c.bias = one<float>({6}); }},
    {"bias list of other length", 161002, "biasOptional is a list of 2",
     [](Call& c) {
       c.bias = list_of(Tensor::empty<float>({2, 6}), Tensor::empty<float>({2, 6}));
     }},
    {"scale of other shape", 161002, "scaleOptional is a list of 1: FP32[6]",
     [](Call& c) { make_int8(c), c.scale = one<float>({6}); }},
    {"per-token scale of other shape", 161002, "perTokenScaleOptional is a list of 1: FP32[6]",
     [](Call& c) { make_int8(c), c.per_token = one<float>({6}); }},
    {"group list too short", 161002, "groupListOptional is INT64[1] but must have one entry per group",
     [](Call& c) { c.list = Tensor::of<std::int64_t>({1}, {5}); }},
    {"group list of 2 dimensions", 161002, "groupListOptional is INT64[2,2]",
     [](Call& c) {
       c.list = Tensor::empty<std::int64_t>({2, 2});
     }},
    {"pairs of 1 dimension", 161002, "groupListOptional is INT64[2]",
     [](Call& c) { make_int8(c), c.list_type = 2; }},
    {"negative hint", 161002, "tuningConfigOptional",
     [](Call& c) {
       c.tuning = {1, -1};
     }},
    {"hint beyond M", 161002, "tuningConfigOptional", [](Call& c) { c.tuning = {6}; }},
};

class GroupedMatmulErrorsTest : public testing::Test {
 protected:
  Device device;
};

TEST_F(GroupedMatmulErrorsTest, RefusesEveryRowOfTheTable) {
  expect_refusals(kTable, [] { return Call(); });
  Call good;
  expect_null_results_refused(good);
}

TEST_F(GroupedMatmulErrorsTest, AcceptsWhatTheTableIsMadeFrom) {
  std::uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  Call call;
  call.tuning = {5, 0};
  EXPECT_EQ(call.phase_one(&size, &executor), 0) << recent_message();
  aclDestroyAclOpExecutor(executor);
  make_int8(call);
  EXPECT_EQ(call.phase_one(&size, &executor), 0) << recent_message();
  aclDestroyAclOpExecutor(executor);
}

TEST_F(GroupedMatmulErrorsTest, RefusesAHostListThatDoesNotAscend) {
  TensorList x = one<B16>({5, 4}), weight = one<B16>({2, 4, 6}), out = one<B16>({5, 6});
  for (const auto& ends : std::vector<std::vector<std::int64_t>>{{3, 2}, {-1, 5}, {2, 6}, {5}}) {
    aclIntArray* list = aclCreateIntArray(ends.data(), ends.size());
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    EXPECT_EQ(aclnnGroupedMatmulGetWorkspaceSize(x, weight, nullptr, nullptr, nullptr, nullptr, nullptr, list,
                                                 2, out, &size, &executor),
              161002);
    EXPECT_EQ(aclnnGroupedMatmulV2GetWorkspaceSize(x, weight, nullptr, nullptr, nullptr, nullptr, nullptr,
                                                   list, 2, 0, out, &size, &executor),
              161002);
    aclDestroyIntArray(list);
  }
}

TEST(GroupedMatmulProducts, LimitGroupsAndLastDimensions) {
  if (!run_again_with("MOEYARD_SOC", "A2")) return;
  const Device device;
  Call many;
  many.weight = one<B16>({1025, 4, 6}), many.list = Tensor::empty<std::int64_t>({1025});
  expect_refusal(many, 161002, "at most 1024 groups");
  Call wide;
  wide.weight = one<B16>({2, 4, 65536}), wide.out = one<B16>({5, 65536});
  expect_refusal(wide, 161002, "last dimensions below 65536");
}

TEST(GroupedMatmulProducts, KeepTheBiasOfBF16WideExceptOn950) {
  if (!run_again_with("MOEYARD_SOC", "A3")) return;
  const Device device;
  Call call;
  call.bias = one<B16>({2, 6});
  expect_refusal(call, 161002, "data types that go together");
}

TEST(GroupedMatmulProducts, TakeTheBiasOfBF16NarrowOn950) {
  if (!run_again_with("MOEYARD_SOC", "950")) return;
  const Device device;
  Call call;
  call.bias = one<B16>({2, 6});
  std::uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  EXPECT_EQ(call.phase_one(&size, &executor), 0) << recent_message();
  aclDestroyAclOpExecutor(executor);
}

}  // namespace
}  // namespace oracle
