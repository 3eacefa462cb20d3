// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnMoeFinalizeRouting to V4.
#include "aclnnop/aclnn_moe_finalize_routing.h"

#include <gtest/gtest.h>

#include <cmath>

#include "aclnnop/aclnn_moe_finalize_routing_v2.h"
#include "aclnnop/aclnn_moe_finalize_routing_v3.h"
#include "aclnnop/aclnn_moe_finalize_routing_v4.h"
#include "support/int_array.h"
#include "support/refusals.h"
#include "support/rerun.h"
#include "support/rows.h"

namespace oracle {
namespace {

using Ids = std::vector<std::int32_t>;
using Values = std::vector<std::int64_t>;
using Floats = std::vector<float>;

struct Case {
  int version = 2;
  std::int64_t tokens = 0, topk = 0, hidden = 0, experts = 0, rows = 0;
  std::int64_t mode = 2;
  Ids indices, expert_idx;  // slots in token order
  bool x1 = false, x2 = false, biased = false, weighted = false, special = false;
  Values zero, copy, constant;  // empty: none

  std::int64_t slots() const { return tokens * topk; }
  bool pads() const { return mode == 1 || mode == 3; }
  // The place of a slot in expandedRowIdx.
  std::int64_t place(std::int64_t t, std::int64_t j) const {
    return mode < 2 ? j * tokens + t : t * topk + j;
  }
};

bool is_in(const Values& range, std::int64_t expert) {
  return !range.empty() && range[0] <= expert && expert < range[1];
}

template <class T, class P>
struct Call {
  Call(const Case& c, std::mt19937& random, bool views = false) : c(c), mode(c.mode) {
    auto layout = [&] { return views ? random_layout(random) : Layout::dense; };
    auto make = [&](std::int64_t rows) { return random_rows<T>(random, rows * c.hidden); };
    const std::int64_t constants = c.constant.empty() ? 1 : c.constant[1] - c.constant[0];
    rows_v = make(c.rows), x1_v = make(c.tokens), x2_v = make(c.tokens), bias_v = make(c.experts),
    x_v = make(c.tokens);
    alpha1_v = make(constants), alpha2_v = make(constants), v_v = make(constants);
    scales_v = random_rows<P>(random, c.slots());
    Ids placed(static_cast<std::size_t>(c.slots()));
    for (std::int64_t t = 0; t < c.tokens; ++t)
      for (std::int64_t j = 0; j < c.topk; ++j)
        placed[static_cast<std::size_t>(c.place(t, j))] = c.indices[static_cast<std::size_t>(t * c.topk + j)];
    Values rows_shape{c.rows, c.hidden};
    if (c.pads()) rows_shape = {c.experts, c.rows / std::max<std::int64_t>(c.experts, 1), c.hidden};
    rows = Tensor::of<T>(rows_shape, rows_v, layout());
    row_idx = Tensor::of<std::int32_t>({c.slots()}, placed, layout());
    out = Tensor::empty<T>({c.tokens, c.hidden}, layout());
    if (c.x1) x1 = Tensor::of<T>({c.tokens, c.hidden}, x1_v, layout());
    if (c.x2) x2 = Tensor::of<T>({c.tokens, c.hidden}, x2_v, layout());
    if (c.biased) bias = Tensor::of<T>({c.experts, c.hidden}, bias_v, layout());
    if (c.weighted) scales = Tensor::of<P>({c.tokens, c.topk}, scales_v, layout());
    if (c.biased || c.special)
      expert_idx = Tensor::of<std::int32_t>({c.tokens, c.topk}, c.expert_idx, layout());
    if (!c.special) return;
    x = Tensor::of<T>({c.tokens, c.hidden}, x_v, layout());
    alpha1 = Tensor::of<T>({constants, c.hidden}, alpha1_v, layout());
    alpha2 = Tensor::of<T>({constants, c.hidden}, alpha2_v, layout());
    v = Tensor::of<T>({constants, c.hidden}, v_v, layout());
  }
  static IntArray array(const Values& range) {
    return IntArray(range.empty() ? std::optional<Values>() : std::optional<Values>(range));
  }
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    const IntArray zero = array(c.zero), copy = array(c.copy), constant = array(c.constant);
    switch (c.version) {
      case 1:
        return aclnnMoeFinalizeRoutingGetWorkspaceSize(handle(rows), handle(x1), handle(x2), handle(bias),
                                                       handle(scales), handle(row_idx), handle(expert_idx),
                                                       handle(out), size, executor);
      case 2:
        return aclnnMoeFinalizeRoutingV2GetWorkspaceSize(
            handle(rows), handle(row_idx), handle(x1), handle(x2), handle(bias), handle(scales),
            handle(expert_idx), mode, handle(out), size, executor);
      case 3:
        return aclnnMoeFinalizeRoutingV3GetWorkspaceSize(
            handle(rows), handle(row_idx), handle(x1), handle(x2), handle(bias), handle(scales),
            handle(expert_idx), handle(x), handle(alpha1), handle(alpha2), handle(v), mode, zero, copy,
            constant, handle(out), size, executor);
      default:
        return aclnnMoeFinalizeRoutingV4GetWorkspaceSize(
            handle(rows), handle(row_idx), handle(x1), handle(x2), handle(bias), handle(scales),
            handle(expert_idx), handle(x), handle(alpha1), handle(alpha2), handle(v), mode, zero, copy,
            constant, k ? *k : c.topk, handle(out), size, executor);
    }
  }
  int run(const Device& device) {
    constexpr PhaseTwo kPhaseTwo[] = {aclnnMoeFinalizeRouting, aclnnMoeFinalizeRoutingV2,
                                      aclnnMoeFinalizeRoutingV3, aclnnMoeFinalizeRoutingV4};
    return oracle::run([this](auto* size, auto** executor) { return phase_one(size, executor); },
                       kPhaseTwo[c.version - 1], device);
  }

  Case c;
  std::int64_t mode;
  std::optional<std::int64_t> k;
  std::vector<T> rows_v, x1_v, x2_v, bias_v, x_v, alpha1_v, alpha2_v, v_v;
  std::vector<P> scales_v;
  std::optional<Tensor> rows, row_idx, x1, x2, bias, scales, expert_idx, x, alpha1, alpha2, v, out;
};

// The definition, element by element.
template <class T, class P>
std::vector<T> reference(const Call<T, P>& call) {
  const Case& c = call.c;
  std::vector<T> out;
  for (std::int64_t t = 0; t < c.tokens; ++t)
    for (std::int64_t h = 0; h < c.hidden; ++h) {
      auto of = [&](const std::vector<T>& values, std::int64_t row) {
        return widen(values[static_cast<std::size_t>(row * c.hidden + h)]);
      };
      float sum = 0;
      if (c.x1) sum += of(call.x1_v, t);
      if (c.x2) sum += of(call.x2_v, t);
      T copied = T(0.0f);
      for (std::int64_t j = 0; j < c.topk; ++j) {
        const auto slot = static_cast<std::size_t>(t * c.topk + j);
        const std::int64_t expert = c.expert_idx.empty() ? -1 : c.expert_idx[slot], row = c.indices[slot];
        if (c.biased && (expert < 0 || expert >= c.experts)) continue;
        float value = 0;
        if (c.special && is_in(c.zero, expert)) continue;
        if (c.special && is_in(c.copy, expert)) {
          value = of(call.x_v, t);
        } else if (c.special && is_in(c.constant, expert)) {
          const std::int64_t constant = expert - c.constant[0];
          const float scaled = of(call.x_v, t) * of(call.alpha1_v, constant);
          const float offset = of(call.v_v, constant) * of(call.alpha2_v, constant);
          value = scaled + offset;
        } else if (row < 0 || row >= c.rows) {
          continue;
        } else {
          value = of(call.rows_v, row);
          copied = call.rows_v[static_cast<std::size_t>(row * c.hidden + h)];
        }
        if (c.biased) value += of(call.bias_v, expert);
        const float product = value * (c.weighted ? widen(call.scales_v[slot]) : 1.0f);
        sum += product;
      }
      const bool copies = c.topk == 1 && !c.weighted && !c.x1 && !c.biased && !c.special;
      out.push_back(copies ? copied : T(sum));
    }
  return out;
}

template <class T, class P>
void matches_reference(const Case& c, std::mt19937& random, const Device& device, bool views = true) {
  Call<T, P> call(c, random, views);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(bits(call.out->template values<T>()), bits(reference(call)));
  EXPECT_TRUE(call.out->gaps_untouched());
}

Case random_case(std::mt19937& random) {
  const RoutingShape shape = random_shape(random);
  Case c;
  auto maybe = [&] { return below(random, 2) == 0; };
  c.version = 1 + static_cast<int>(below(random, 4));
  c.tokens = shape.tokens, c.topk = shape.topk, c.hidden = shape.hidden, c.experts = shape.experts + 6;
  c.weighted = c.version == 1 || maybe();
  if (!c.weighted && c.version < 4) c.topk = 1;
  c.mode = c.version == 1 ? 0 : below(random, 4);
  c.rows = c.pads() ? c.experts * (1 + below(random, 4))
                    : (c.version == 1 ? c.slots() : below(random, c.slots() + 1));
  c.x1 = c.version == 1 || maybe();
  c.x2 = c.x1 && maybe();
  c.biased = c.version == 1 || maybe();
  c.special = c.version >= 3 && maybe();
  if (c.special) {
    const std::int64_t first = shape.experts;
    if (maybe()) c.zero = {first, first + 1};
    if (maybe()) c.copy = {first + 1, first + 3};
    if (maybe()) c.constant = {first + 3, first + 6};
  }
  for (std::int64_t i = 0; i < c.slots(); ++i) {
    c.indices.push_back(static_cast<std::int32_t>(below(random, c.rows + 4) - 2));
    c.expert_idx.push_back(static_cast<std::int32_t>(below(random, c.experts + 2) - 1));
  }
  return c;
}

class FinalizeRoutingTest : public testing::Test {
 protected:
  Case example(int version, std::int64_t mode) const {
    Case c{version, 3, 2, 1, 4, 6, mode};
    c.indices = {3, 0, 2, 4, 1, 5}, c.expert_idx = {2, 0, 1, 2, 0, 3};
    if (c.pads()) c.rows = 4, c.indices = {2, 0, 1, -1, -1, 3};
    c.x1 = c.biased = c.weighted = true;
    return c;
  }
  Call<float, float> example_call(const Case& c) {
    Call<float, float> call(c, random);
    Floats rows(static_cast<std::size_t>(c.rows));
    std::iota(rows.begin(), rows.end(), 1.0f);
    call.rows->set(rows);
    call.x1->set(Floats{10, 20, 30});
    call.scales->set(Floats{.5f, .5f, 1, 2, .25f, .75f});
    call.bias->set(Floats{.1f, .2f, .3f, .4f});
    return call;
  }
  Device device;
  std::mt19937 random{seed()};
};

TEST_F(FinalizeRoutingTest, GivesTheWorkedExamples) {
  for (const auto& [version, mode] : {std::pair{1, 0}, {2, 0}, {2, 2}, {3, 2}, {4, 2}, {2, 3}, {4, 1}}) {
    Case c = example(version, mode);
    auto call = example_call(c);
    ASSERT_EQ(call.run(device), 0) << recent_message();
    const Floats want = c.pads() ? Floats{12.2f, 22.2f, 33.3f} : Floats{12.7f, 33.8f, 35.325f};
    const Floats have = call.out->values<float>();
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(have[i], want[i], 1e-5f * want[i]);
  }
}

TEST_F(FinalizeRoutingTest, GivesTheWorkedExampleOfSpecialExperts) {
  Case c{3, 2, 2, 1, 8, 4, 2, {0, 1, 2, 3}, {0, 5, 4, 7}};
  c.weighted = c.special = true;
  c.zero = {4, 5}, c.copy = {5, 6}, c.constant = {6, 8};
  Call<float, float> call(c, random);
  call.rows->set(Floats{1, 2, 3, 4});
  call.x->set(Floats{7, 8});
  call.scales->set(Floats{.5f, .5f, 1, 2});
  call.alpha1->set(Floats{2, 3});
  call.alpha2->set(Floats{.5f, 1});
  call.v->set(Floats{4, 6});
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(call.out->values<float>(), (Floats{4, 60}));
}

TEST_F(FinalizeRoutingTest, MatchesItsDefinition) {
  SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()));
  for (int round = 0; round < 500 && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Case c = random_case(random);
    switch (below(random, c.version == 1 ? 4 : 6)) {
      case 0:
        matches_reference<float, float>(c, random, device);
        break;
      case 4:
        matches_reference<float, B16>(c, random, device);
        break;
      case 5:
        matches_reference<F16, float>(c, random, device);
        break;
      case 1:
        matches_reference<F16, F16>(c, random, device);
        break;
      case 2:
        matches_reference<B16, B16>(c, random, device);
        break;
      default:
        matches_reference<B16, float>(c, random, device);
    }
  }
}

TEST_F(FinalizeRoutingTest, KeepsEveryBitOfOneRowPerToken) {
  Case c{2, 20, 1, 5, 1, 20, 2};
  for (std::int32_t i = 0; i < 20; ++i) c.indices.push_back(19 - i);
  Call<F16, F16> call(c, random);
  call.rows_v = random_bits<F16>(random, 100);
  call.rows->set(call.rows_v);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(bits(call.out->values<F16>()), bits(reference(call)));
}

TEST_F(FinalizeRoutingTest, IsTheSameOnOneThreadAndMany) {
  const bool asked = std::getenv("MOEYARD_THREADS") != nullptr;
  Case c{4, 900, 6, 250, 32, 5400, 2};
  c.x1 = c.x2 = c.biased = c.weighted = c.special = true;
  c.zero = {29, 30}, c.copy = {30, 31}, c.constant = {31, 32};
  for (std::int64_t i = 0; i < c.slots(); ++i) {
    c.indices.push_back(static_cast<std::int32_t>(below(random, c.rows)));
    c.expert_idx.push_back(static_cast<std::int32_t>(below(random, 32)));
  }
  matches_reference<B16, float>(c, random, device, false);
  if (asked) return;
  run_again_with("MOEYARD_THREADS", "1");
  run_again_with("MOEYARD_THREADS", "5");
}

// --- What is refused -------------------------------------------------------------------------------------

using Good = Call<float, float>;
template <class T>
auto make(std::optional<Tensor> Good::*member, Values shape) {
  return [member, shape](Good& c) { c.*member = Tensor::empty<T>(shape); };
}
auto drop(std::optional<Tensor> Good::*member) {
  return [member](Good& c) { (c.*member).reset(); };
}

TEST_F(FinalizeRoutingTest, RefusesWithCodeAndReason) {
  const Refusal<Good> refusals[] = {
      {"rows", 161001, "expandedX is null", drop(&Good::rows)},
      {"x1", 161001, "x1 is null", drop(&Good::x1)},
      {"bias", 161001, "bias is null", drop(&Good::bias)},
      {"scales", 161001, "scales is null", drop(&Good::scales)},
      {"row_idx", 161001, "expandedRowIdx is null", drop(&Good::row_idx)},
      {"expert_idx", 161001, "expandedExpertIdx is null", drop(&Good::expert_idx)},
      {"out", 161001, "out is null", drop(&Good::out)},
      {"x1_dtype", 161002, "x1 is BF16[3,1]", make<B16>(&Good::x1, {3, 1})},
      {"scales_dtype", 161002, "scales is BF16[3,2]", make<B16>(&Good::scales, {3, 2})},
      {"rows_dtype", 161002, "expandedX is INT8[6,1]", make<std::int8_t>(&Good::rows, {6, 1})},
      {"x2_dtype", 161002, "x2Optional is BF16[3,1]", make<B16>(&Good::x2, {3, 1})},
      {"bias_dtype", 161002, "bias is BF16[4,1]", make<B16>(&Good::bias, {4, 1})},
      {"row_idx_dtype", 161002, "expandedRowIdx is INT64[6]", make<std::int64_t>(&Good::row_idx, {6})},
      {"expert_idx_dtype", 161002, "expandedExpertIdx is INT64[3,2]",
       make<std::int64_t>(&Good::expert_idx, {3, 2})},
      {"out_dtype", 161002, "out is BF16[3,1]", make<B16>(&Good::out, {3, 1})},
      {"x1_shape", 161002, "x1 is FP32[2,1]", make<float>(&Good::x1, {2, 1})},
      {"x2_shape", 161002, "x2Optional is FP32[3,2]", make<float>(&Good::x2, {3, 2})},
      {"bias_shape", 161002, "bias is FP32[4,2]", make<float>(&Good::bias, {4, 2})},
      {"row_idx_rank", 161002, "expandedRowIdx is INT32[3,2]", make<std::int32_t>(&Good::row_idx, {3, 2})},
      {"expert_idx_shape", 161002, "expandedExpertIdx is INT32[3,3]",
       make<std::int32_t>(&Good::expert_idx, {3, 3})},
      {"rows_shape", 161002, "expandedX is FP32[5,1]", make<float>(&Good::rows, {5, 1})},
      {"few_experts", 161002, "bias is FP32[1,1] but must have at least K experts (K = 2)",
       make<float>(&Good::bias, {1, 1})},
      {"out_shape", 161002, "out is FP32[2,1]", make<float>(&Good::out, {2, 1})},
  };
  expect_refusals(refusals, [&] { return example_call(example(1, 0)); });
  Good call = example_call(example(1, 0));
  expect_null_results_refused(call);
}

TEST_F(FinalizeRoutingTest, RefusesLaterVersionsWithCodeAndReason) {
  for (int version = 2; version <= 4; ++version) {
    const int code = version == 2 ? 561103 : 561002;
    const Refusal<Good> refusals[] = {
        {"rows", 161001, "expandedX is null", drop(&Good::rows)},
        {"row_idx", 161001, "expandedRowIdx is null", drop(&Good::row_idx)},
        {"out", 161001, "out is null", drop(&Good::out)},
        {"rows_dtype", 161002, "expandedX is INT8[6,1]", make<std::int8_t>(&Good::rows, {6, 1})},
        {"idx_dtype", 161002, "expandedRowIdx is INT64[6]", make<std::int64_t>(&Good::row_idx, {6})},
        {"scales_dtype", 161002, "scalesOptional is INT32[3,2]", make<std::int32_t>(&Good::scales, {3, 2})},
        {"x1_dtype", 161002, "x1Optional is BF16[3,1]", make<B16>(&Good::x1, {3, 1})},
        {"x2_dtype", 161002, "x2Optional is BF16[3,1]", make<B16>(&Good::x2, {3, 1})},
        {"bias_dtype", 161002, "biasOptional is BF16[4,1]", make<B16>(&Good::bias, {4, 1})},
        {"experts_dtype", 161002, "expertIdxOptional is INT64[3,2]",
         make<std::int64_t>(&Good::expert_idx, {3, 2})},
        {"out_dtype", 161002, "out is BF16[3,1]", make<B16>(&Good::out, {3, 1})},
        {"x2_rank", 161002, "x2Optional is FP32[3]", make<float>(&Good::x2, {3})},
        {"bias_rank", 161002, "biasOptional is FP32[4]", make<float>(&Good::bias, {4})},
        {"experts_rank", 161002, "expertIdxOptional is INT32[6]", make<std::int32_t>(&Good::expert_idx, {6})},
        {"out_rank", 161002, "out is FP32[3]", make<float>(&Good::out, {3})},
        {"format", 161002, "format FRACTAL_NZ", [](Good& c) { c.bias->set_format(ACL_FORMAT_FRACTAL_NZ); }},
        {"rows_rank", 161002,
         "expandedX is FP32[6,1,1] but must have 3 dimensions in dropPadMode 1 and 3, else 2",
         make<float>(&Good::rows, {6, 1, 1})},
        {"padded_rank", 161002, "expandedX is FP32[6,1]", [](Good& c) { c.mode = 3; }},
        {"idx_rank", 161002, "expandedRowIdx is INT32[3,2]", make<std::int32_t>(&Good::row_idx, {3, 2})},
        {"x1_rank", 161002, "x1Optional is FP32[3]", make<float>(&Good::x1, {3})},
        {"scales_rank", 161002, "scalesOptional is FP32[6]", make<float>(&Good::scales, {6})},
        {"mode", code, "dropPadMode is 4 but must be 0, 1, 2 or 3", [](Good& c) { c.mode = 4; }},
        {"x2_alone", code, "x2Optional is FP32[3,1] but must be null unless x1Optional is given",
         [](Good& c) {
           c.x1.reset();
           c.x2 = Tensor::empty<float>({3, 1});
         }},
        {"bias_alone", code, "biasOptional is FP32[4,1] but must be null unless", drop(&Good::expert_idx)},
        {"few_experts", code, "biasOptional is FP32[1,1] but must have at least K experts",
         make<float>(&Good::bias, {1, 1})},
        {"slots", code, "expandedRowIdx is INT32[7] but must have K slots for each token",
         make<std::int32_t>(&Good::row_idx, {7})},
        {"x1_shape", code, "x1Optional is FP32[3,2]", make<float>(&Good::x1, {3, 2})},
        {"x2_shape", code, "x2Optional is FP32[3,2]", make<float>(&Good::x2, {3, 2})},
        {"bias_shape", code, "biasOptional is FP32[4,2]", make<float>(&Good::bias, {4, 2})},
        {"experts_shape", code, "expertIdxOptional is INT32[2,2]",
         make<std::int32_t>(&Good::expert_idx, {2, 2})},
        {"scales_shape", code, "scalesOptional is FP32[2,2]", make<float>(&Good::scales, {2, 2})},
        {"out_shape", code, "out is FP32[2,1]", make<float>(&Good::out, {2, 1})},
    };
    expect_refusals(refusals, [&] { return example_call(example(version, 2)); });
  }
  Good padded = example_call(example(2, 3));
  padded.bias = Tensor::empty<float>({3, 1});
  expect_refusal(padded, 561103, "in dropPadMode 1 and 3 those of expandedX");
}

TEST_F(FinalizeRoutingTest, RefusesRangesAndKWithCodeAndReason) {
  const Refusal<Good> refusals[] = {
      {"order", 561002, "zeroExpertRange is {3, 2}",
       [](Good& c) {
         c.c.zero = {3, 2};
       }},
      {"beyond", 561002, "copyExpertRange is {3, 5}",
       [](Good& c) {
         c.c.copy = {3, 5};
       }},
      {"one", 561002, "constantExpertRange is {3}", [](Good& c) { c.c.constant = {3}; }},
      {"overlap", 561002, "zeroExpertRange is {1, 3} but must not overlap",
       [](Good& c) {
         c.c.zero = {1, 3}, c.c.copy = {2, 4};
       }},
      {"alpha", 561002, "constantExpertRange is {1, 3} but must have a row in alpha1Optional",
       [](Good& c) {
         c.c.constant = {1, 3};
         c.x = Tensor::empty<float>({3, 1});
       }},
      {"alpha_dtype", 161002, "alpha1Optional is BF16[1,1]", make<B16>(&Good::alpha1, {1, 1})},
      {"x_dtype", 161002, "xOptional is BF16[3,1]", make<B16>(&Good::x, {3, 1})},
      {"alpha2_dtype", 161002, "alpha2Optional is BF16[1,1]", make<B16>(&Good::alpha2, {1, 1})},
      {"v_dtype", 161002, "vOptional is BF16[1,1]", make<B16>(&Good::v, {1, 1})},
      {"x_rank", 161002, "xOptional is FP32[3]", make<float>(&Good::x, {3})},
      {"x_shape", 561002, "xOptional is FP32[2,1]", make<float>(&Good::x, {2, 1})},
      {"alpha_hidden", 561002, "alpha1Optional is FP32[1,2]", make<float>(&Good::alpha1, {1, 2})},
      {"constants", 561002, "constantExpertRange is {1, 3} but must have a row in alpha1Optional",
       [](Good& c) {
         c.c.constant = {1, 3};
         c.x = Tensor::empty<float>({3, 1});
         c.alpha1 = Tensor::empty<float>({2, 1}), c.alpha2 = Tensor::empty<float>({2, 1});
         c.v = Tensor::empty<float>({1, 1});
       }},
      {"k", 561002, "k is 3 but must be above 0, and with scalesOptional 1 or its number of columns",
       [](Good& c) { c.k = 3; }},
      {"no_k", 561002, "k is 0", [](Good& c) { c.k = 0; }},
  };
  expect_refusals(refusals, [&] { return example_call(example(4, 2)); });
  Good none = example_call(example(4, 2));
  none.k = 1, none.c.zero = {-1, -1};
  EXPECT_EQ(none.run(device), 0) << recent_message();
}

TEST(FinalizeRoutingProducts, FollowTheProduct) {
  if (!run_again_with("MOEYARD_SOC", "310P")) return;
  const Device device;
  std::mt19937 random;
  Case c{2, 1, 1, 32, 1, 1, 2, {0}, {0}};
  c.weighted = true;
  EXPECT_EQ(Good(c, random).run(device), 0) << recent_message();
  EXPECT_EQ((Call<B16, B16>(c, random).run(device)), 161002);
  EXPECT_EQ((Call<F16, float>(c, random).run(device)), 161002);
  for (const std::int64_t mode : {0, 2}) {
    Case refused = c;
    refused.mode = mode, refused.x1 = mode == 2;
    EXPECT_EQ(Good(refused, random).run(device), 561103);
  }
  c.hidden = 31;
  EXPECT_EQ(Good(c, random).run(device), 561103);
  c.version = 1, c.x1 = c.biased = true;
  EXPECT_EQ(Good(c, random).run(device), 561003);
}

TEST(FinalizeRoutingProducts, NeedAllRowsOnA3) {
  if (!run_again_with("MOEYARD_SOC", "A3")) return;
  const Device device;
  std::mt19937 random;
  Case c{2, 2, 1, 1, 1, 1, 2, {0, 1}, {0, 0}};
  Good call(c, random);
  expect_refusal(call, 561103, "expandedX is FP32[1,1] but must have N*K rows in dropPadMode 0 and 2");
  c.rows = 2, c.weighted = true;
  EXPECT_EQ((Call<F16, float>(c, random).run(device)), 161002);
}

}  // namespace
}  // namespace oracle
