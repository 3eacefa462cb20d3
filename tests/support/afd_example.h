// Moeyard. SPDX-License-Identifier: Apache-2.0
// A small deployment of two sessions whose results are worked out by hand.
#pragma once
#include <vector>

#include "support/afd_batching.h"

namespace oracle {

// The worked example: two sessions, two micro-batches, two tokens of three slots, H 8.
constexpr Counts kExample{.sessions = 2, .micro_batches = 2, .tokens = 2, .slots = 3, .slot_bytes = 512};
constexpr std::int64_t kExampleHidden = 8;
inline const std::vector<std::int32_t> kExampleIds[2][2] = {{{2, 0, 4, 1, 3, 4}, {3, 2, 4, 0, 1, 4}},
                                                            {{0, 2, 4, 2, 1, 4}, {1, 0, 4, 3, 0, 4}}};

inline float example_value(std::int64_t s, std::int64_t m, std::int64_t t, std::int64_t h) {
  return static_cast<float>(100 * s + 10 * m + t) + static_cast<float>(h) / 8;
}

inline void send_example(FfnSide& side, std::int64_t s, std::int64_t m) {
  for (std::int64_t t = 0; t < 2; ++t)
    for (std::int64_t k = 0; k < 3; ++k)
      for (std::int64_t h = 0; h < kExampleHidden; ++h) {
        const F16 value(example_value(s, m, t, h));
        std::memcpy(side.slot(s, m, t, k) + 2 * h, &value, 2);
      }
  side.post(s, m, m == 0 ? 5 : 6, kExampleIds[s][m]);
}

inline BatchingCall example_call(FfnSide& side, std::int64_t need_schedule) {
  return BatchingCall(side.context, {2, 2, 3, kExampleHidden}, 8, 0, need_schedule);
}

// (expert, session, micro-batch, token, slot) of every row.
inline const std::vector<BatchedRow> kExampleRows = {
    {0, 0, 0, 0, 1}, {0, 1, 0, 0, 0}, {1, 0, 0, 1, 0}, {1, 1, 0, 1, 1}, {2, 0, 0, 0, 0}, {2, 1, 0, 0, 1},
    {2, 1, 0, 1, 0}, {3, 0, 0, 1, 1}, {4, 0, 0, 0, 2}, {4, 0, 0, 1, 2}, {4, 1, 0, 0, 2}, {4, 1, 0, 1, 2}};

// As if a scheduler had collected these.
inline void collect(FfnSide& side, const std::vector<CollectedSession>& collected) {
  auto* sessions = static_cast<std::int32_t*>(side.session_ids.memory());
  auto* micro_batches = static_cast<std::int32_t*>(side.micro_batch_ids.memory());
  auto* ids = static_cast<std::int32_t*>(side.expert_ids.memory());
  for (const CollectedSession& c : collected) {
    *sessions++ = c.session;
    *micro_batches++ = c.micro_batch;
    ids = std::copy(c.ids.begin(), c.ids.end(), ids);
  }
  side.context.set<std::uint32_t>(kOutNum, static_cast<std::uint32_t>(collected.size()));
}

// Two sessions that sent micro-batch 0, collected already for needSchedule 0.
inline void fill_example(FfnSide& side, std::int64_t need_schedule) {
  send_example(side, 0, 0);
  send_example(side, 1, 0);
  if (need_schedule == 0) collect(side, {{0, 0, kExampleIds[0][0]}, {1, 0, kExampleIds[1][0]}});
}

}  // namespace oracle
