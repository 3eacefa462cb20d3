// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>

#include "model/record.h"
#include "model/world.h"

namespace moeyard::model {

// A rank's part in a run whose ranks are processes.
class Part {
 public:
  virtual ~Part() = default;
  // Puts weights and tokens on the device; `loaded` is called for each expert instance.
  virtual Status set_up(const Place& place, Communicator communicator,
                        const std::function<void()>& loaded) = 0;
  // Before the ranks meet for a pass.
  virtual Status begin() { return {}; }
  virtual Status pass(World& world, TimedPass& timed) = 0;
  virtual Status collect(LayerRun& run, int passes) = 0;
};
// With tokens and experts, or one of both.
std::unique_ptr<Part> make_part(const Job& job);
std::unique_ptr<Part> make_disaggregated_part(const Job& job);
std::int64_t ns_of(Clock::time_point at);

// The passes and results of a rank that is set up. `began` is called before each pass.
Status run_part(Part& part, World& world, const std::function<void()>& began, Record& record);

}  // namespace moeyard::model
