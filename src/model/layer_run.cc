// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/layer_run.h"

#include <numeric>

namespace moeyard::model {

LayerRun LayerRun::of(const Job& job) {
  const LayerConfig& config = job.layer.config;
  const std::int64_t tokens = job.tokens.count;
  LayerRun run{};
  run.output.resize(tokens * config.hidden);
  run.experts.resize(tokens * config.topk);
  run.weights.resize(tokens * config.topk);
  if (!job.layer.bias.empty()) run.scores.resize(tokens * config.experts);
  run.rows.resize(job.token_ranks() * job.placement.instances());
  return run;
}

Result<std::vector<Communicator>> make_communicators(int ranks) {
  std::vector<std::int32_t> devices(ranks);
  std::iota(devices.begin(), devices.end(), 0);
  std::vector<HcclComm> made(ranks);
  MOEYARD_TRY(checked(HcclCommInitAll(static_cast<std::uint32_t>(ranks), devices.data(), made.data()),
                      "HcclCommInitAll"));
  std::vector<Communicator> owned;
  for (HcclComm communicator : made) owned.emplace_back(communicator);
  return owned;
}

}  // namespace moeyard::model
