// Moeyard. SPDX-License-Identifier: Apache-2.0
// What aclnnMoeInitRouting, V2 to V4, refuse.
#include <gtest/gtest.h>

#include "oracle/init_routing_calls.h"
#include "support/refusals.h"
#include "support/rerun.h"

namespace oracle::init_routing {
namespace {

using Good = Call<float>;
auto retype(std::optional<Tensor> Good::*member, Values shape) {
  return [member, shape](Good& c) { c.*member = Tensor::empty<std::int64_t>(shape); };
}
auto reshape(std::optional<Tensor> Good::*member, Values shape) {
  return [member, shape](Good& c) { c.*member = Tensor::empty<float>(shape); };
}
auto reshape_ids(std::optional<Tensor> Good::*member, Values shape) {
  return [member, shape](Good& c) { c.*member = Tensor::empty<std::int32_t>(shape); };
}
auto drop(std::optional<Tensor> Good::*member) {
  return [member](Good& c) { (c.*member).reset(); };
}

class InitRoutingRefusalsTest : public testing::Test {
 protected:
  Device device;
  std::mt19937 random{seed()};
};

TEST_F(InitRoutingRefusalsTest, RefusesWithCodeAndReason) {
  const Refusal<Good> refusals[] = {
      {"x", 161001, "x is null", drop(&Good::x)},
      {"row_idx", 161001, "rowIdx is null", drop(&Good::row_idx)},
      {"expert_idx", 161001, "expertIdx is null", drop(&Good::ids)},
      {"out", 161001, "expandedXOut is null", drop(&Good::out)},
      {"out_idx", 161001, "expandedRowIdxOut is null", drop(&Good::out_idx)},
      {"out_experts", 161001, "expandedExpertIdxOut is null", drop(&Good::out_experts)},
      {"x_dtype", 161002, "x is INT64[3,1]", retype(&Good::x, {3, 1})},
      {"ids_dtype", 161002, "expertIdx is INT64[3,2]", retype(&Good::ids, {3, 2})},
      {"row_idx_dtype", 161002, "rowIdx is INT64[3,2]", retype(&Good::row_idx, {3, 2})},
      {"out_dtype", 161002, "expandedXOut is INT64[6,1]", retype(&Good::out, {6, 1})},
      {"out_idx_dtype", 161002, "expandedRowIdxOut is INT64[6]", retype(&Good::out_idx, {6})},
      {"out_experts_dtype", 161002, "expandedExpertIdxOut is INT64[6]", retype(&Good::out_experts, {6})},
      {"row_idx_rank", 561002, "rowIdx is INT32[6]", reshape_ids(&Good::row_idx, {6})},
      {"out_experts_size", 561002, "expandedExpertIdxOut is INT32[5]", reshape_ids(&Good::out_experts, {5})},
      {"x_rank", 561002, "x is FP32[3]", reshape(&Good::x, {3})},
      {"row_idx_shape", 561002, "rowIdx is INT32[2,3]", reshape_ids(&Good::row_idx, {2, 3})},
      {"tokens", 561002, "expertIdx is INT32[4,2]",
       [](Good& c) {
         c.ids = Tensor::empty<std::int32_t>({4, 2});
         c.row_idx = Tensor::empty<std::int32_t>({3, 2});
       }},
      {"active", 561002, "activeNum is -1 but must be 0 or more", [](Good& c) { c.c.active = -1; }},
      {"out_rows", 561002, "expandedXOut is FP32[5,1]", reshape(&Good::out, {5, 1})},
      {"out_idx_size", 561002, "expandedRowIdxOut is INT32[5]", reshape_ids(&Good::out_idx, {5})},
  };
  expect_refusals(refusals, [&] { return Good(example(1), random); });
}

TEST_F(InitRoutingRefusalsTest, RefusesV2WithCodeAndReason) {
  const Refusal<Good> refusals[] = {
      {"x", 161001, "x is null", drop(&Good::x)},
      {"expert_idx", 161001, "expertIdx is null", drop(&Good::ids)},
      {"out", 161001, "expandedXOut is null", drop(&Good::out)},
      {"out_idx", 161001, "expandedRowIdxOut is null", drop(&Good::out_idx)},
      {"x_dtype", 161002, "x is INT64[3,1]", retype(&Good::x, {3, 1})},
      {"ids_dtype", 161002, "expertIdx is FP32[3,2]", reshape(&Good::ids, {3, 2})},
      {"out_dtype", 161002, "expandedXOut is INT64[6,1]", retype(&Good::out, {6, 1})},
      {"out_idx_dtype", 161002, "expandedRowIdxOut is INT64[6]", retype(&Good::out_idx, {6})},
      {"x_rank", 561103, "x is FP32[3,1,1]", reshape(&Good::x, {3, 1, 1})},
      {"out_idx_size", 561103, "expandedRowIdxOut is INT32[5]", reshape_ids(&Good::out_idx, {5})},
      {"counts_rank", 561103, "expertTokensCountOrCumsumOut is INT32[4,1]",
       reshape_ids(&Good::counts, {4, 1})},
      {"ids_rank", 561103, "expertIdx is INT32[3,2,1]", reshape_ids(&Good::ids, {3, 2, 1})},
      {"tokens", 561103, "expertIdx is INT32[4,2]", reshape_ids(&Good::ids, {4, 2})},
      {"active", 561103, "activeNum is -1", [](Good& c) { c.c.active = -1; }},
      {"capacity", 561103, "expertCapacity is -1", [](Good& c) { c.c.capacity = -1; }},
      {"expert_num", 561103, "expertNum is -1", [](Good& c) { c.c.experts = -1; }},
      {"mode", 561103, "dropPadMode is 2", [](Good& c) { c.drop_pad_mode = 2; }},
      {"flag", 561103, "expertTokensCountOrCumsumFlag is 3", [](Good& c) { c.c.count_type = 3; }},
      {"no_capacity", 561103, "expertCapacity is 0 but must be in [1, N] in dropPadMode 1",
       [](Good& c) { c.drop_pad_mode = 1; }},
      {"much_capacity", 561103, "expertCapacity is 4",
       [](Good& c) { c.drop_pad_mode = 1, c.c.capacity = 4; }},
      {"no_experts", 561103, "expertNum is 0 but must be above 0 when", [](Good& c) { c.c.experts = 0; }},
      {"out_rank", 561103, "expandedXOut is FP32[6,1] but must have 3 dimensions in dropPadMode 1",
       [](Good& c) { c.drop_pad_mode = 1, c.c.capacity = 2; }},
      {"out_rows", 561103, "expandedXOut is FP32[5,1]", reshape(&Good::out, {5, 1})},
      {"no_counts", 561103, "expertTokensCountOrCumsumOut is null", drop(&Good::counts)},
      {"counts_dtype", 561103, "expertTokensCountOrCumsumOut is INT64[4]", retype(&Good::counts, {4})},
      {"counts_size", 561103, "expertTokensCountOrCumsumOut is INT32[3]", reshape_ids(&Good::counts, {3})},
  };
  expect_refusals(refusals, [&] {
    Case c = example(2);
    c.count_type = 1;
    return Good(c, random);
  });
  Case c = example(2);
  c.pad = true, c.capacity = 1, c.count_flag = true;
  Good padded(c, random);
  padded.before.reset();
  expect_refusal(padded, 561103,
                 "expertTokensBeforeCapacityOut is null but must be INT32 with expertNum elements");
  padded.before = Tensor::empty<std::int64_t>({4});
  expect_refusal(padded, 561103, "expertTokensBeforeCapacityOut is INT64[4]");
  padded.before = Tensor::empty<std::int32_t>({5});
  expect_refusal(padded, 561103, "expertTokensBeforeCapacityOut is INT32[5]");
  padded.c.experts = 0;
  expect_refusal(padded, 561103, "expertCapacity is 1 but must be in [1, N] in dropPadMode 1, with an");
}

TEST_F(InitRoutingRefusalsTest, RefusesV3WithCodeAndReason) {
  const Refusal<Good> refusals[] = {
      {"counts", 161001, "expertTokensCountOrCumsumOut is null", drop(&Good::counts)},
      {"out_scale", 161001, "expandedScaleOut is null", drop(&Good::out_scale)},
      {"x", 161001, "x is null", drop(&Good::x)},
      {"expert_idx", 161001, "expertIdx is null", drop(&Good::ids)},
      {"out", 161001, "expandedXOut is null", drop(&Good::out)},
      {"out_idx", 161001, "expandedRowIdxOut is null", drop(&Good::out_idx)},
      {"x_dtype", 161002, "x is INT64[3,1]", retype(&Good::x, {3, 1})},
      {"ids_dtype", 161002, "expertIdx is INT64[3,2]", retype(&Good::ids, {3, 2})},
      {"out_dtype", 161002, "expandedXOut is INT64[6,1]", retype(&Good::out, {6, 1})},
      {"out_idx_dtype", 161002, "expandedRowIdxOut is INT64[6]", retype(&Good::out_idx, {6})},
      {"out_scale_dtype", 161002, "expandedScaleOut is INT32[6]", reshape_ids(&Good::out_scale, {6})},
      {"x_rank", 561002, "x is FP32[3]", reshape(&Good::x, {3})},
      {"ids_rank", 561002, "expertIdx is INT32[6]", reshape_ids(&Good::ids, {6})},
      {"tokens", 561002, "expertIdx is INT32[4,2]", reshape_ids(&Good::ids, {4, 2})},
      {"mode", 561002, "dropPadMode is 2 but must be 0 or 1", [](Good& c) { c.drop_pad_mode = 2; }},
      {"no_capacity", 561002, "expertCapacity is 0 but must be in [1, N] in dropPadMode 1",
       [](Good& c) { c.drop_pad_mode = 1; }},
      {"much_capacity", 561002, "expertCapacity is 4 but must be in [1, N] in dropPadMode 1",
       [](Good& c) { c.drop_pad_mode = 1, c.c.capacity = 4; }},
      {"padded_count", 561002, "dropPadMode is 1 but must be 0 unless",
       [](Good& c) { c.drop_pad_mode = 1, c.c.capacity = 1; }},
      {"out_rank", 561002, "expandedXOut is FP32[6,1,1] but must have 3 dimensions in dropPadMode 1, else 2",
       reshape(&Good::out, {6, 1, 1})},
      {"out_rows", 561002, "expandedXOut is FP32[5,1]", reshape(&Good::out, {5, 1})},
      {"out_idx_size", 561002, "expandedRowIdxOut is INT32[5]", reshape_ids(&Good::out_idx, {5})},
      {"range_below", 561002, "activeExpertRangeOptional is {-1, 2}",
       [](Good& c) {
         c.c.range = {-1, 2};
       }},
      {"counts_dtype", 161002, "expertTokensCountOrCumsumOut is INT32[4]", reshape_ids(&Good::counts, {4})},
      {"scale_dtype", 161002, "scaleOptional is INT32[3]", reshape_ids(&Good::scale, {3})},
      {"quant", 561002, "quantMode is 10 but must be in [-1, 9] or [11, 17]",
       [](Good& c) { c.quant_mode = 10; }},
      {"expert_num", 561002, "expertNum is 0 but must be above 0", [](Good& c) { c.c.experts = 0; }},
      {"active", 561002, "activeNum is -2 but must be -1 or more", [](Good& c) { c.c.active = -2; }},
      {"type", 561002, "expertTokensNumType is 3", [](Good& c) { c.c.count_type = 3; }},
      {"idx_type", 561002, "rowIdxType is 2", [](Good& c) { c.c.row_idx_type = 2; }},
      {"range", 561002, "activeExpertRangeOptional is {2, 2}",
       [](Good& c) {
         c.c.range = {2, 2};
       }},
      {"range_end", 561002, "activeExpertRangeOptional is {2, 5}",
       [](Good& c) {
         c.c.range = {2, 5};
       }},
      {"range_size", 561002, "activeExpertRangeOptional is {2}", [](Good& c) { c.c.range = {2}; }},
      {"padded_scatter", 561002, "dropPadMode is 1 but must be 0 unless rowIdxType is 0",
       [](Good& c) { c.drop_pad_mode = 1, c.c.capacity = 1, c.c.row_idx_type = 1; }},
      {"padded_range", 561002, "dropPadMode is 1 but must be 0 unless",
       [](Good& c) {
         c.drop_pad_mode = 1, c.c.capacity = 1, c.c.range = {1, 2};
       }},
      {"counts_size", 561002, "expertTokensCountOrCumsumOut is INT64[3]", retype(&Good::counts, {3})},
      {"scale_size", 561002, "scaleOptional is FP32[4]", reshape(&Good::scale, {4})},
      {"out_scale_size", 561002, "expandedScaleOut is FP32[5]", reshape(&Good::out_scale, {5})},
  };
  auto good_call = [&] {
    Case c = example(3);
    c.count_flag = true, c.scaled = true;
    return Good(c, random);
  };
  expect_refusals(refusals, good_call);
  Good call = good_call();
  expect_null_results_refused(call);
}

TEST_F(InitRoutingRefusalsTest, RefusesV4WithCodeAndReason) {
  const Refusal<Good> refusals[] = {
      {"no_weight", 161002, "expandedTopkWeightOut is FP32[4,1] but must be given exactly when",
       drop(&Good::weight)},
      {"no_out_weight", 161002, "expandedTopkWeightOut is null", drop(&Good::out_weight)},
      {"active_dtype", 161002, "activeNumOptional is INT32[1]", reshape_ids(&Good::active, {1})},
      {"active_shape", 561002, "activeNumOptional is INT64[2]", retype(&Good::active, {2})},
      {"weight_shape", 561002, "topkWeightOptional is FP32[6,1]", reshape(&Good::weight, {6, 1})},
      {"out_weight_shape", 561002, "expandedTopkWeightOut is FP32[5] but must have R elements",
       reshape(&Good::out_weight, {5})},
      {"out_rows", 561002, "expandedXOut is FP32[7,1] but must have at most N*K rows",
       reshape(&Good::out, {7, 1})},
      {"all_rows", 561002, "expandedXOut is FP32[4,1]", drop(&Good::active)},
      {"padded_quant", 561002, "quantMode is 1 but must be -1 in dropPadMode 1",
       [](Good& c) {
         c.quant_mode = 1, c.drop_pad_mode = 1, c.c.capacity = 1;
         c.out = Tensor::empty<std::int8_t>({4, 1, 1});
       }},
      {"quant", 561002, "quantMode is 20", [](Good& c) { c.quant_mode = 20; }},
  };
  expect_refusals(refusals, [&] {
    Case c = example(4);
    c.weighted = true, c.active = c.there.emplace(4);
    return Good(c, random);
  });
}

TEST_F(InitRoutingRefusalsTest, RefusesScalesOfBlocksThatDoNotFit) {
  Case c = example(3);
  c.packed = c.scaled = c.in_blocks = true;
  Call<std::int8_t> call(c, random);
  call.scale = Tensor(ACL_FLOAT8_E8M0, {3, 2, 2}, 1);
  expect_refusal(call, 561002, "scaleOptional is FLOAT8_E8M0[3,2,2]");
  call = Call<std::int8_t>(c, random);
  call.out_scale = Tensor::empty<float>({6});
  expect_refusal(call, 161002, "have the dtype of scaleOptional in -1, and else be FP32");
  Good wide(example(3), random);
  wide.scale = Tensor(ACL_FLOAT8_E8M0, {3, 1, 2}, 1);
  expect_refusal(wide, 161002, "scaleOptional is FLOAT8_E8M0[3,1,2] but must be FP32, or E8M0 with x of FP8");
}

TEST(InitRoutingProducts, FollowThe310P) {
  if (!run_again_with("MOEYARD_SOC", "310P")) return;
  const Device device;
  std::mt19937 random;
  Case c{2, 1, 1, 32, 1, {0}};
  EXPECT_EQ(Good(c, random).run(device), 0) << recent_message();
  EXPECT_EQ(Call<B16>(c, random).run(device), 161002);
  c.hidden = 33;
  EXPECT_EQ(Good(c, random).run(device), 561103);
  c.hidden = 32, c.pad = true, c.capacity = 1;
  EXPECT_EQ(Good(c, random).run(device), 561103);
  for (const int version : {3, 4}) {
    c.version = version;
    EXPECT_EQ(Good(c, random).run(device), 561003);
  }
}

TEST(InitRoutingProducts, LimitExpertsOnDevices) {
  if (!run_again_with("MOEYARD_SOC", "A3")) return;
  const Device device;
  std::mt19937 random;
  Case c{3, 1, 1, 1, 10241, {0}};
  c.count_type = 1;
  Good many(c, random);
  expect_refusal(many, 561002, "activeExpertRangeOptional is null but must end at 10240 at most");
  c.experts = 5121, c.count_type = 2;
  Good pairs(c, random);
  expect_refusal(pairs, 561002, "or 5120 when expertTokensNumType is 2");
}

}  // namespace
}  // namespace oracle::init_routing
