// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "aclnnop/aclnn_moe_fused_topk.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/refusals.h"
#include "support/rerun.h"
#include "support/rows.h"

namespace oracle {
namespace {

using Ids = std::vector<std::int32_t>;
using Floats = std::vector<float>;
using Values = std::vector<std::int64_t>;

struct Case {
  std::int64_t tokens = 0, experts = 0;
  std::uint32_t groups = 1, group_topk = 1, top_n = 1, topk = 1, activate = 0;
  bool norm = false, maps = false;
  float scale = 1;
  Floats x, add;
  std::int64_t instances = 1;
  Ids mapping_num, mapping_table;
};

template <class T>
struct Call {
  explicit Call(const Case& c, Layout layout = Layout::dense) : c(c) {
    auto narrow = [](const Floats& values) {
      std::vector<T> made;
      for (const float value : values) made.push_back(T(value));
      return made;
    };
    x = Tensor::of<T>({c.tokens, c.experts}, narrow(c.x), layout);
    add = Tensor::of<T>({c.experts}, narrow(c.add), layout);
    y = Tensor::empty<float>({c.tokens, c.topk}, layout);
    indices = Tensor::empty<std::int32_t>({c.tokens, c.topk}, layout);
    if (!c.maps) return;
    num = Tensor::of<std::int32_t>({c.experts}, c.mapping_num, layout);
    table = Tensor::of<std::int32_t>({c.experts, c.instances}, c.mapping_table, layout);
  }
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    return aclnnMoeFusedTopkGetWorkspaceSize(handle(x), handle(add), handle(num), handle(table), c.groups,
                                             c.group_topk, c.top_n, c.topk, c.activate, c.norm, c.scale,
                                             c.maps, handle(y), handle(indices), size, executor);
  }
  int run(const Device& device) {
    return oracle::run([this](auto* size, auto** executor) { return phase_one(size, executor); },
                       aclnnMoeFusedTopk, device);
  }
  Case c;
  std::optional<Tensor> x, add, num, table, y, indices;
};

// The n first of a stable descending order.
template <class Value>
std::vector<std::size_t> largest(const std::vector<Value>& values, std::size_t n) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return values[a] > values[b]; });
  order.resize(n);
  return order;
}

struct Expected {
  std::vector<double> y;
  Ids indices;
};
template <class T>
Expected reference(const Case& c) {
  Expected expected;
  const auto experts = static_cast<std::size_t>(c.experts), size = experts / c.groups;
  for (std::int64_t t = 0; t < c.tokens; ++t) {
    Floats score, value, group_score;  // fp32, which ties depend on
    for (std::size_t e = 0; e < experts; ++e) {
      const float x = widen(T(c.x[static_cast<std::size_t>(t) * experts + e]));
      score.push_back(static_cast<float>(1 / (1 + std::exp(-static_cast<double>(x)))));
      value.push_back(score.back() + widen(T(c.add[e])));
    }
    for (std::uint32_t g = 0; g < c.groups; ++g) {
      const Floats own(value.begin() + static_cast<std::ptrdiff_t>(g * size),
                       value.begin() + static_cast<std::ptrdiff_t>((g + 1) * size));
      group_score.push_back(0);
      for (const std::size_t i : largest(own, c.top_n)) group_score.back() += own[i];
    }
    std::vector<bool> kept(c.groups, false);
    for (const std::size_t g : largest(group_score, c.group_topk)) kept[g] = true;
    for (std::size_t e = 0; e < experts; ++e)
      if (!kept[e / size]) value[e] = 0;
    const auto chosen = largest(value, c.topk);
    double sum = 0;
    for (const std::size_t e : chosen) sum += score[e];
    for (const std::size_t e : chosen) {
      expected.y.push_back(c.norm ? double{score[e]} / sum * c.scale : score[e]);
      std::int32_t index = static_cast<std::int32_t>(e);
      if (c.maps) {
        const std::int64_t n = c.mapping_num[e];
        index = c.mapping_table[e * static_cast<std::size_t>(c.instances) +
                                static_cast<std::size_t>(n == 0 ? 0 : t % n)];
      }
      expected.indices.push_back(index);
    }
  }
  return expected;
}

template <class T>
void matches_reference(const Case& c, Layout layout, const Device& device) {
  Call<T> call(c, layout);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  const Expected expected = reference<T>(c);
  EXPECT_EQ(call.indices->template values<std::int32_t>(), expected.indices);
  const Floats y = call.y->template values<float>();
  for (std::size_t i = 0; i < y.size(); ++i)
    EXPECT_NEAR(y[i], expected.y[i], 2e-6 * std::fabs(expected.y[i])) << i;
  EXPECT_TRUE(call.y->gaps_untouched() && call.indices->gaps_untouched());
}

Case random_case(std::mt19937& random) {
  Case c;
  c.groups = 1u << below(random, 4);
  const std::int64_t size = 1 + below(random, 6);
  c.tokens = 1 + below(random, 20), c.experts = c.groups * size;
  c.group_topk = 1 + static_cast<std::uint32_t>(below(random, c.groups));
  c.top_n = 1 + static_cast<std::uint32_t>(below(random, size));
  c.topk = 1 + static_cast<std::uint32_t>(below(random, c.experts));
  c.norm = below(random, 2) == 0, c.maps = below(random, 2) == 0, c.scale = 2.5f;
  c.x = random_rows<float>(random, c.tokens * c.experts);
  c.add = random_rows<float>(random, c.experts);
  c.instances = 1 + below(random, 4);
  for (std::int64_t e = 0; e < c.experts; ++e) {
    c.mapping_num.push_back(static_cast<std::int32_t>(below(random, c.instances + 1)));
    for (std::int64_t i = 0; i < c.instances; ++i)
      c.mapping_table.push_back(static_cast<std::int32_t>(below(random, 99)));
  }
  return c;
}

class FusedTopkTest : public testing::Test {
 protected:
  Case example() const {
    Case c{1, 8, 4, 2, 2, 4};
    c.norm = true, c.scale = 2.5f;
    c.x = {0, 2, -1, 1, .5f, .25f, 3, -2}, c.add = {0, 0, 0, 0, .3f, .3f, 0, 0};
    return c;
  }
  void check(const Case& c, const Ids& indices, const Floats& y) {
    Call<float> call(c);
    ASSERT_EQ(call.run(device), 0) << recent_message();
    EXPECT_EQ(call.indices->values<std::int32_t>(), indices);
    const Floats have = call.y->values<float>();
    ASSERT_EQ(have.size(), y.size());
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(have[i], y[i], 1e-6) << i;
  }
  Device device;
  std::mt19937 random{seed()};
};

TEST_F(FusedTopkTest, GivesTheWorkedExamples) {
  Case c = example();
  check(c, {4, 1, 5, 0}, {.606583f, .858332f, .547838f, .487247f});
  c.add.assign(8, -1), c.topk = 3, c.scale = 1;  // experts of lost groups win, with 0
  check(c, {2, 3, 6}, {.137737f, .374408f, .487856f});
}

TEST_F(FusedTopkTest, MapsExpertsToInstancesByToken) {
  Case c{3, 4, 1, 1, 1, 2};
  c.x = {0, 2, 1, -1, 0, 2, 1, -1, 0, 2, 1, -1}, c.add.assign(4, 0), c.maps = true;
  c.instances = 2, c.mapping_num = {1, 2, 0, 1}, c.mapping_table = {0, 0, 1, 4, 2, 0, 3, 0};
  check(c, {1, 2, 4, 2, 1, 2}, {.880797f, .731059f, .880797f, .731059f, .880797f, .731059f});
  c.mapping_num = {1, 9, -3, 1};  // beyond the table: all of it, or the first
  check(c, {1, 2, 4, 2, 1, 2}, {.880797f, .731059f, .880797f, .731059f, .880797f, .731059f});
}

TEST_F(FusedTopkTest, MatchesItsDefinition) {
  SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()));
  for (int round = 0; round < 200 && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Case c = random_case(random);
    if (round % 3 == 0) matches_reference<float>(c, random_layout(random), device);
    if (round % 3 == 1) matches_reference<F16>(c, random_layout(random), device);
    if (round % 3 == 2) matches_reference<B16>(c, random_layout(random), device);
  }
}

TEST_F(FusedTopkTest, IsTheSameOnOneThreadAndMany) {
  Case c{2000, 64, 8, 4, 2, 8};
  c.norm = true;
  c.x = random_rows<float>(random, c.tokens * c.experts);
  c.add = random_rows<float>(random, c.experts);
  Call<B16> call(c);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  std::uint64_t digest = 1469598103934665603u;
  for (const auto& values : {bits(call.y->values<float>()), bits(call.indices->values<std::int32_t>())})
    for (const std::uint32_t value : values) digest = (digest ^ value) * 1099511628211u;
  const std::string text = std::to_string(digest);
  if (const char* other = std::getenv("MOEYARD_TEST_DIGEST")) {
    EXPECT_EQ(text, other);
    return;
  }
  setenv("MOEYARD_TEST_DIGEST", text.c_str(), 1);
  for (const char* threads : {"1", "5"}) run_again_with("MOEYARD_THREADS", threads);
  unsetenv("MOEYARD_TEST_DIGEST");
}

TEST_F(FusedTopkTest, HasNothingToDoWithoutTokens) {
  Case c = example();
  c.tokens = 0, c.x.clear(), c.groups = 0;
  EXPECT_EQ(Call<float>(c).run(device), 0) << recent_message();
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

const Refusal<Good> kRefusals[] = {
    {"x", 161001, "x is null", drop(&Good::x)},
    {"add", 161001, "addNum is null", drop(&Good::add)},
    {"num", 161001, "mappingNum is null but must be given, with mappingTable, when enableExpertMapping is 1",
     drop(&Good::num)},
    {"y", 161001, "y is null", drop(&Good::y)},
    {"indices", 161001, "indices is null", drop(&Good::indices)},
    {"x_dtype", 161002, "x is INT32[1,8]", make<std::int32_t>(&Good::x, {1, 8})},
    {"add_dtype", 161002, "addNum is BF16[8]", make<B16>(&Good::add, {8})},
    {"num_dtype", 161002, "mappingNum is INT64[8]", make<std::int64_t>(&Good::num, {8})},
    {"y_dtype", 161002, "y is BF16[1,4]", make<B16>(&Good::y, {1, 4})},
    {"indices_dtype", 161002, "indices is INT64[1,4]", make<std::int64_t>(&Good::indices, {1, 4})},
    {"groups", 161002, "groupNum is 0 but must be above 0", [](Good& c) { c.c.groups = 0; }},
    {"group_topk", 161002, "must be above 0, as groupTopk", [](Good& c) { c.c.group_topk = 0; }},
    {"top_n", 161002, "topN = 0", [](Good& c) { c.c.top_n = 0; }},
    {"topk", 161002, "topK = 0", [](Good& c) { c.c.topk = 0; }},
    {"much_group_topk", 161002, "groupTopk is 5 but must be at most groupNum",
     [](Good& c) { c.c.group_topk = 5; }},
    {"activate", 161002, "activateType is 1 but must be 0", [](Good& c) { c.c.activate = 1; }},
    {"uneven", 161002, "groupNum is 3 but must divide E (E = 8)", [](Good& c) { c.c.groups = 3; }},
    {"much_top_n", 161002, "topN is 3 but must be at most E / groupNum", [](Good& c) { c.c.top_n = 3; }},
    {"x_rank", 161002, "x is FP32[8]", make<float>(&Good::x, {8})},
    {"add_size", 161002, "addNum is FP32[7]", make<float>(&Good::add, {7})},
    {"y_shape", 161002, "y is FP32[1,5]", make<float>(&Good::y, {1, 5})},
    {"indices_shape", 161002, "indices is INT32[2,4]", make<std::int32_t>(&Good::indices, {2, 4})},
    {"num_shape", 161002, "mappingNum is INT32[7] but must have shape (E)",
     make<std::int32_t>(&Good::num, {7})},
    {"table", 161001, "mappingNum is INT32[8] but must be given, with mappingTable", drop(&Good::table)},
    {"table_dtype", 161002, "mappingTable is INT64[8,1]", make<std::int64_t>(&Good::table, {8, 1})},
    {"table_rank", 161002, "mappingTable is INT32[8]", make<std::int32_t>(&Good::table, {8})},
    {"add_rank", 161002, "addNum is FP32[1,8]", make<float>(&Good::add, {1, 8})},
    {"table_shape", 161002, "mappingTable is INT32[7,1] but must have E rows",
     make<std::int32_t>(&Good::table, {7, 1})},
};

TEST_F(FusedTopkTest, RefusesWithCodeAndReason) {
  auto good_call = [&] {
    Case c = example();
    c.maps = true, c.mapping_num.assign(8, 1), c.mapping_table.assign(8, 0);
    return Good(c);
  };
  expect_refusals(kRefusals, good_call);
  Good call = good_call();
  expect_null_results_refused(call);
  Case c = example();
  c.topk = 9;
  Good many(c);
  expect_refusal(many, 161002, "topK is 9 but must be at most E");
}

TEST(FusedTopkProducts, LimitSizesOnDevices) {
  if (!run_again_with("MOEYARD_SOC", "A3")) return;
  const Device device;
  Case c{1, 1024, 1, 1, 1, 1};
  c.x.assign(1024, 0), c.add.assign(1024, 0);
  EXPECT_EQ(Good(c).run(device), 0) << recent_message();
  c.groups = 512;
  Good groups(c);
  expect_refusal(groups, 161002, "groupNum is 512 but must be at most 256");
  c.groups = 1, c.maps = true, c.instances = 129, c.mapping_num.assign(1024, 1),
  c.mapping_table.assign(1024 * 129, 0);
  Good instances(c);
  expect_refusal(instances, 161002, "must have at most 128 instances");
  c.maps = false, c.experts = 1025, c.x.assign(1025, 0), c.add.assign(1025, 0);
  Good experts(c);
  expect_refusal(experts, 161002, "x is FP32[1,1025] but must have at most 1024 experts");
}

}  // namespace
}  // namespace oracle
