// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnFFNToAttention: the windows that it leaves against plain loops.
#include <gtest/gtest.h>

#include <random>

#include "support/afd_windows.h"

namespace oracle {
namespace {

using Words = std::vector<std::int32_t>;

TEST(FfnToAttention, ReturnsRowsOfTheWorkedExample) {
  Workers workers(4);
  const Counts counts{.sessions = 2, .micro_batches = 1, .tokens = 2, .slots = 3, .slot_bytes = 8};
  const AttentionLayout layout{counts};
  const float first[2][6] = {{1, 2, 4, 2, 4, 8}, {6, 8, 6, 9, 12, 16}};
  const Words sessions[2] = {{0, 0, 1, 0, 0, 0}, {1, 1, 0, 1, 1, 1}},
              tokens[2] = {{0, 1, 1, 0, 0, 1}, {0, 1, 1, 0, 0, 1}},
              offsets[2] = {{0, 1, 1, 1, 2, 2}, {0, 0, 0, 1, 2, 2}};
  for (int ffn = 0; ffn < 2; ++ffn)
    workers.on(ffn, [&](const WorkerRank& rank) {
      std::vector<F16> x;
      for (const float value : first[ffn])
        for (int h = 0; h < 4; ++h) x.emplace_back(value + static_cast<float>(h));
      ReturnCall call(workers, counts, Tensor::of<F16>({6, 4}, x));
      call.sessions.set(sessions[ffn]);
      call.micro_batches.set(Words(6, 0));
      call.tokens.set(tokens[ffn]);
      call.offsets.set(offsets[ffn]);
      call.count.set(std::vector<std::int64_t>{6});
      call.table = Tensor::of<std::int32_t>({2}, {2, 3});
      ASSERT_EQ(call.run(rank), 0) << recent_message();
    });
  const float want[2][2][3] = {{{1, 2, 4}, {6, 2, 8}}, {{6, 9, 12}, {8, 4, 16}}};
  for (int s = 0; s < 2; ++s)
    workers.on(2 + s, [&](const WorkerRank& rank) {
      for (int t = 0; t < 2; ++t)
        for (int k = 0; k < 3; ++k) {
          F16 value;
          std::memcpy(&value, layout.slot(rank, 0, t, k), 2);
          EXPECT_EQ(*layout.flag(rank, 0, t, k), 1);
          EXPECT_EQ(widen(value), want[s][t][k]) << s << t << k;
        }
    });
}

TEST(FfnToAttention, MatchesItsDefinition) {
  SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()));
  std::mt19937 random(seed());
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const std::int64_t sessions = 1 + below(4), hidden = 1 + below(below(4) == 0 ? 2000 : 50);
    const Counts counts{.sessions = sessions,
                        .micro_batches = 1 + below(3),
                        .tokens = 1 + below(6),
                        .slots = 1 + below(5),
                        .slot_bytes = 2 * (hidden + below(9))};
    Workers workers(static_cast<int>(sessions + 1));
    const bool with_table = below(2) == 0;
    const std::int64_t ffn = with_table ? below(sessions + 1) : sessions;
    Words table;  // ranks of the attention workers: all but this one, in some order
    for (std::int64_t rank = 0; rank <= sessions; ++rank)
      if (rank != ffn) table.push_back(static_cast<std::int32_t>(rank));
    if (with_table) std::shuffle(table.begin(), table.end(), random);

    // Some of all slots, in any order; then rows that are not to be sent.
    std::vector<std::int64_t> slots;
    for (std::int64_t i = 0; i < counts.all_slots(); ++i)
      if (below(3) != 0) slots.push_back(i);
    std::shuffle(slots.begin(), slots.end(), random);
    const auto rows = static_cast<std::int64_t>(slots.size()), idle = below(4);
    std::vector<B16> x;
    Words session_ids, micro_batches, tokens, offsets;
    for (std::int64_t i = 0; i < rows + idle; ++i) {
      for (std::int64_t h = 0; h < hidden; ++h) x.push_back(B16::raw(static_cast<std::uint16_t>(random())));
      const std::int64_t at = i < rows ? slots[static_cast<std::size_t>(i)] : -1;
      offsets.push_back(static_cast<std::int32_t>(at % counts.slots));
      tokens.push_back(static_cast<std::int32_t>(at / counts.slots % counts.tokens));
      micro_batches.push_back(
          static_cast<std::int32_t>(at / counts.micro_batch_slots() % counts.micro_batches));
      session_ids.push_back(
          at < 0 ? -1 : static_cast<std::int32_t>(at / counts.micro_batch_slots() / counts.micro_batches));
    }
    std::mt19937 layouts(random());
    workers.on(ffn, [&](const WorkerRank& rank) {
      const auto any_layout = [&] { return static_cast<Layout>(layouts() % 4); };
      ReturnCall call(workers, counts, Tensor::of<B16>({rows + idle, hidden}, x, any_layout()));
      call.sessions = Tensor::of<std::int32_t>({rows + idle}, session_ids, any_layout());
      call.micro_batches.set(micro_batches);
      call.tokens.set(tokens);
      call.offsets = Tensor::of<std::int32_t>({rows + idle}, offsets, any_layout());
      call.count.set(std::vector<std::int64_t>{rows});
      if (with_table) call.table = Tensor::of<std::int32_t>({sessions}, table);
      ASSERT_EQ(call.run(rank), 0) << recent_message();
    });

    const AttentionLayout layout{counts};
    std::vector<std::int64_t> row_of_slot(static_cast<std::size_t>(counts.all_slots()), -1);
    for (std::int64_t i = 0; i < rows; ++i)
      row_of_slot[static_cast<std::size_t>(slots[static_cast<std::size_t>(i)])] = i;
    std::size_t index = 0;
    for (std::int64_t s = 0; s < sessions; ++s)
      for (std::int64_t m = 0; m < counts.micro_batches; ++m)
        for (std::int64_t t = 0; t < counts.tokens; ++t)
          for (std::int64_t k = 0; k < counts.slots; ++k) {
            const std::int64_t row = row_of_slot[index++];
            if (!workers.owns(table[static_cast<std::size_t>(s)])) continue;
            const WorkerRank& rank = workers[table[static_cast<std::size_t>(s)]];
            ASSERT_EQ(*layout.flag(rank, m, t, k), row < 0 ? 0 : 1);
            std::vector<B16> want(static_cast<std::size_t>(hidden)), got(want.size());
            if (row >= 0) std::copy_n(x.begin() + row * hidden, hidden, want.begin());
            std::memcpy(got.data(), layout.slot(rank, m, t, k), got.size() * 2);
            ASSERT_EQ(got, want);
          }
  }
}

TEST(FfnToAttention, SendsNothingWhenThereIsNothing) {
  Workers workers(2);
  const Counts counts{.sessions = 1, .micro_batches = 1, .tokens = 1, .slots = 1, .slot_bytes = 8};
  workers.on(1, [&](const WorkerRank& rank) {
    for (const std::int64_t rows : {0, 3}) {
      ReturnCall call(workers, counts, Tensor::empty<F16>({rows, 4}));
      EXPECT_EQ(call.run(rank), 0) << recent_message();
    }
  });
  workers.on(0, [](const WorkerRank& rank) { EXPECT_EQ(rank.words()[0], 0); });
}

}  // namespace
}  // namespace oracle
