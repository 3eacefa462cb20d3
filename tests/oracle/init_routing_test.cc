// Moeyard. SPDX-License-Identifier: Apache-2.0
// What aclnnMoeInitRouting, V2 to V4, do.
#include "oracle/init_routing_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/rerun.h"

namespace oracle::init_routing {
namespace {

// The bytes of scales, FP32 or E8M0.
std::vector<std::uint32_t> bytes_of(const Tensor& scales) {
  if (scales.shape().size() == 3) return bits(scales.values<std::int8_t>());
  std::vector<std::int8_t> bytes;
  for (const float scale : scales.values<float>()) {
    std::int8_t split[4];
    std::memcpy(split, &scale, 4);
    bytes.insert(bytes.end(), split, split + 4);
  }
  return bits(bytes);
}

template <class T>
void matches_reference(const Case& c, std::mt19937& random, const Device& device, bool views = true) {
  Call<T> call(c, random, views);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  const Expected expected = reference(c);
  // What stands in `columns` entries of each row, when slot s has those of row s / slots_per_row.
  auto placed = [&]<class V>(const std::vector<V>& values, std::int64_t columns, std::int64_t slots_per_row) {
    std::vector<V> all;
    for (const std::int64_t slot : expected.slot_of_row)
      for (std::int64_t i = 0; i < columns; ++i)
        all.push_back(slot >= 0 ? values[static_cast<std::size_t>(slot / slots_per_row * columns + i)]
                      : c.pad   ? V()
                                : sentinel<V>());
    return bits(all);
  };
  EXPECT_EQ(bits(call.out->template values<T>()), placed(call.values, c.hidden, c.topk));
  EXPECT_EQ(call.out_idx->template values<std::int32_t>(), expected.row_idx);
  if (c.version == 1) {
    EXPECT_EQ(call.out_experts->template values<std::int32_t>(), expected.expert_idx);
  }
  if (c.counts()) {
    EXPECT_EQ(call.counted(), expected.counts);
  }
  if (c.scaled) {
    EXPECT_EQ(bytes_of(*call.out_scale), placed(call.scales, c.scale_columns(), c.topk));
  } else if (c.version >= 3) {
    EXPECT_EQ(bits(call.out_scale->template values<float>()),
              bits(Floats(static_cast<std::size_t>(c.rows()), sentinel<float>())));
  }
  if (c.weighted) {
    EXPECT_EQ(bits(call.out_weight->template values<float>()), placed(call.weights, 1, 1));
  }
  EXPECT_TRUE(call.out->gaps_untouched() && call.out_idx->gaps_untouched());
}

Case random_case(std::mt19937& random) {
  const RoutingShape shape = random_shape(random);
  Case c;
  c.version = 1 + static_cast<int>(below(random, 4));
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
  if (c.version == 3 && below(random, 4) == 0) c.active = -1;
  c.scaled = below(random, 2) == 0;
  if (c.version == 4) {
    c.weighted = below(random, 2) == 0;
    if (below(random, 3) == 0)
      c.active = 0;
    else
      c.there = c.pad ? 0 : c.kept() + below(random, c.slots() - c.kept() + 1);
  }
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
    switch (c.version >= 3 ? below(random, 4) : below(random, 3)) {
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

TEST_F(InitRoutingTest, MovesFourBitRowsAndBlockScales) {
  for (int round = 0; round < 100 && !HasFailure(); ++round) {
    SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()) + ", round " + std::to_string(round));
    Case c = random_case(random);
    if (c.version < 3) continue;
    c.packed = true, c.in_blocks = below(random, 2) == 0;
    matches_reference<std::int8_t>(c, random, device, false);
  }
}

// A byte holds elements of two tokens.
TEST_F(InitRoutingTest, MovesFourBitRowsOfAnyView) {
  Case c = example(3);
  c.hidden = 1, c.packed = true;
  Call<std::int8_t> call(c, random);
  // Element h of token t is 4 h + t + 1, at place 1 + 3 h + t.
  Tensor memory = Tensor::of<std::int8_t>({4}, {0x10, 0x32, 0x65, 0x07});
  const std::int64_t shape[] = {3, 2}, strides[] = {1, 3};
  aclTensor* x =
      aclCreateTensor(shape, 2, ACL_FLOAT4_E2M1, strides, 1, ACL_FORMAT_ND, shape, 2, memory.memory());
  ASSERT_EQ(oracle::run(
                [&](auto* size, auto** executor) {
                  return aclnnMoeInitRoutingV3GetWorkspaceSize(x, handle(call.ids), nullptr, nullptr, 0, 0, 4,
                                                               0, 0, false, -1, nullptr, 0, handle(call.out),
                                                               handle(call.out_idx), handle(call.counts),
                                                               handle(call.out_scale), size, executor);
                },
                aclnnMoeInitRoutingV3, device),
            0)
      << recent_message();
  aclDestroyTensor(x);
  EXPECT_EQ(call.out->values<std::int8_t>(), (std::vector<std::int8_t>{0x51, 0x73, 0x62, 0x51, 0x62, 0x73}));
}

TEST_F(InitRoutingTest, GivesTheWorkedExampleOfWeights) {
  Case c = example(4);
  c.weighted = true;
  Call<float> call(c, random);
  call.weight->set(Floats{.1f, .2f, .3f, .4f, .5f, .6f});
  ASSERT_EQ(call.run(device), 0) << recent_message();
  EXPECT_EQ(call.out_weight->values<float>(), (Floats{.2f, .5f, .3f, .1f, .4f, .6f}));
}

TEST_F(InitRoutingTest, FindsAWrongNumberOfRowsWhileRunning) {
  Case c = example(4);
  c.active = c.there.emplace(4);
  for (const std::int64_t wrong : {std::int64_t{-1}, std::int64_t{5}, std::int64_t{0}}) {
    Call<float> call(c, random);
    call.active->set(Values{wrong});
    EXPECT_EQ(call.run(device), 507015);
    EXPECT_THAT(recent_message(), testing::HasSubstr("activeNumOptional is " + std::to_string(wrong) +
                                                     " but must be in [0, 4]"));
    EXPECT_EQ(call.out->values<float>(), Floats(4, sentinel<float>()));
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

}  // namespace
}  // namespace oracle::init_routing
