// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnMoeInitRoutingQuant, QuantV2, and the quantised modes of V3: rows are those of the unquantised versions, which
// init_routing_test.cc checks, after the formulas here.
#include <gtest/gtest.h>

#include <cmath>

#include "aclnnop/aclnn_moe_init_routing_quant.h"
#include "aclnnop/aclnn_moe_init_routing_quant_v2.h"
#include "aclnnop/aclnn_moe_init_routing_v3.h"
#include "support/int_array.h"
#include "support/refusals.h"
#include "support/rerun.h"
#include "support/rows.h"

namespace oracle {
namespace {

using Ids = std::vector<std::int32_t>;
using Values = std::vector<std::int64_t>;
using Floats = std::vector<float>;
enum class Op { quant, quant_v2, v3 };

struct Case {
  Op op = Op::quant_v2;
  std::int64_t tokens = 0, topk = 0, hidden = 0, experts = 0, mode = 1;
  Ids ids;
  std::int64_t capacity = 0;  // above 0: pads
  std::int64_t smooth_rows = 0;
  float scale = 33.3f, offset = 0.4f;

  std::int64_t slots() const { return tokens * topk; }
  std::int64_t rows() const { return capacity > 0 ? experts * capacity : slots(); }
};

template <class T>
struct Call {
  Call(const Case& c, std::mt19937& random, bool views = false) : c(c) {
    auto layout = [&] { return views ? random_layout(random) : Layout::dense; };
    values = random_rows<T>(random, c.tokens * c.hidden);
    for (std::int64_t i = 0; i < c.smooth_rows * c.hidden; ++i)
      smooth.push_back(0.5f + static_cast<float>(random() % 8) / 4);
    x = Tensor::of<T>({c.tokens, c.hidden}, values, layout());
    ids = Tensor::of<std::int32_t>({c.tokens, c.topk}, c.ids, layout());
    out = Tensor::empty<std::int8_t>(
        c.capacity > 0 ? Values{c.experts, c.capacity, c.hidden} : Values{c.rows(), c.hidden}, layout());
    out_idx = Tensor::empty<std::int32_t>({c.slots()}, layout());
    out_scale = Tensor::empty<float>({c.rows()}, layout());
    counts = Tensor::empty<std::int64_t>({c.experts});
    if (c.op == Op::quant) {
      Ids column;
      for (std::int64_t i = 0; i < c.slots(); ++i)
        column.push_back(static_cast<std::int32_t>(i % c.topk * c.tokens + i / c.topk));
      row_idx = Tensor::of<std::int32_t>({c.tokens, c.topk}, column, layout());
      out_experts = Tensor::empty<std::int32_t>({c.slots()}, layout());
    } else if (c.mode == 0) {
      scale = Tensor::of<float>({1}, {c.scale});
      offset = Tensor::of<float>({1}, {c.offset});
    } else if (c.smooth_rows > 0) {
      scale = Tensor::of<float>({c.smooth_rows, c.hidden}, smooth, layout());
    }
  }
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    const std::int64_t pad = c.capacity > 0 ? 1 : 0;
    if (c.op == Op::quant)
      return aclnnMoeInitRoutingQuantGetWorkspaceSize(handle(x), handle(row_idx), handle(ids), c.tokens,
                                                      c.scale, c.offset, handle(out), handle(out_idx),
                                                      handle(out_experts), size, executor);
    if (c.op == Op::quant_v2)
      return aclnnMoeInitRoutingQuantV2GetWorkspaceSize(
          handle(x), handle(ids), handle(scale), handle(offset), 0, c.capacity, c.experts, pad, 0, false,
          c.mode, handle(out), handle(out_idx), nullptr, nullptr, handle(out_scale), size, executor);
    return aclnnMoeInitRoutingV3GetWorkspaceSize(
        handle(x), handle(ids), handle(scale), handle(offset), -1, c.capacity, c.experts, pad, 1, false,
        c.mode, nullptr, 0, handle(out), handle(out_idx), handle(counts), handle(out_scale), size, executor);
  }
  int run(const Device& device) {
    return oracle::run([this](auto* size, auto** executor) { return phase_one(size, executor); },
                       c.op == Op::quant      ? aclnnMoeInitRoutingQuant
                       : c.op == Op::quant_v2 ? aclnnMoeInitRoutingQuantV2
                                              : aclnnMoeInitRoutingV3,
                       device);
  }

  Case c;
  std::vector<T> values;
  Floats smooth;
  std::optional<Tensor> x, row_idx, ids, scale, offset, out, out_idx, out_experts, counts, out_scale;
};

float fp16(float value) { return widen(F16(value)); }

std::int8_t to_int8(float value) {
  return static_cast<std::int8_t>(std::fmin(127.0f, std::fmax(-128.0f, std::nearbyint(value))));
}

template <class T>
void matches_reference(const Case& c, std::mt19937& random, const Device& device, bool views = true) {
  Call<T> call(c, random, views);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  Ids order(c.ids.size());
  std::iota(order.begin(), order.end(), 0);
  auto id_of = [&](std::int32_t slot) { return c.ids[static_cast<std::size_t>(slot)]; };
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return id_of(a) < id_of(b); });
  std::vector<std::int8_t> rows(static_cast<std::size_t>(c.rows() * c.hidden), 0);
  Floats scales(static_cast<std::size_t>(c.rows()), 0.0f);
  std::int64_t in_expert = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int32_t slot = order[i], expert = id_of(slot);
    in_expert = i > 0 && id_of(order[i - 1]) == expert ? in_expert + 1 : 0;
    if (c.capacity > 0 && in_expert >= c.capacity) continue;
    const std::int64_t row = c.capacity > 0 ? expert * c.capacity + in_expert : static_cast<std::int64_t>(i);
    Floats y;
    float most = 0;
    for (std::int64_t h = 0; h < c.hidden; ++h) {
      float value = widen(call.values[static_cast<std::size_t>(slot / c.topk * c.hidden + h)]);
      if (c.mode == 1 && c.smooth_rows > 0)
        value *= call.smooth[static_cast<std::size_t>((c.smooth_rows == 1 ? 0 : expert) * c.hidden + h)];
      y.push_back(value);
      most = std::fmax(most, std::fabs(value));
    }
    const float s = most / 127.0f;
    if (c.mode == 1) scales[static_cast<std::size_t>(row)] = s;
    for (std::int64_t h = 0; h < c.hidden; ++h) {
      const float value = y[static_cast<std::size_t>(h)];
      float q = value * c.scale;
      q = q + c.offset;
      if (c.op != Op::v3) q = fp16(fp16(fp16(value) * fp16(c.scale)) + fp16(c.offset));
      if (c.mode == 1) q = s > 0 ? value / s : 0;
      rows[static_cast<std::size_t>(row * c.hidden + h)] = to_int8(q);
    }
  }
  EXPECT_EQ(call.out->template values<std::int8_t>(), rows);
  if (c.mode == 0) scales.assign(scales.size(), sentinel<float>());
  EXPECT_EQ(bits(call.out_scale->template values<float>()), bits(scales));
  EXPECT_TRUE(call.out->gaps_untouched() && call.out_scale->gaps_untouched());
}

Case random_case(std::mt19937& random) {
  const RoutingShape shape = random_shape(random);
  Case c;
  c.op = static_cast<Op>(below(random, 3));
  c.tokens = shape.tokens, c.topk = shape.topk, c.hidden = shape.hidden, c.experts = shape.experts;
  c.mode = c.op == Op::quant ? 0 : below(random, 2);
  for (std::int64_t i = 0; i < c.slots(); ++i)
    c.ids.push_back(static_cast<std::int32_t>(below(random, c.experts)));
  if (c.op != Op::quant && c.tokens > 0 && below(random, 2) == 0) c.capacity = 1 + below(random, c.tokens);
  if (c.mode == 1) c.smooth_rows = below(random, 3) == 0 ? 0 : (below(random, 2) == 0 ? 1 : c.experts);
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
  Case fixed{Op::quant, 1, 1, 2, 1, 0, {0}};
  Call<float> call(fixed, random);
  call.x->set(Floats{3.3f, 6.4f});
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(call.out->values<std::int8_t>(), (std::vector<std::int8_t>{110, 127}));
}

TEST_F(InitRoutingQuantTest, MatchesItsDefinition) {
  SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()));
  for (int round = 0; round < 300 && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    Case c = random_case(random);
    if (c.op == Op::quant) c.experts = std::max<std::int64_t>(c.experts, 1);
    switch (below(random, 3)) {
      case 0:
        matches_reference<float>(c, random, device);
        break;
      case 1:
        matches_reference<F16>(c, random, device);
        break;
      default:
        matches_reference<B16>(c, random, device);
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
        {"scale_dtype", 161002, "scaleOptional is INT32[1]", make<std::int32_t>(&Good::scale, {1})},
        {"out_dtype", 161002, "expandedXOut is FP32[6,4]", make<float>(&Good::out, {6, 4})},
        {"mode", 561002, "quantMode is 4", [](Good& c) { c.c.mode = 4; }},
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
  Good call(example(Op::v3), random);
  call.x = Tensor::empty<std::int8_t>({3, 4});
  expect_refusal(call, 161002, "x is INT8[3,4] but must be FP32, FP16 or BF16 when quantMode is 0 or 1");
}

TEST(InitRoutingQuantProducts, FollowThe950) {
  if (!run_again_with("MOEYARD_SOC", "950")) return;
  const Device device;
  std::mt19937 random;
  EXPECT_EQ(Good(Case{Op::quant, 1, 1, 1, 1, 0, {0}}, random).run(device), 561003);
  EXPECT_EQ(Good(Case{Op::quant_v2, 1, 1, 1, 1, 1, {0}}, random).run(device), 0) << recent_message();
}

}  // namespace
}  // namespace oracle
