// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnMoeInitRouting, V2 and V3.
#include "aclnnop/aclnn_moe_init_routing.h"

#include <gtest/gtest.h>

#include "aclnnop/aclnn_moe_init_routing_v2.h"
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

struct Case {
  int version = 2;
  std::int64_t tokens = 0, topk = 0, hidden = 0, experts = 0;
  Ids ids;
  std::int64_t active = 0, capacity = 0;
  bool pad = false;
  std::int64_t count_type = 0;  // as the version has it
  bool count_flag = false;
  std::optional<Values> range;
  std::int64_t row_idx_type = 0;
  bool scaled = false;

  std::int64_t slots() const { return tokens * topk; }
  std::int64_t begin() const { return range && !range->empty() ? (*range)[0] : 0; }
  std::int64_t end() const { return range && !range->empty() ? (*range)[1] : experts; }
  std::int64_t rows() const {
    if (version == 1) return std::min(tokens, active) * topk;
    if (pad) return experts * capacity;
    return active > 0 ? std::min(active, slots()) : slots();
  }
  bool counts() const {
    return version == 2 ? (pad ? count_flag : count_type > 0) : version == 3 && count_flag;
  }
  Values count_shape() const {
    return version == 3 && count_type == 2 ? Values{experts, 2} : Values{end() - begin()};
  }
};

struct Expected {
  std::vector<std::int64_t> slot_of_row;  // by row of expandedX; -1: none
  Ids row_idx, expert_idx;                // sentinel where nothing is written
  Values counts;
};

constexpr std::int32_t kUntouched = 0x5A5A5A5A;

Expected reference(const Case& c) {
  Expected expected;
  Ids order;
  for (std::int32_t slot = 0; slot < c.slots(); ++slot) {
    const std::int32_t id = c.ids[static_cast<std::size_t>(slot)];
    const bool all = c.version == 1 || (c.version == 2 && !c.pad);
    if (all || (c.begin() <= id && id < c.end())) order.push_back(slot);
  }
  auto id_of = [&](std::int32_t slot) { return c.ids[static_cast<std::size_t>(slot)]; };
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return id_of(a) < id_of(b); });
  expected.slot_of_row.assign(static_cast<std::size_t>(c.rows()), -1);
  expected.row_idx.assign(static_cast<std::size_t>(c.slots()), c.row_idx_type == 1 ? kUntouched : -1);
  std::int64_t in_expert = 0;
  for (std::size_t row = 0; row < order.size(); ++row) {
    const std::int32_t slot = order[row];
    in_expert = row > 0 && id_of(order[row - 1]) == id_of(slot) ? in_expert + 1 : 0;
    std::int64_t place = static_cast<std::int64_t>(row);
    if (c.pad) place = in_expert < c.capacity ? id_of(slot) * c.capacity + in_expert : -1;
    if (0 <= place && place < c.rows()) expected.slot_of_row[static_cast<std::size_t>(place)] = slot;
    expected.expert_idx.push_back(id_of(slot));
    const std::int64_t column = slot % c.topk * c.tokens + slot / c.topk;  // of version 1
    if (c.row_idx_type == 1)
      expected.row_idx[row] = slot;
    else
      expected.row_idx[static_cast<std::size_t>(c.version == 1 ? column : slot)] =
          static_cast<std::int32_t>(place);
  }
  std::int64_t sum = 0;
  for (std::int64_t e = c.begin(); e < c.end(); ++e) {
    const auto count = std::count(c.ids.begin(), c.ids.end(), static_cast<std::int32_t>(e));
    sum += count;
    const bool cumulated = !c.pad && c.count_type == (c.version == 2 ? 1 : 0);
    if (c.version == 3 && c.count_type == 2) {
      if (count > 0) expected.counts.insert(expected.counts.end(), {e, count});
    } else {
      expected.counts.push_back(cumulated ? sum : count);
    }
  }
  if (c.version == 3 && c.count_type == 2) expected.counts.resize(static_cast<std::size_t>(2 * c.experts), 0);
  return expected;
}

template <class T>
struct Call {
  Call(const Case& c, std::mt19937& random, bool views = false) : c(c) {
    auto layout = [&] { return views ? random_layout(random) : Layout::dense; };
    values = random_bits<T>(random, c.tokens * c.hidden);
    scales = random_bits<float>(random, c.tokens);
    x = Tensor::of<T>({c.tokens, c.hidden}, values, layout());
    ids = Tensor::of<std::int32_t>({c.tokens, c.topk}, c.ids, layout());
    Values rows_shape{c.rows(), c.hidden};
    if (c.pad) rows_shape = {c.experts, c.capacity, c.hidden};
    out = Tensor::empty<T>(rows_shape, layout());
    out_idx = Tensor::empty<std::int32_t>({c.slots()}, layout());
    if (c.version == 1) {
      Ids column;
      for (std::int64_t i = 0; i < c.slots(); ++i)
        column.push_back(static_cast<std::int32_t>(i % c.topk * c.tokens + i / c.topk));
      row_idx = Tensor::of<std::int32_t>({c.tokens, c.topk}, column, layout());
      out_experts = Tensor::empty<std::int32_t>({c.slots()}, layout());
    }
    if (c.version == 2 && c.counts())
      (c.pad ? before : counts) = Tensor::empty<std::int32_t>({c.experts}, layout());
    if (c.version == 3) counts = Tensor::empty<std::int64_t>(c.count_shape(), layout());
    if (c.version == 3)
      out_scale = Tensor::empty<float>(views ? Values{c.rows(), 1} : Values{c.rows()}, layout());
    if (c.scaled) scale = Tensor::of<float>({c.tokens}, scales, layout());
  }
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    if (c.version == 1)
      return aclnnMoeInitRoutingGetWorkspaceSize(handle(x), handle(row_idx), handle(ids), c.active,
                                                 handle(out), handle(out_idx), handle(out_experts), size,
                                                 executor);
    if (c.version == 2)
      return aclnnMoeInitRoutingV2GetWorkspaceSize(
          handle(x), handle(ids), c.active, c.capacity, c.experts, mode(), c.count_type, c.count_flag,
          handle(out), handle(out_idx), handle(counts), handle(before), size, executor);
    return aclnnMoeInitRoutingV3GetWorkspaceSize(
        handle(x), handle(ids), handle(scale), nullptr, c.active, c.capacity, c.experts, mode(), c.count_type,
        c.count_flag, quant_mode, IntArray(c.range), c.row_idx_type, handle(out), handle(out_idx),
        handle(counts), handle(out_scale), size, executor);
  }
  std::int64_t mode() const { return drop_pad_mode ? *drop_pad_mode : (c.pad ? 1 : 0); }
  int run(const Device& device) {
    return oracle::run([this](auto* size, auto** executor) { return phase_one(size, executor); },
                       c.version == 1   ? aclnnMoeInitRouting
                       : c.version == 2 ? aclnnMoeInitRoutingV2
                                        : aclnnMoeInitRoutingV3,
                       device);
  }
  Values counted() const {
    if (c.version == 3) return counts->values<std::int64_t>();
    const Ids narrow = (c.pad ? before : counts)->values<std::int32_t>();
    return Values(narrow.begin(), narrow.end());
  }

  Case c;
  std::vector<T> values;
  Floats scales;
  std::optional<Tensor> x, row_idx, ids, scale, out, out_idx, out_experts, counts, before, out_scale;
  std::optional<std::int64_t> drop_pad_mode;
  std::int64_t quant_mode = -1;
};

template <class T>
void matches_reference(const Case& c, std::mt19937& random, const Device& device, bool views = true) {
  Call<T> call(c, random, views);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  const Expected expected = reference(c);
  std::vector<T> rows;
  Floats scales;
  for (const std::int64_t slot : expected.slot_of_row) {
    for (std::int64_t h = 0; h < c.hidden; ++h)
      rows.push_back(slot >= 0 ? call.values[static_cast<std::size_t>(slot / c.topk * c.hidden + h)]
                     : c.pad   ? T()
                               : sentinel<T>());
    scales.push_back(!c.scaled   ? sentinel<float>()
                     : slot >= 0 ? call.scales[static_cast<std::size_t>(slot / c.topk)]
                     : c.pad     ? 0.0f
                                 : sentinel<float>());
  }
  EXPECT_EQ(bits(call.out->template values<T>()), bits(rows));
  EXPECT_EQ(call.out_idx->template values<std::int32_t>(), expected.row_idx);
  if (c.version == 1) {
    EXPECT_EQ(call.out_experts->template values<std::int32_t>(), expected.expert_idx);
  }
  if (c.counts()) {
    EXPECT_EQ(call.counted(), expected.counts);
  }
  if (c.version == 3) {
    EXPECT_EQ(bits(call.out_scale->template values<float>()), bits(scales));
  }
  EXPECT_TRUE(call.out->gaps_untouched() && call.out_idx->gaps_untouched());
}

Case random_case(std::mt19937& random) {
  const RoutingShape shape = random_shape(random);
  Case c;
  c.version = 1 + static_cast<int>(below(random, 3));
  c.tokens = shape.tokens, c.topk = shape.topk, c.hidden = shape.hidden, c.experts = shape.experts;
  const bool one = below(random, 5) == 0, strange = below(random, 4) == 0;
  for (std::int64_t i = 0; i < c.slots(); ++i)
    c.ids.push_back(static_cast<std::int32_t>(one       ? c.experts - 1
                                              : strange ? below(random, c.experts + 4) - 2
                                                        : below(random, c.experts)));
  c.active = below(random, c.version == 1 ? c.tokens + 2 : c.slots() + 2);
  if (c.version == 1) return c;
  c.pad = c.tokens > 0 && below(random, 2) == 0;
  if (c.pad) c.capacity = 1 + below(random, c.tokens);
  c.count_type = below(random, 3);
  c.count_flag = below(random, 2) == 0;
  if (c.version == 2) return c;
  if (below(random, 4) == 0) c.active = -1;
  c.scaled = below(random, 2) == 0;
  if (c.pad) {
    c.count_type = 1;
    return c;
  }
  c.row_idx_type = below(random, 2);
  const std::int64_t begin = below(random, c.experts);
  if (below(random, 3) != 0) c.range = {begin, begin + 1 + below(random, c.experts - begin)};
  return c;
}

class InitRoutingTest : public testing::Test {
 protected:
  Case example(int version) const {
    Case c{version, 3, 2, 1, 4, {2, 0, 1, 2, 0, 3}};
    if (version == 1) c.active = 3;
    return c;
  }
  void check(const Case& c, const Floats& rows, const Ids& row_idx, const Values& counts = {}) {
    Call<float> call(c, random);
    call.x->set(Floats{1, 2, 3});
    ASSERT_EQ(call.run(device), 0) << recent_message();
    EXPECT_EQ(call.out->values<float>(), rows);
    EXPECT_EQ(call.out_idx->values<std::int32_t>(), row_idx);
    if (!counts.empty()) {
      EXPECT_EQ(call.counted(), counts);
    }
  }
  Device device;
  std::mt19937 random{seed()};
};

TEST_F(InitRoutingTest, GivesTheWorkedExamples) {
  Case c = example(1);
  check(c, {1, 3, 2, 1, 2, 3}, {3, 2, 1, 0, 4, 5});
  c.active = 2;
  check(c, {1, 3, 2, 1}, {3, 2, 1, 0, 4, 5});
  c = example(2);
  c.count_type = 1;
  check(c, {1, 3, 2, 1, 2, 3}, {3, 0, 2, 4, 1, 5}, {2, 3, 5, 6});
  c.count_type = 2, c.active = 4;
  check(c, {1, 3, 2, 1}, {3, 0, 2, 4, 1, 5}, {2, 1, 2, 1});
  c = example(2);
  c.pad = true, c.count_flag = true, c.capacity = 1;
  check(c, {1, 2, 1, 3}, {2, 0, 1, -1, -1, 3}, {2, 1, 2, 1});
  c.capacity = 2;
  check(c, {1, 3, 2, 0, 1, 2, 3, 0}, {4, 0, 2, 5, 1, 6}, {2, 1, 2, 1});
}

TEST_F(InitRoutingTest, GivesTheWorkedExamplesOfARange) {
  const float left = sentinel<float>();
  Case c = example(3);
  c.range = {1, 3}, c.count_flag = true;
  check(c, {2, 1, 2, left, left, left}, {1, -1, 0, 2, -1, -1}, {1, 3});
  c.count_type = 1;
  check(c, {2, 1, 2, left, left, left}, {1, -1, 0, 2, -1, -1}, {1, 2});
  c.count_type = 2, c.row_idx_type = 1;
  check(c, {2, 1, 2, left, left, left}, {2, 0, 3, kUntouched, kUntouched, kUntouched},
        {1, 1, 2, 2, 0, 0, 0, 0});
}

TEST_F(InitRoutingTest, MatchesItsDefinition) {
  SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()));
  for (int round = 0; round < 500 && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Case c = random_case(random);
    switch (c.version == 3 ? below(random, 4) : below(random, 3)) {
      case 0:
        matches_reference<float>(c, random, device);
        break;
      case 1:
        matches_reference<F16>(c, random, device);
        break;
      case 2:
        matches_reference<B16>(c, random, device);
        break;
      default:
        matches_reference<std::int8_t>(c, random, device);
    }
  }
}

TEST_F(InitRoutingTest, TakesWideIdsOfOneSlotPerToken) {
  Case c{2, 5, 1, 3, 4, {3, 1, 3, 0, 1}};
  Call<float> call(c, random);
  call.ids = Tensor::of<std::int64_t>({5}, {3, 1, INT64_C(1) << 40, 0, 1});
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(call.out_idx->values<std::int32_t>(), (Ids{3, 1, 4, 0, 2}));
}

TEST_F(InitRoutingTest, IsTheSameOnOneThreadAndMany) {
  const bool asked = std::getenv("MOEYARD_THREADS") != nullptr;
  for (const bool pad : {false, true}) {
    Case c{3, 3000, 4, 100, 16};
    for (std::int64_t i = 0; i < c.slots(); ++i)
      c.ids.push_back(static_cast<std::int32_t>(below(random, 16)));
    c.pad = pad, c.capacity = pad ? 800 : 0, c.count_flag = true, c.count_type = 1;
    matches_reference<B16>(c, random, device, false);
  }
  if (asked) return;
  run_again_with("MOEYARD_THREADS", "1");
  run_again_with("MOEYARD_THREADS", "5");
}

// --- What is refused -------------------------------------------------------------------------------------

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

TEST_F(InitRoutingTest, RefusesWithCodeAndReason) {
  const Refusal<Good> refusals[] = {
      {"x", 161001, "x is null", drop(&Good::x)},
      {"row_idx", 161001, "rowIdx is null", drop(&Good::row_idx)},
      {"expert_idx", 161001, "expertIdx is null", drop(&Good::ids)},
      {"out", 161001, "expandedXOut is null", drop(&Good::out)},
      {"out_idx", 161001, "expandedRowIdxOut is null", drop(&Good::out_idx)},
      {"out_experts", 161001, "expandedExpertIdxOut is null", drop(&Good::out_experts)},
      {"x_dtype", 161002, "x is INT64[3,1]", retype(&Good::x, {3, 1})},
      {"ids_dtype", 161002, "expertIdx is INT64[3,2]", retype(&Good::ids, {3, 2})},
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

TEST_F(InitRoutingTest, RefusesV2WithCodeAndReason) {
  const Refusal<Good> refusals[] = {
      {"x", 161001, "x is null", drop(&Good::x)},
      {"expert_idx", 161001, "expertIdx is null", drop(&Good::ids)},
      {"out", 161001, "expandedXOut is null", drop(&Good::out)},
      {"out_idx", 161001, "expandedRowIdxOut is null", drop(&Good::out_idx)},
      {"x_dtype", 161002, "x is INT64[3,1]", retype(&Good::x, {3, 1})},
      {"ids_dtype", 161002, "expertIdx is FP32[3,2]", reshape(&Good::ids, {3, 2})},
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
}

TEST_F(InitRoutingTest, RefusesV3WithCodeAndReason) {
  const Refusal<Good> refusals[] = {
      {"counts", 161001, "expertTokensCountOrCumsumOut is null", drop(&Good::counts)},
      {"out_scale", 161001, "expandedScaleOut is null", drop(&Good::out_scale)},
      {"counts_dtype", 161002, "expertTokensCountOrCumsumOut is INT32[4]", reshape_ids(&Good::counts, {4})},
      {"scale_dtype", 161002, "scaleOptional is INT32[3]", reshape_ids(&Good::scale, {3})},
      {"quant", 561002, "quantMode is 2 but must be -1, 0 or 1, as others are not supported yet",
       [](Good& c) { c.quant_mode = 2; }},
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
  c.version = 3;
  EXPECT_EQ(Good(c, random).run(device), 561003);
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
}  // namespace oracle
