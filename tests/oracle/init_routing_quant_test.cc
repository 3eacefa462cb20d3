// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnMoeInitRoutingQuant, QuantV2, and the quantised modes of V3 and V4: rows are those of the unquantised versions, which
// init_routing_test.cc checks, after the formulas here.
#include <gtest/gtest.h>

#include <cmath>

#include "aclnnop/aclnn_moe_init_routing_quant.h"
#include "aclnnop/aclnn_moe_init_routing_quant_v2.h"
#include "aclnnop/aclnn_moe_init_routing_v3.h"
#include "aclnnop/aclnn_moe_init_routing_v4.h"
#include "oracle/routing_quantise.h"
#include "support/int_array.h"
#include "support/refusals.h"
#include "support/rerun.h"
#include "support/rows.h"

namespace oracle {
namespace {

using Ids = std::vector<std::int32_t>;
using Values = std::vector<std::int64_t>;
using Floats = std::vector<float>;
using Bytes = std::vector<std::uint8_t>;
enum class Op { quant, quant_v2, v3, v4 };

struct Case {
  Op op = Op::quant_v2;
  std::int64_t tokens = 0, topk = 0, hidden = 0, experts = 0, mode = 1;
  Ids ids;
  std::int64_t capacity = 0;  // above 0: pads
  std::int64_t smooth_rows = 0;
  bool int4 = false;  // of quant_v2

  std::int64_t slots() const { return tokens * topk; }
  std::int64_t rows() const { return capacity > 0 ? experts * capacity : slots(); }
  routing::Quantisation how() const {
    return {.mode = int4 ? 13 : mode, .fp16_steps = op == Op::quant || op == Op::quant_v2};
  }
  std::int64_t row_bytes() const { return how().is_packed() ? hidden / 2 : hidden; }
};

template <class T>
struct Call {
  Call(const Case& c, std::mt19937& random, bool views = false)
      : c(c), experts(c.experts), pad(c.capacity > 0 ? 1 : 0) {
    auto layout = [&] { return views ? random_layout(random) : Layout::dense; };
    values = random_rows<T>(random, c.tokens * c.hidden);
    for (std::int64_t i = 0; i < c.smooth_rows * c.hidden; ++i)
      smooth.push_back(0.5f + static_cast<float>(random() % 8) / 4);
    x = Tensor::of<T>({c.tokens, c.hidden}, values, layout());
    ids = Tensor::of<std::int32_t>({c.tokens, c.topk}, c.ids, layout());
    const routing::Quantisation how = c.how();
    out = Tensor(
        how.to(),
        c.capacity > 0 ? Values{c.experts, c.capacity, c.row_bytes()} : Values{c.rows(), c.row_bytes()}, 1,
        how.is_packed() ? Layout::dense : layout());
    if (how.is_packed()) out->split_bytes(how.to());
    out_idx = Tensor::empty<std::int32_t>({c.slots()}, layout());
    Values scale_shape{c.rows()};
    if (how.scale_columns(c.hidden) != 1)
      scale_shape.push_back(std::max<std::int64_t>(how.scale_columns(c.hidden), 1));
    out_scale = Tensor(how.has_byte_scales() ? ACL_FLOAT8_E8M0 : ACL_FLOAT, scale_shape,
                       static_cast<std::size_t>(how.scale_bytes()), layout());
    counts = Tensor::empty<std::int64_t>({c.experts});
    if (c.op == Op::quant) {
      Ids column;
      for (std::int64_t i = 0; i < c.slots(); ++i)
        column.push_back(static_cast<std::int32_t>(i % c.topk * c.tokens + i / c.topk));
      row_idx = Tensor::of<std::int32_t>({c.tokens, c.topk}, column, layout());
      out_experts = Tensor::empty<std::int32_t>({c.slots()}, layout());
    } else if (c.mode == 0 || c.mode == 7) {
      scale = Tensor::of<float>({1}, {how.factor});
      if (c.mode == 0) offset = Tensor::of<float>({1}, {how.offset});
    } else if (c.smooth_rows > 0) {
      scale = Tensor::of<float>({c.smooth_rows, c.hidden}, smooth, layout());
    }
  }
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    if (c.op == Op::quant)
      return aclnnMoeInitRoutingQuantGetWorkspaceSize(handle(x), handle(row_idx), handle(ids), c.tokens,
                                                      c.how().factor, c.how().offset, handle(out),
                                                      handle(out_idx), handle(out_experts), size, executor);
    if (c.op == Op::quant_v2)
      return aclnnMoeInitRoutingQuantV2GetWorkspaceSize(
          handle(x), handle(ids), handle(scale), handle(offset), active, c.capacity, experts, pad, flag,
          before, c.mode, handle(out), handle(out_idx), nullptr, nullptr, handle(out_scale), size, executor);
    if (c.op == Op::v4)
      return aclnnMoeInitRoutingV4GetWorkspaceSize(
          handle(x), handle(ids), handle(scale), handle(offset), nullptr, nullptr, c.capacity, c.experts, pad,
          1, false, c.mode, nullptr, 0, handle(out), handle(out_idx), handle(counts), handle(out_scale),
          nullptr, size, executor);
    return aclnnMoeInitRoutingV3GetWorkspaceSize(
        handle(x), handle(ids), handle(scale), handle(offset), -1, c.capacity, c.experts, pad, 1, false,
        c.mode, nullptr, 0, handle(out), handle(out_idx), handle(counts), handle(out_scale), size, executor);
  }
  int run(const Device& device) {
    return oracle::run([this](auto* size, auto** executor) { return phase_one(size, executor); },
                       c.op == Op::quant      ? aclnnMoeInitRoutingQuant
                       : c.op == Op::quant_v2 ? aclnnMoeInitRoutingQuantV2
                       : c.op == Op::v3       ? aclnnMoeInitRoutingV3
                                              : aclnnMoeInitRoutingV4,
                       device);
  }

  Case c;
  std::int64_t experts, pad;
  std::int64_t active = 0, flag = 0;  // of quant_v2
  bool before = false;
  std::vector<T> values;
  Floats smooth;
  std::optional<Tensor> x, row_idx, ids, scale, offset, out, out_idx, out_experts, counts, out_scale;
};

template <class T>
void matches_reference(const Case& c, std::mt19937& random, const Device& device, bool views = true) {
  Call<T> call(c, random, views);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  Ids order(c.ids.size());
  std::iota(order.begin(), order.end(), 0);
  auto id_of = [&](std::int32_t slot) { return c.ids[static_cast<std::size_t>(slot)]; };
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return id_of(a) < id_of(b); });
  const routing::Quantisation how = c.how();
  const std::int64_t scale_bytes = how.scale_columns(c.hidden) * how.scale_bytes();
  const std::uint8_t filler = c.capacity > 0 ? 0 : Tensor::kSentinel;
  Bytes rows(static_cast<std::size_t>(c.rows() * c.row_bytes()), filler);
  Bytes scales(static_cast<std::size_t>(c.rows() * scale_bytes), filler);
  std::int64_t in_expert = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int32_t slot = order[i], expert = id_of(slot);
    in_expert = i > 0 && id_of(order[i - 1]) == expert ? in_expert + 1 : 0;
    if (c.capacity > 0 && in_expert >= c.capacity) continue;
    const std::int64_t row = c.capacity > 0 ? expert * c.capacity + in_expert : static_cast<std::int64_t>(i);
    Floats y;
    for (std::int64_t h = 0; h < c.hidden; ++h) {
      y.push_back(widen(call.values[static_cast<std::size_t>(slot / c.topk * c.hidden + h)]));
      if (how.takes_rows() && c.smooth_rows > 0)
        y.back() *= call.smooth[static_cast<std::size_t>((c.smooth_rows == 1 ? 0 : expert) * c.hidden + h)];
    }
    const routing::QuantisedRow made = routing::quantise(how, y, std::is_same_v<T, F16>);
    std::copy(made.codes.begin(), made.codes.end(), rows.begin() + row * c.row_bytes());
    std::copy(made.scales.begin(), made.scales.end(), scales.begin() + row * scale_bytes);
  }
  EXPECT_EQ(call.out->template values<std::uint8_t>(), rows);
  if (scale_bytes == 0) scales.assign(static_cast<std::size_t>(c.rows() * 4), Tensor::kSentinel);
  EXPECT_EQ(routing::bytes_of(*call.out_scale, how.scale_bytes()), scales);
  EXPECT_TRUE(call.out->gaps_untouched() && call.out_scale->gaps_untouched());
}

Case random_case(std::mt19937& random) {
  const RoutingShape shape = random_shape(random);
  Case c;
  c.op = static_cast<Op>(below(random, 4));
  c.tokens = shape.tokens, c.topk = shape.topk, c.hidden = shape.hidden, c.experts = shape.experts;
  c.mode = c.op == Op::quant ? 0 : below(random, 2);
  if (c.op == Op::v3 || c.op == Op::v4) c.mode = below(random, 18);
  if (c.mode == 10) c.mode = 1;
  c.int4 = c.op == Op::quant_v2 && c.mode == 1 && below(random, 3) == 0;
  if (c.how().is_packed()) c.hidden += c.hidden % 2;
  for (std::int64_t i = 0; i < c.slots(); ++i)
    c.ids.push_back(static_cast<std::int32_t>(below(random, c.experts)));
  if (c.op != Op::quant && c.op != Op::v4 && c.tokens > 0 && below(random, 2) == 0)
    c.capacity = 1 + below(random, c.tokens);
  if (c.how().takes_rows())
    c.smooth_rows = below(random, 3) == 0 ? 0 : (below(random, 2) == 0 ? 1 : c.experts);
  return c;
}

class InitRoutingQuantTest : public testing::Test {
 protected:
  Case example(Op op) const {
    Case c{op, 3, 2, 4, 4, op == Op::quant ? 0 : 1, {2, 0, 1, 2, 0, 3}};
    return c;
  }
  Device device;
  std::mt19937 random{seed()};
};

TEST_F(InitRoutingQuantTest, GivesTheWorkedExamples) {
  for (const Op op : {Op::quant_v2, Op::v3})
    for (const bool smooth : {false, true}) {
      Case c{op, 1, 1, 4, 1, 1, {0}};
      c.smooth_rows = smooth ? 1 : 0;
      Call<float> call(c, random);
      call.x->set(Floats{.5f, -1, .25f, .1f});
      if (smooth) call.scale->set(Floats{2, 1, 4, 1});
      ASSERT_EQ(call.run(device), 0) << recent_message();
      EXPECT_EQ(call.out->values<std::int8_t>(), smooth ? (std::vector<std::int8_t>{127, -127, 127, 13})
                                                        : (std::vector<std::int8_t>{64, -127, 32, 13}));
      EXPECT_NEAR(call.out_scale->values<float>()[0], 0.007874016f, 1e-9);
    }
  Case four{Op::quant_v2, 1, 1, 4, 1, 1, {0}};
  four.int4 = true;
  Call<float> halves(four, random);
  halves.x->set(Floats{.5f, -1, .25f, .1f});
  ASSERT_EQ(halves.run(device), 0) << recent_message();
  EXPECT_EQ(halves.out->values<std::uint8_t>(), (Bytes{0x94, 0x12}));
  EXPECT_NEAR(halves.out_scale->values<float>()[0], 0.14285715f, 1e-8);
  Case fixed{Op::quant, 1, 1, 2, 1, 0, {0}};
  Call<float> call(fixed, random);
  call.x->set(Floats{3.3f, 6.4f});
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(call.out->values<std::int8_t>(), (std::vector<std::int8_t>{110, 127}));
}

TEST_F(InitRoutingQuantTest, MatchesItsDefinition) {
  SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()));
  for (int round = 0; round < 600 && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    Case c = random_case(random);
    if (c.op == Op::quant) c.experts = std::max<std::int64_t>(c.experts, 1);
    switch (below(random, c.op != Op::quant_v2 && c.mode == 13 ? 2 : 3)) {
      case 0:
        matches_reference<float>(c, random, device);
        break;
      case 1:
        matches_reference<B16>(c, random, device);
        break;
      default:
        matches_reference<F16>(c, random, device);
    }
  }
}

TEST_F(InitRoutingQuantTest, IsTheSameOnOneThreadAndMany) {
  const bool asked = std::getenv("MOEYARD_THREADS") != nullptr;
  Case c{Op::quant_v2, 900, 6, 300, 12};
  for (std::int64_t i = 0; i < c.slots(); ++i) c.ids.push_back(static_cast<std::int32_t>(below(random, 12)));
  c.smooth_rows = 12;
  matches_reference<B16>(c, random, device, false);
  if (asked) return;
  run_again_with("MOEYARD_THREADS", "1");
  run_again_with("MOEYARD_THREADS", "5");
}

// --- What is refused -------------------------------------------------------------------------------------

using Good = Call<float>;
template <class T>
auto make(std::optional<Tensor> Good::*member, Values shape) {
  return [member, shape](Good& c) { c.*member = Tensor::empty<T>(shape); };
}
auto drop(std::optional<Tensor> Good::*member) {
  return [member](Good& c) { (c.*member).reset(); };
}

TEST_F(InitRoutingQuantTest, RefusesWithCodeAndReason) {
  const Refusal<Good> refusals[] = {
      {"x", 161001, "x is null", drop(&Good::x)},
      {"out", 161001, "expandedXOut is null", drop(&Good::out)},
      {"row_idx_null", 161001, "rowIdx is null", drop(&Good::row_idx)},
      {"ids", 161001, "expertIdx is null", drop(&Good::ids)},
      {"out_idx", 161001, "expandedRowIdxOut is null", drop(&Good::out_idx)},
      {"out_experts", 161001, "expandedExpertIdxOut is null", drop(&Good::out_experts)},
      {"ids_dtype", 161002, "expertIdx is INT64[3,2]", make<std::int64_t>(&Good::ids, {3, 2})},
      {"x_rank", 561002, "x is FP32[12]", make<float>(&Good::x, {12})},
      {"out_experts_size", 561002, "expandedExpertIdxOut is INT32[5]",
       make<std::int32_t>(&Good::out_experts, {5})},
      {"x_dtype", 161002, "x is INT8[3,4]", make<std::int8_t>(&Good::x, {3, 4})},
      {"out_dtype", 161002, "expandedXOut is FP32[6,4] but must be INT8", make<float>(&Good::out, {6, 4})},
      {"out_rows", 561002, "expandedXOut is INT8[5,4]", make<std::int8_t>(&Good::out, {5, 4})},
      {"row_idx", 561002, "rowIdx is INT32[6]", make<std::int32_t>(&Good::row_idx, {6})},
  };
  expect_refusals(refusals, [&] { return Good(example(Op::quant), random); });
}

TEST_F(InitRoutingQuantTest, RefusesLaterVersionsWithCodeAndReason) {
  for (const Op op : {Op::quant_v2, Op::v3}) {
    const Refusal<Good> refusals[] = {
        {"x", 161001, "x is null", drop(&Good::x)},
        {"ids", 161001, "expertIdx is null", drop(&Good::ids)},
        {"out", 161001, "expandedXOut is null", drop(&Good::out)},
        {"out_idx", 161001, "expandedRowIdxOut is null", drop(&Good::out_idx)},
        {"x_dtype", 161002, "x is INT32[3,4]", make<std::int32_t>(&Good::x, {3, 4})},
        {"ids_dtype", 161002, "expertIdx is INT64[3,2]", make<std::int64_t>(&Good::ids, {3, 2})},
        {"offset_dtype", 161002, "offsetOptional is INT32[1]", make<std::int32_t>(&Good::offset, {1})},
        {"x_rank", 561002, "x is FP32[12]", make<float>(&Good::x, {12})},
        {"tokens", 561002, "expertIdx is INT32[4,2]", make<std::int32_t>(&Good::ids, {4, 2})},
        {"pad", 561002, "dropPadMode is 2 but must be 0 or 1", [](Good& c) { c.pad = 2; }},
        {"no_capacity", 561002, "expertCapacity is 0 but must be in [1, N] in dropPadMode 1",
         [](Good& c) { c.pad = 1; }},
        {"out_rows", 561002, "expandedXOut is INT8[5,4]", make<std::int8_t>(&Good::out, {5, 4})},
        {"out_idx_size", 561002, "expandedRowIdxOut is INT32[5]", make<std::int32_t>(&Good::out_idx, {5})},
        {"scale_dtype", 161002, "scaleOptional is INT32[1]", make<std::int32_t>(&Good::scale, {1})},
        {"out_dtype", 161002, "expandedXOut is FP32[6,4]", make<float>(&Good::out, {6, 4})},
        {"mode", 561002, "quantMode is 18", [](Good& c) { c.c.mode = 18; }},
        {"scale_rank", 561002, "scaleOptional is FP32[4] but must have one element in quantMode 0",
         make<float>(&Good::scale, {4})},
        {"scale_rows", 561002, "scaleOptional is FP32[3,4]", make<float>(&Good::scale, {3, 4})},
        {"no_scale", 561002, "scaleOptional is null but must have one element in quantMode 0",
         [](Good& c) { c.c.mode = 0; }},
        {"no_offset", 561002, "offsetOptional is null but must have one element in quantMode 0",
         [](Good& c) {
           c.c.mode = 0;
           c.scale = Tensor::empty<float>({1});
         }},
        {"out_scale", 561002, "FP32[5]", make<float>(&Good::out_scale, {5})},
    };
    expect_refusals(refusals, [&] { return Good(example(op), random); });
  }
  const Refusal<Good> counting[] = {
      {"active", 561002, "activeNum is -1 but must be 0 or more", [](Good& c) { c.active = -1; }},
      {"expert_num", 561002, "expertNum is -1 but must be 0 or more", [](Good& c) { c.experts = -1; }},
      {"flag", 561002, "expertTokensCountOrCumsumFlag is 3", [](Good& c) { c.flag = 3; }},
      {"no_experts", 561002, "expertNum is 0 but must be above 0",
       [](Good& c) { c.flag = 1, c.experts = 0; }},
      {"counts", 561002, "expertTokensCountOrCumsumOutOptional is null but must be INT32 with expertNum",
       [](Good& c) { c.flag = 1; }},
      {"no_out_scale", 561002, "dynamicQuantScaleOutOptional is null", drop(&Good::out_scale)},
  };
  expect_refusals(counting, [&] { return Good(example(Op::quant_v2), random); });
  Case padded = example(Op::quant_v2);
  padded.capacity = 1;
  Good uncounted(padded, random);
  uncounted.before = true;
  expect_refusal(uncounted, 561002, "expertTokensBeforeCapacityOutOptional is null");
  Good call(example(Op::v3), random);
  call.x = Tensor::empty<std::int8_t>({3, 4});
  expect_refusal(call, 161002,
                 "x is INT8[3,4] but must be FP32, FP16 or BF16 when quantMode is 0 or above, and not FP16 "
                 "when it is 13");
  Case c = example(Op::v3);
  c.mode = 13;
  Call<F16> half(c, random);
  EXPECT_EQ(half.run(device), 161002);
  c.hidden = 5, c.mode = 9;
  Good odd(c, random);
  odd.out = Tensor(ACL_FLOAT4_E2M1, {6, 5}, 1);
  expect_refusal(odd, 561002, "expandedXOut is FLOAT4_E2M1[6,5] but must have rows of an even number");
  c.hidden = 4, c.mode = 2;
  Good other(c, random);
  other.out = Tensor(ACL_FLOAT8_E4M3FN, {6, 4}, 1);
  expect_refusal(other, 161002, "FLOAT8_E5M2 in 2");
  other = Good(c, random);
  other.scale = Tensor::empty<float>({1});
  expect_refusal(other, 561002, "and be null in other quantModes but -1");
  other = Good(c, random);
  other.out_scale = Tensor::empty<float>({6, 2});
  expect_refusal(other, 161002, "expandedScaleOut is FP32[6,2] but must be E8M0 in quantMode 2");
  other = Good(c, random);
  other.out_scale = Tensor(ACL_FLOAT8_E8M0, {6, 1}, 1);
  expect_refusal(other, 561002, "expandedScaleOut is FLOAT8_E8M0[6,1] but must have R rows");
}

TEST_F(InitRoutingQuantTest, RefusesInt4RowsThatAreNot) {
  Case c = example(Op::quant_v2);
  c.int4 = true;
  Good call(c, random);
  call.c.mode = 0;
  expect_refusal(call, 561002, "quantMode is 0 but must be 1 with INT4 rows");
  c.hidden = 5;
  Good odd(c, random);
  odd.out = Tensor(ACL_INT4, {6, 5}, 1);
  expect_refusal(odd, 561002, "expandedXOut is INT4[6,5] but must have rows of an even number of elements");
}

TEST(InitRoutingQuantProducts, FollowTheA2) {
  if (!run_again_with("MOEYARD_SOC", "A2")) return;
  const Device device;
  std::mt19937 random;
  Good mode(Case{Op::v3, 1, 1, 2, 1, 2, {0}}, random);
  expect_refusal(mode, 561002, "quantMode is 2 but must be -1, 0 or 1");
  Case c{Op::quant_v2, 1, 1, 2, 2, 1, {0}};
  c.int4 = true;
  EXPECT_EQ(Good(c, random).run(device), 0) << recent_message();
  c.smooth_rows = 2;
  Good many(c, random);
  expect_refusal(many, 561002, "scaleOptional is FP32[2,2] but must have one row with INT4 rows");
  c.smooth_rows = 0, c.capacity = 1;
  Good padded(c, random);
  expect_refusal(padded, 561002, "dropPadMode is 1 but must be 0 with INT4 rows");
}

TEST(InitRoutingQuantProducts, FollowThe950) {
  if (!run_again_with("MOEYARD_SOC", "950")) return;
  const Device device;
  std::mt19937 random;
  EXPECT_EQ(Good(Case{Op::quant, 1, 1, 1, 1, 0, {0}}, random).run(device), 561003);
  EXPECT_EQ(Good(Case{Op::quant_v2, 1, 1, 1, 1, 1, {0}}, random).run(device), 0) << recent_message();
  Case c{Op::quant_v2, 1, 1, 2, 1, 1, {0}};
  c.int4 = true;
  EXPECT_EQ(Good(c, random).run(device), 161002);
}

}  // namespace
}  // namespace oracle
