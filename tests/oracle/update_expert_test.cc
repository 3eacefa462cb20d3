// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_moe_update_expert.h"

#include <gmock/gmock.h>

#include <optional>

#include "support/device.h"

namespace oracle {
namespace {

using testing::HasSubstr;
using Ids = std::vector<std::int64_t>;

// One call, as values.
struct Case {
  std::int64_t tokens = 0, topk = 0, experts = 0, columns = 0;
  Ids ids;
  std::vector<std::int32_t> table;
  std::vector<float> scales, threshold;  // empty: not given
  std::vector<std::uint8_t> mask;        // empty: not given
  std::int64_t rank = 0, world = 1, mode = 0;
};

// The definition: plain loops over CANN's formulas.
struct Expected {
  Ids ids;
  std::vector<std::uint8_t> mask;
};
Expected reference(const Case& c) {
  Expected expected;
  for (std::int64_t t = 0; t < c.tokens; ++t) {
    float sum = 0;
    for (std::int64_t k = 0; k < c.topk && !c.scales.empty(); ++k) sum += c.scales[t * c.topk + k];
    for (std::int64_t k = 0; k < c.topk; ++k) {
      const std::int32_t* row = &c.table[static_cast<std::size_t>(c.ids[t * c.topk + k] * c.columns)];
      const std::int64_t count = row[0];
      std::int64_t chosen = 1;
      if (count > 1 && c.mode == 0) chosen = c.rank / ((c.world + count - 1) / count) + 1;
      if (count > 1 && c.mode == 1) chosen = t % count + 1;
      expected.ids.push_back(row[chosen]);
      if (c.scales.empty()) continue;
      const float least = c.threshold[static_cast<std::size_t>(k)] * sum;
      expected.mask.push_back((c.mask.empty() || c.mask[t] != 0) && c.scales[t * c.topk + k] >= least);
    }
  }
  return expected;
}

template <class Id, class Scale>
struct Call {
  Call(const Case& c, Layout layout, bool threshold_as_row = false) {
    const std::vector<Id> narrowed(c.ids.begin(), c.ids.end());
    ids = Tensor::of<Id>({c.tokens, c.topk}, narrowed, layout);
    table = Tensor::of<std::int32_t>({c.experts, c.columns}, c.table, layout);
    out_ids = Tensor::empty<Id>({c.tokens, c.topk}, layout);
    out_mask = Tensor::empty<std::uint8_t>({c.tokens, c.topk}, layout);
    if (!c.scales.empty()) {
      std::vector<Scale> given;
      for (const float scale : c.scales) given.push_back(Scale(scale));
      scales.emplace(Tensor::of<Scale>({c.tokens, c.topk}, given, layout));
      std::vector<std::int64_t> shape{c.topk};
      if (threshold_as_row) shape.insert(shape.begin(), 1);
      threshold.emplace(Tensor::of<float>(shape, c.threshold, layout));
    }
    if (!c.mask.empty()) mask.emplace(Tensor::of<std::uint8_t>({c.tokens}, c.mask, layout));
    rank = c.rank, world = c.world, mode = c.mode;
  }

  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    return aclnnMoeUpdateExpertGetWorkspaceSize(ids, table, handle(scales), handle(threshold), handle(mask),
                                                rank, world, mode, out_ids, out_mask, size, executor);
  }
  int run(const Device& device) {
    return oracle::run([this](auto* size, auto** executor) { return phase_one(size, executor); },
                       aclnnMoeUpdateExpert, device);
  }

  Tensor ids = Tensor::empty<Id>({0}), table = Tensor::empty<std::int32_t>({0}),
         out_ids = Tensor::empty<Id>({0}), out_mask = Tensor::empty<std::uint8_t>({0});
  std::optional<Tensor> scales, threshold, mask;
  std::int64_t rank, world, mode;
};

// CANN's example of the operator: 3 experts on 6 instances of 3 ranks.
Case example() {
  Case c;
  c.tokens = 4, c.topk = 2, c.experts = 3, c.columns = 4, c.world = 3;
  c.ids = {0, 1, 1, 2, 2, 0, 2, 1};
  c.table = {1, 4, -1, -1, 2, 0, 3, -1, 3, 1, 2, 5};
  return c;
}

class UpdateExpertTest : public testing::Test {
 protected:
  Device device;
};

TEST_F(UpdateExpertTest, GivesTheWorkedExample) {
  const std::vector<Ids> by_rank = {
      {4, 0, 0, 1, 1, 4, 1, 0}, {4, 0, 0, 2, 2, 4, 2, 0}, {4, 3, 3, 5, 5, 4, 5, 3}};
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    Case c = example();
    c.rank = rank;
    Call<std::int64_t, float> call(c, Layout::dense);
    ASSERT_EQ(call.run(device), 0) << recent_message();
    EXPECT_EQ(call.out_ids.values<std::int64_t>(), by_rank[static_cast<std::size_t>(rank)]);
  }
  Case c = example();
  c.mode = 1;
  Call<std::int64_t, float> call(c, Layout::dense);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(call.out_ids.values<std::int64_t>(), (Ids{4, 0, 3, 2, 5, 4, 1, 3}));
}

TEST_F(UpdateExpertTest, PrunesTheWorkedExample) {
  Case c = example();
  c.scales = {0.6f, 0.4f, 0.7f, 0.3f, 3.0f, 2.0f, 0.5f, 0.5f};
  c.threshold = {0.0f, 0.4f};
  c.mask = {1, 1, 1, 0};
  Call<std::int32_t, float> call(c, Layout::dense);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(call.out_mask.values<std::uint8_t>(), (std::vector<std::uint8_t>{1, 1, 1, 0, 1, 1, 0, 0}));
}

TEST_F(UpdateExpertTest, LeavesTheMaskAloneWithoutPruning) {
  Call<std::int32_t, float> call(example(), Layout::dense);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  for (const std::uint8_t byte : call.out_mask.values<std::uint8_t>()) EXPECT_EQ(byte, Tensor::kSentinel);
}

Case random_case(std::mt19937& random) {
  auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  Case c;
  c.tokens = below(5) == 0 ? below(2) : below(70);
  c.experts = 1 + below(12);
  c.topk = 1 + below(std::min<std::int64_t>(c.experts, 8));
  c.world = 1 + below(9);
  c.rank = below(c.world);
  c.mode = below(2);
  c.columns = 2 + below(c.mode == 0 ? c.world : 6);
  for (std::int64_t i = 0; i < c.tokens * c.topk; ++i) c.ids.push_back(below(c.experts));
  for (std::int64_t e = 0; e < c.experts; ++e) {
    c.table.push_back(static_cast<std::int32_t>(1 + below(c.columns - 1)));
    for (std::int64_t j = 1; j < c.columns; ++j) c.table.push_back(static_cast<std::int32_t>(below(1000)));
  }
  if (below(2) == 0) return c;
  for (std::int64_t i = 0; i < c.tokens * c.topk; ++i) c.scales.push_back(static_cast<float>(below(64)) / 64);
  for (std::int64_t k = 0; k < c.topk; ++k) c.threshold.push_back(static_cast<float>(below(10)) / 16);
  if (c.tokens == 0) c.scales.clear(), c.threshold.clear();
  if (below(2) == 0) return c;
  const std::int64_t active = below(c.tokens + 1);
  for (std::int64_t t = 0; t < c.tokens && !c.scales.empty(); ++t) c.mask.push_back(t < active);
  return c;
}

template <class Id, class Scale>
void matches_reference(const Case& c, Layout layout, bool as_row, const Device& device) {
  Call<Id, Scale> call(c, layout, as_row);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  const Expected expected = reference(c);
  const auto ids = call.out_ids.template values<Id>();
  EXPECT_EQ(Ids(ids.begin(), ids.end()), expected.ids);
  if (!c.scales.empty()) {
    EXPECT_EQ(call.out_mask.template values<std::uint8_t>(), expected.mask);
  }
  EXPECT_TRUE(call.out_ids.gaps_untouched() && call.out_mask.gaps_untouched());
}

TEST_F(UpdateExpertTest, MatchesItsDefinition) {
  SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()));
  std::mt19937 random(seed());
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Case c = random_case(random);
    const auto layout = static_cast<Layout>(random() % 4);
    const bool as_row = random() % 2 == 0;
    // Scales are multiples of 1/64, exact in every type.
    switch (random() % 4) {
      case 0:
        matches_reference<std::int32_t, float>(c, layout, as_row, device);
        break;
      case 1:
        matches_reference<std::int64_t, F16>(c, layout, as_row, device);
        break;
      case 2:
        matches_reference<std::int32_t, B16>(c, layout, as_row, device);
        break;
      default:
        matches_reference<std::int64_t, float>(c, layout, as_row, device);
    }
    if (HasFatalFailure() || HasFailure()) return;
  }
}

TEST_F(UpdateExpertTest, MapsManyTokensOnManyThreads) {
  Case c = example();
  c.tokens = 20001, c.mode = 1;
  c.ids.resize(static_cast<std::size_t>(c.tokens * c.topk));
  for (std::size_t i = 0; i < c.ids.size(); ++i) c.ids[i] = static_cast<std::int64_t>(i * 7 % 3);
  matches_reference<std::int32_t, float>(c, Layout::padded_rows, false, device);
}

// --- What is refused
// ---------------------------------------------------------------------------------------------------

using DefaultCall = Call<std::int32_t, float>;

struct Refusal {
  const char* name;
  int code;
  const char* message;
  std::function<void(DefaultCall&)> spoil;
};

DefaultCall good_call() {
  Case c = example();
  c.scales = {0.6f, 0.4f, 0.7f, 0.3f, 3.0f, 2.0f, 0.5f, 0.5f};
  c.threshold = {0.0f, 0.4f};
  c.mask = {1, 1, 1, 0};
  return DefaultCall(c, Layout::dense);
}

const Refusal kRefusals[] = {
    {"ids_dtype", 161002, "expertIds is FP32[4,2] but must be INT32 or INT64",
     [](DefaultCall& c) {
       c.ids = Tensor::empty<float>({4, 2});
     }},
    {"table_dtype", 161002, "eplbTable is INT64[3,4] but must be INT32",
     [](DefaultCall& c) {
       c.table = Tensor::empty<std::int64_t>({3, 4});
     }},
    {"scales_dtype", 161002, "expertScalesOptional is INT32[4,2]",
     [](DefaultCall& c) {
       c.scales = Tensor::empty<std::int32_t>({4, 2});
     }},
    {"threshold_dtype", 161002, "pruningThresholdOptional is BF16[2]",
     [](DefaultCall& c) { c.threshold = Tensor::empty<B16>({2}); }},
    {"mask_dtype", 161002, "activeMaskOptional is INT8[4]",
     [](DefaultCall& c) { c.mask = Tensor::empty<std::int8_t>({4}); }},
    {"out_dtype", 561002, "balancedExpertIds is INT64[4,2] but must have the dtype of expertIds, INT32",
     [](DefaultCall& c) {
       c.out_ids = Tensor::empty<std::int64_t>({4, 2});
     }},
    {"mode", 561002, "balanceMode is 2 but must be 0 or 1", [](DefaultCall& c) { c.mode = 2; }},
    {"world", 561002, "worldSize is 0", [](DefaultCall& c) { c.world = 0; }},
    {"rank_below", 561002,
     "localRankId is -1 but must be in [0, worldSize) when balanceMode is 0 (worldSize = 3, balanceMode = 0)",
     [](DefaultCall& c) { c.rank = -1; }},
    {"rank_above", 561002, "localRankId is 3", [](DefaultCall& c) { c.rank = 3; }},
    {"ids_rank", 561002, "expertIds is INT32[4] but must have shape (BS, K)",
     [](DefaultCall& c) { c.ids = Tensor::empty<std::int32_t>({4}); }},
    {"table_rank", 561002, "eplbTable is INT32[3] but must have shape (E, F)",
     [](DefaultCall& c) { c.table = Tensor::empty<std::int32_t>({3}); }},
    {"few_experts", 561002, "eplbTable is INT32[1,4] but must have at least K experts (K = 2)",
     [](DefaultCall& c) {
       c.table = Tensor::empty<std::int32_t>({1, 4});
     }},
    {"few_columns", 561002, "eplbTable is INT32[3,1] but must have at least 2 columns",
     [](DefaultCall& c) {
       c.table = Tensor::empty<std::int32_t>({3, 1});
     }},
    {"many_columns", 561002, "at most worldSize + 1 (worldSize = 3)",
     [](DefaultCall& c) {
       c.table = Tensor::empty<std::int32_t>({3, 5});
     }},
    {"scales_shape", 561002, "expertScalesOptional is FP32[4,3]",
     [](DefaultCall& c) {
       c.scales = Tensor::empty<float>({4, 3});
     }},
    {"threshold_shape", 561002,
     "pruningThresholdOptional is FP32[3] but must have shape (K | 1, K) with K = 2",
     [](DefaultCall& c) { c.threshold = Tensor::empty<float>({3}); }},
    {"mask_shape", 561002, "activeMaskOptional is BOOL[3]",
     [](DefaultCall& c) { c.mask = Tensor::empty<std::uint8_t>({3}); }},
    {"no_threshold", 561002, "must be given together with expertScalesOptional",
     [](DefaultCall& c) { c.threshold.reset(); }},
    {"mask_alone", 561002, "activeMaskOptional is BOOL[4] but must be null unless",
     [](DefaultCall& c) { c.scales.reset(), c.threshold.reset(); }},
    {"out_shape", 561002, "balancedExpertIds is INT32[4,3]",
     [](DefaultCall& c) {
       c.out_ids = Tensor::empty<std::int32_t>({4, 3});
     }},
    {"out_mask_shape", 561002, "balancedActiveMask is BOOL[2,4]",
     [](DefaultCall& c) {
       c.out_mask = Tensor::empty<std::uint8_t>({2, 4});
     }},
};

class UpdateExpertRefusesTest : public testing::TestWithParam<Refusal> {};

TEST_P(UpdateExpertRefusesTest, InPhaseOneWithCodeAndReason) {
  const Device device;
  DefaultCall call = good_call();
  GetParam().spoil(call);
  std::uint64_t size = 77;
  aclOpExecutor* executor = nullptr;
  EXPECT_EQ(call.phase_one(&size, &executor), GetParam().code);
  EXPECT_THAT(recent_message(), HasSubstr(GetParam().message));
  EXPECT_EQ(size, 77u);
  EXPECT_EQ(executor, nullptr);
}

INSTANTIATE_TEST_SUITE_P(Table, UpdateExpertRefusesTest, testing::ValuesIn(kRefusals),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(UpdateExpertTest, RefusesNulls) {
  DefaultCall c = good_call();
  std::uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  auto phase_one = [&](aclTensor* ids, aclTensor* table, aclTensor* out_ids, aclTensor* out_mask,
                       std::uint64_t* out_size, aclOpExecutor** out_executor) {
    return aclnnMoeUpdateExpertGetWorkspaceSize(ids, table, nullptr, nullptr, nullptr, 0, 3, 0, out_ids,
                                                out_mask, out_size, out_executor);
  };
  EXPECT_EQ(phase_one(nullptr, c.table, c.out_ids, c.out_mask, &size, &executor), 161001);
  EXPECT_EQ(phase_one(c.ids, nullptr, c.out_ids, c.out_mask, &size, &executor), 161001);
  EXPECT_EQ(phase_one(c.ids, c.table, nullptr, c.out_mask, &size, &executor), 161001);
  EXPECT_EQ(phase_one(c.ids, c.table, c.out_ids, nullptr, &size, &executor), 161001);
  EXPECT_EQ(phase_one(c.ids, c.table, c.out_ids, c.out_mask, nullptr, &executor), 161001);
  EXPECT_EQ(phase_one(c.ids, c.table, c.out_ids, c.out_mask, &size, nullptr), 161001);
}

struct BadData {
  const char* name;
  const char* message;
  std::function<void(Case&)> spoil;
};
const BadData kBadData[] = {
    {"id_below", "expertIds[1][0] is -1 but must be in [0, 3)", [](Case& c) { c.ids[2] = -1; }},
    {"id_above", "expertIds[3][1] is 3 but must be in [0, 3)", [](Case& c) { c.ids[7] = 3; }},
    {"no_instances", "eplbTable[1][0] is 0 but must be a number of instances in [1, 3]",
     [](Case& c) { c.table[4] = 0; }},
    {"too_many_instances", "eplbTable[1][0] is 4", [](Case& c) { c.table[4] = 4; }},
    {"instance_below", "eplbTable[0][1] is -1 but must be an instance id", [](Case& c) { c.table[1] = -1; }},
    {"mask_order", "activeMaskOptional[2] is true after a false",
     [](Case& c) {
       c.mask = {1, 0, 1, 0};
       c.scales.assign(8, 0.5f);
       c.threshold = {0, 0};
     }},
};

class UpdateExpertBadDataTest : public testing::TestWithParam<BadData> {};

TEST_P(UpdateExpertBadDataTest, BecomesTheStreamsErrorAndNothingIsWritten) {
  const Device device;
  Case c = example();
  GetParam().spoil(c);
  DefaultCall call(c, Layout::dense);
  EXPECT_EQ(call.run(device), 507015);
  const std::string message = recent_message();
  EXPECT_THAT(message, HasSubstr(GetParam().message));
  EXPECT_THAT(message, HasSubstr("361001"));
  for (const std::int32_t id : call.out_ids.values<std::int32_t>()) EXPECT_EQ(id, 0x5A5A5A5A);
  EXPECT_EQ(device.synchronize(), 0);  // reported once
}

INSTANTIATE_TEST_SUITE_P(Table, UpdateExpertBadDataTest, testing::ValuesIn(kBadData),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace oracle
