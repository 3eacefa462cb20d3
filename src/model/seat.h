// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// One rank's part in a layer whose ranks have tokens and experts.
#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "model/combine_step.h"
#include "model/layer_run.h"

namespace moeyard::model {

// A rank with the tensors of its steps.
struct Seat {
  std::unique_ptr<Rank> rank;
  std::optional<GateStep> gate;
  std::optional<DispatchStep> dispatch;
  std::optional<ExpertsStep> experts;
  std::optional<CombineStep> combine;
  Clock::time_point began, ended;

  // Memory is given back in the context it came from, and not under the hands of queued work.
  ~Seat() {
    if (rank == nullptr || !rank->enter().ok()) return;
    (void)rank->synchronize();
  }
};

// `loaded` is called for each expert instance that is on the device.
Status set_up(const Job& job, int r, int device, Communicator communicator,
              const std::function<void()>& loaded, Seat& seat);
// The layer, once, on one rank.
Status pass(const Job& job, Seat& seat);
// Copies rank r's results to their place, and counts the rows that it received.
Status collect(const Job& job, int r, const Seat& seat, LayerRun& run);
// Counts the reads of weights, once the rows of all ranks are there.
void count_reads(const Job& job, LayerRun& run);

}  // namespace moeyard::model
