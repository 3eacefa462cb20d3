// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/layer_run.h"

namespace moeyard::model {

struct TimedPass {
  std::int64_t began, ended;  // steady clock of the rank's host, in ns
  PhaseTimes ms;
};

// What one rank of a run, alone in its process, has to tell: its part of the results and its times.
struct Record {
  LayerRun run;  // its own tokens, and the rows that came to its experts
  std::vector<TimedPass> passes;
  std::int64_t load_ns = 0;

  static Record of(const Job& job, int repeat);
};

// A rank's record as bytes: only what is its own.
std::int64_t record_bytes(const Job& job, int r, int repeat);
std::vector<std::byte> pack_record(const Job& job, int r, Record& record);

// Puts the records of all ranks together. `one_clock`: they are on one host, so that a pass lasts from the first one's
// begin to the last one's end; else as long as that of the slowest.
LayerRun join_records(const Job& job, int repeat, const std::vector<std::span<const std::byte>>& records,
                      bool one_clock);

}  // namespace moeyard::model
