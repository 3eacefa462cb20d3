// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnAttentionToFFN: the windows that it leaves against plain loops, worked examples, and how it waits for room.
#include <gmock/gmock.h>

#include <cmath>
#include <random>
#include <thread>

#include "support/afd_windows.h"

namespace oracle {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::int32_t>;

// Two attention workers (ranks 2, 3) and two FFN workers (ranks 0, 1); three routed experts and a shared one.
constexpr Counts kExample{.sessions = 2, .micro_batches = 1, .tokens = 2, .slots = 3, .slot_bytes = 512};
const Words kExampleTable = {1, 0, 0, 0, 0, 2, 0, 1, 1, 0, 1, 1, 1, 0, 0, 2, 0, 2, 1, 2};

SendCall example_call(Workers& workers, std::int32_t session) {
  std::vector<F16> x;
  for (std::int32_t t = 0; t < 2; ++t)
    for (std::int32_t h = 0; h < 4; ++h) x.emplace_back(static_cast<float>(2 * session + t + 1 + h));
  const Words ids = session == 0 ? Words{0, 1, 2, 0} : Words{1, 2, 1, 0};
  SendCall call(workers, kExample, 4, 2, 3, 0, Tensor::of<F16>({1, 2, 4}, x),
                Tensor::of<std::int32_t>({1, 2, 2}, ids), Tensor::of<std::int32_t>({1, 4, 5}, kExampleTable));
  call.from(session, 0, 0);
  return call;
}

TEST(AttentionToFfn, GivesTheWindowsOfTheWorkedExample) {
  Workers workers(4);
  const FfnLayout layout{kExample};
  for (int ffn = 0; ffn < 2; ++ffn) workers.on(ffn, [&](const WorkerRank& rank) { layout.empty(rank); });
  for (int s = 0; s < 2; ++s)
    workers.on(2 + s, [&](const WorkerRank& rank) {
      ASSERT_EQ(example_call(workers, s).run(rank), 0) << recent_message();
    });
  constexpr std::int32_t kI = kNothingHere;
  const Words want[2][2] = {{{1, 0, 0, 1, 2, kI, 0, 2}, {1, 0, kI, kI, kI, kI, 0, kI}},
                            {{1, 0, kI, kI, kI, 1, kI, kI}, {1, 0, 0, 1, 2, 0, kI, 2}}};
  for (int ffn = 0; ffn < 2; ++ffn)
    workers.on(ffn, [&](const WorkerRank& rank) {
      for (int s = 0; s < 2; ++s) {
        const std::int32_t* d = layout.descriptor(rank, s, 0);
        EXPECT_EQ(Words(d, d + 8), want[ffn][s]) << "rank " << ffn << ", session " << s;
        for (int t = 0; t < 2; ++t)
          for (int k = 0; k < 3; ++k) {
            if (want[ffn][s][static_cast<std::size_t>(2 + 3 * t + k)] == kI) continue;
            F16 first;
            std::memcpy(&first, layout.slot(rank, s, 0, t, k), 2);
            EXPECT_EQ(widen(first), static_cast<float>(2 * s + t + 1));
          }
      }
    });
}

TEST(AttentionToFfn, ChoosesCopiesBySession) {
  Workers workers(16);
  const Counts counts{.sessions = 11, .micro_batches = 1, .tokens = 1, .slots = 1};
  const FfnLayout layout{counts};
  for (int ffn = 0; ffn < 5; ++ffn) workers.on(ffn, [&](const WorkerRank& rank) { layout.empty(rank); });
  const struct {
    std::int32_t session, rank, local;
  } kWant[] = {{0, 2, 4}, {1, 3, 7}, {2, 1, 3}, {3, 2, 5}, {4, 2, 4}, {10, 1, 3}};
  for (const auto& want : kWant) {
    workers.on(5 + want.session, [&](const WorkerRank& rank) {
      SendCall call(workers, counts, 2, 1, 1, 0, Tensor::of<F16>({1, 1, 2}, {F16(1), F16(2)}),
                    Tensor::of<std::int32_t>({1, 1, 1}, {0}),
                    Tensor::of<std::int32_t>({1, 1, 9}, {4, 2, 4, 3, 7, 1, 3, 2, 5}));
      call.from(want.session, 0, 9).sync_flag = 1;
      ASSERT_EQ(call.run(rank), 0) << recent_message();
    });
    for (int ffn = 0; ffn < 5; ++ffn)
      workers.on(ffn, [&](const WorkerRank& rank) {
        const std::int32_t* d = layout.descriptor(rank, want.session, 0);
        EXPECT_EQ(Words(d, d + 3),
                  ffn == want.rank ? (Words{1, 9, want.local}) : (Words{0, 0, kNothingHere}));
      });
  }
}

TEST(AttentionToFfn, QuantisesTheWorkedExample) {
  Workers workers(2);
  const Counts counts{.sessions = 1, .micro_batches = 1, .tokens = 2, .slots = 2, .slot_bytes = 512};
  const FfnLayout layout{counts};
  workers.on(1, [&](const WorkerRank& rank) { layout.empty(rank); });
  workers.on(0, [&](const WorkerRank& rank) {
    std::vector<B16> x;
    for (const float value : {1.0f, -2.0f, 0.5f, 0.0f, 4.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f})
      x.emplace_back(value);
    SendCall call(workers, counts, 5, 1, 1, 2, Tensor::of<B16>({1, 2, 5}, x),
                  Tensor::of<std::int32_t>({1, 2, 1}, {0, 0}),
                  Tensor::of<std::int32_t>({1, 2, 3}, {1, 1, 3, 1, 1, 1}));
    call.scales = Tensor::of<float>({1, 2, 5}, {1, 1, 1, 1, 1, 0.5f, 1, 2, 1, 1});
    call.start_rank = 1;
    ASSERT_EQ(call.run(rank), 0) << recent_message();
  });
  workers.on(1, [&](const WorkerRank& rank) {
    const std::int32_t* d = layout.descriptor(rank, 0, 0);
    EXPECT_EQ(Words(d, d + 6), (Words{1, 0, 3, 1, 3, 1}));
    const std::int8_t want[2][2][5] = {{{32, -64, 16, 0, 127}, {16, -64, 32, 0, 127}}, {}};
    for (int t = 0; t < 2; ++t)
      for (int k = 0; k < 2; ++k) {
        const unsigned char* slot = layout.slot(rank, 0, 0, t, k);
        EXPECT_EQ(std::memcmp(slot, want[t][k], 5), 0);
        const unsigned char scale[2][4] = {{0x04, 0x02, 0x01, 0x3d}, {0, 0, 0, 0}};
        EXPECT_EQ(std::memcmp(slot + 5, scale[t], 4), 0);
      }
  });
}

// ---- Against the definition ---------------------------------------------------------------------------------------

struct RandomSend {
  Counts counts;
  std::int64_t hidden, topk, shared, experts, ffn_workers, start_rank, quant_mode, columns;
  std::int32_t session, micro_batch;
  Words ids, table;
  std::vector<float> x, scales;
  std::vector<std::uint8_t> mask;
  std::int64_t active = 0;
};

RandomSend random_send(std::mt19937& random) {
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  RandomSend c;
  const std::int64_t sessions = 1 + below(4);
  c.ffn_workers = 1 + below(4);
  c.start_rank = below(2) == 0 ? 0 : sessions;
  c.topk = 1 + below(4), c.shared = below(3), c.experts = c.topk + below(6);
  c.quant_mode = 2 * below(2);
  c.hidden = 1 + below(below(4) == 0 ? 1200 : 60);
  c.counts = {.sessions = sessions,
              .micro_batches = 1 + below(3),
              .tokens = 1 + below(7),
              .slots = c.topk + c.shared};
  const std::int64_t row = c.quant_mode == 2 ? c.hidden + 4 : 2 * c.hidden;
  c.counts.slot_bytes = below(2) == 0 ? align_512(row) : row + 2 * below(9);
  c.session = static_cast<std::int32_t>(below(sessions));
  c.micro_batch = static_cast<std::int32_t>(below(c.counts.micro_batches));
  for (std::int64_t t = 0; t < c.counts.tokens; ++t)
    for (std::int64_t k = 0; k < c.topk; ++k)
      c.ids.push_back(static_cast<std::int32_t>((below(c.experts) + k) % c.experts));
  c.columns = 3 + 2 * below(4) + below(2);
  for (std::int64_t e = 0; e < c.experts + c.shared; ++e) {
    c.table.push_back(static_cast<std::int32_t>(1 + below((c.columns - 1) / 2)));
    for (std::int64_t i = 1; i < c.columns; ++i)
      c.table.push_back(
          static_cast<std::int32_t>(i % 2 == 1 ? c.start_rank + below(c.ffn_workers) : below(999999)));
  }
  std::normal_distribution<float> normal(0, 5);
  for (std::int64_t i = 0; i < c.counts.tokens * c.hidden; ++i) c.x.push_back(widen(B16(normal(random))));
  if (below(6) == 0) std::fill_n(c.x.begin(), c.hidden, 0.0f);
  if (c.quant_mode == 2 && below(2) == 0)
    for (std::int64_t i = 0; i < (c.experts + c.shared) * c.hidden; ++i) c.scales.push_back(normal(random));
  c.active = c.counts.tokens;
  if (below(2) == 0) {
    c.active = below(c.counts.tokens + 1);
    for (std::int64_t t = 0; t < c.counts.tokens; ++t) c.mask.push_back(t < c.active);
  }
  return c;
}

// The bytes of a slot: the row, or its largest value's quotients and their scale.
std::vector<unsigned char> slot_reference(const RandomSend& c, std::int64_t t, std::int64_t e) {
  std::vector<unsigned char> bytes;
  const auto append = [&](const void* from, std::size_t count) {
    const auto* begin = static_cast<const unsigned char*>(from);
    bytes.insert(bytes.end(), begin, begin + count);
  };
  const float* row = &c.x[static_cast<std::size_t>(t * c.hidden)];
  if (c.quant_mode == 0) {
    for (std::int64_t h = 0; h < c.hidden; ++h) {
      const B16 value(row[h]);
      append(&value, 2);
    }
    return bytes;
  }
  std::vector<float> v(row, row + c.hidden);
  for (std::int64_t h = 0; h < c.hidden && !c.scales.empty(); ++h)
    v[static_cast<std::size_t>(h)] *= c.scales[static_cast<std::size_t>(e * c.hidden + h)];
  float largest = 0;
  for (const float value : v) largest = std::max(largest, std::fabs(value));
  const float q = 127.0f / largest;
  const float scale = largest == 0 ? 0.0f : 1.0f / q;
  for (const float value : v) {
    volatile float quotient = value * q;
    const auto rounded = static_cast<std::int8_t>(largest == 0 ? 0.0f : std::nearbyint(quotient));
    append(&rounded, 1);
  }
  append(&scale, 4);
  return bytes;
}

void expect_sent(const RandomSend& c, Workers& workers, std::int64_t own, std::int64_t sync_flag,
                 std::int32_t layer) {
  const FfnLayout layout{c.counts};
  std::vector<Words> want(static_cast<std::size_t>(c.ffn_workers));
  std::vector<bool> used(static_cast<std::size_t>(c.ffn_workers), sync_flag == 0);
  for (Words& words : want) words.assign(static_cast<std::size_t>(layout.words()), kNothingHere);
  for (std::int64_t t = 0; t < c.active; ++t)
    for (std::int64_t k = 0; k < c.counts.slots; ++k) {
      const std::int64_t e = k < c.topk ? c.ids[t * c.topk + k] : c.experts + k - c.topk;
      const std::int32_t* row = &c.table[static_cast<std::size_t>(e * c.columns)];
      const std::int64_t copy = c.session % row[0];
      const std::int64_t worker = row[1 + 2 * copy] - c.start_rank;
      used[worker] = true;
      want[worker][2 + t * c.counts.slots + k] = row[2 + 2 * copy];
      if (!workers.owns(c.start_rank + worker)) continue;
      const auto bytes = slot_reference(c, t, e);
      const unsigned char* slot = layout.slot(workers[c.start_rank + worker], c.session, c.micro_batch, t, k);
      ASSERT_EQ(std::vector<unsigned char>(slot, slot + bytes.size()), bytes)
          << "token " << t << ", slot " << k;
    }
  for (std::int64_t worker = 0; worker < c.ffn_workers; ++worker) {
    want[worker][0] = used[worker] ? 1 : 0;
    want[worker][1] = used[worker] ? layer : 0;
    if (!workers.owns(c.start_rank + worker)) continue;
    for (std::int64_t s = 0; s < c.counts.sessions; ++s)
      for (std::int64_t m = 0; m < c.counts.micro_batches; ++m) {
        const std::int32_t* d = layout.descriptor(workers[c.start_rank + worker], s, m);
        Words empty(static_cast<std::size_t>(layout.words()), kNothingHere);
        empty[0] = empty[1] = 0;
        ASSERT_EQ(Words(d, d + layout.words()), s == c.session && m == c.micro_batch ? want[worker] : empty);
      }
  }
  if (!workers.owns(own)) return;
  const AttentionLayout attention{c.counts};
  for (std::int64_t m = 0; m < c.counts.micro_batches; ++m)
    for (std::int64_t t = 0; t < c.counts.tokens; ++t)
      for (std::int64_t k = 0; k < c.counts.slots; ++k)
        ASSERT_EQ(*attention.flag(workers[own], m, t, k), m == c.micro_batch && t >= c.active ? 1 : 0);
}

TEST(AttentionToFfn, MatchesItsDefinition) {
  SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()));
  std::mt19937 random(seed());
  for (int round = 0; round < 120; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const RandomSend c = random_send(random);
    Workers workers(static_cast<int>(c.counts.sessions + c.ffn_workers));
    const FfnLayout layout{c.counts};
    for (std::int64_t worker = 0; worker < c.ffn_workers; ++worker)
      if (workers.owns(c.start_rank + worker)) layout.empty(workers[c.start_rank + worker]);
    meet_processes();
    const std::int64_t own = c.session + (c.start_rank == 0 ? c.ffn_workers : 0);
    const auto sync_flag = static_cast<std::int64_t>(random() % 2);
    std::mt19937 layouts(random());
    workers.on(own, [&](const WorkerRank& rank) {
      const auto any_layout = [&] { return static_cast<Layout>(layouts() % 4); };
      std::vector<B16> x;
      for (const float value : c.x) x.emplace_back(value);
      SendCall call(workers, c.counts, c.hidden, c.topk, c.experts, c.quant_mode,
                    Tensor::of<B16>({1, c.counts.tokens, c.hidden}, x, any_layout()),
                    Tensor::of<std::int32_t>({1, c.counts.tokens, c.topk}, c.ids, any_layout()),
                    Tensor::of<std::int32_t>({1, c.experts + c.shared, c.columns}, c.table, any_layout()));
      if (!c.scales.empty())
        call.scales = Tensor::of<float>({1, c.experts + c.shared, c.hidden}, c.scales, any_layout());
      if (!c.mask.empty()) call.mask = Tensor::of<std::uint8_t>({1, c.counts.tokens}, c.mask, any_layout());
      call.from(c.session, c.micro_batch, round).start_rank = c.start_rank;
      call.sync_flag = sync_flag;
      ASSERT_EQ(call.run(rank), 0) << recent_message();
    });
    expect_sent(c, workers, own, sync_flag, round);
    if (HasFailure()) return;
  }
}

// ---- Waiting for room ----------------------------------------------------------------------------------------------

TEST(AttentionToFfn, WaitsUntilTheLastTokensAreTaken) {
  Workers workers(4);
  const FfnLayout layout{kExample};
  const auto descriptor = [&](const WorkerRank& rank) { return layout.descriptor(rank, 0, 0); };
  for (int ffn = 0; ffn < 2; ++ffn)
    workers.on(ffn, [&](const WorkerRank& rank) {
      layout.empty(rank);
      if (ffn == 1) store_word(descriptor(rank), 1);
    });
  std::optional<SendCall> call;
  std::optional<Launched> launched;
  workers.on(2, [&](const WorkerRank& rank) {
    call.emplace(example_call(workers, 0));
    call->layer.set(Words{3});
    launched.emplace(call->launch(rank));
    ASSERT_EQ(launched->code, 0) << recent_message();
    EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(rank.stream, 30), 507046);
  });
  workers.on(0, [&](const WorkerRank& rank) {
    EXPECT_EQ(load_word(descriptor(rank)), 0);  // written to nobody before there is room everywhere
    EXPECT_EQ(descriptor(rank)[2], kNothingHere);
  });
  workers.on(1, [&](const WorkerRank& rank) { store_word(descriptor(rank), 0); });
  workers.on(2, [&](const WorkerRank& rank) { EXPECT_EQ(rank.synchronize(), 0) << recent_message(); });
  workers.on(1, [&](const WorkerRank& rank) { EXPECT_EQ(descriptor(rank)[1], 3); });

  // Asynchronously, a worker that gets nothing is not waited for.
  workers.on(0, [&](const WorkerRank& rank) { store_word(descriptor(rank), 0); });
  workers.on(2, [&](const WorkerRank& rank) {
    SendCall to_one = example_call(workers, 0);
    to_one.expert_ids.set(Words{0, 1, 1, 0});
    to_one.sync_flag = 1;
    EXPECT_EQ(to_one.run(rank), 0) << recent_message();
  });
  workers.on(1, [&](const WorkerRank& rank) { EXPECT_EQ(load_word(descriptor(rank)), 1); });
}

TEST(AttentionToFfn, GivesUpWhenTheTimeIsOverAndCanBeRepeated) {
  Workers workers(4);
  const FfnLayout layout{kExample};
  for (int ffn = 0; ffn < 2; ++ffn) workers.on(ffn, [&](const WorkerRank& rank) { layout.empty(rank); });
  workers.on(1, [&](const WorkerRank& rank) { store_word(layout.descriptor(rank, 0, 0), 1); });
  std::uint64_t actual = 0;
  workers.on(2, [&](const WorkerRank& rank) {
    ASSERT_EQ(aclrtSetOpExecuteTimeOutV2(50000, &actual), 0);
    EXPECT_EQ(example_call(workers, 0).run(rank), 507034);
    EXPECT_THAT(recent_message(),
                HasSubstr("for rank 1 to take the last tokens of session 0, micro-batch 0"));
  });
  workers.on(1, [&](const WorkerRank& rank) { store_word(layout.descriptor(rank, 0, 0), 0); });
  workers.on(2, [&](const WorkerRank& rank) {
    EXPECT_EQ(example_call(workers, 0).run(rank), 0) << recent_message();
    ASSERT_EQ(aclrtSetOpExecuteTimeOutV2(0, &actual), 0);
  });
}

}  // namespace
}  // namespace oracle
