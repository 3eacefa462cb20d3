// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "model/job.h"
#include "model/progress.h"
#include "model/rank.h"

namespace moeyard::model {

// One pass of the layer over all ranks. Each rank times its phases on its own stream; ranks meet before
// dispatch and combine.
struct Pass {
  std::vector<std::array<double, kPhases>> ms_of_rank;
  double ms;  // from the first rank's begin to the last one's end
};

// What the ranks came up with.
struct LayerRun {
  std::vector<std::uint16_t> output;  // [T, H], bits of BF16 or F16
  std::vector<std::int32_t> experts;  // [T, K]
  std::vector<float> weights;         // [T, K]
  std::vector<float> scores;          // [T, E] of routers with a bias, else empty
  std::vector<std::int64_t> rows;     // [ranks, instances]: rows that a source rank sent to an instance
  std::vector<Pass> passes;
  double load_ms;  // putting weights and tokens on the devices
};

// Runs the layer `repeat` times with a rank per device, as threads of this process, through the public
// functions of acl, aclnn and hccl.
Result<LayerRun> run_expert_parallel(const Job& job, int repeat, const Progress& progress);

}  // namespace moeyard::model
