// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/rank.h"

namespace moeyard::model {

// Which rank a process is, of how many, and the device that it uses.
struct Place {
  int rank, ranks, device;
};

// All ranks of a run, as one of them that has its process for itself sees them: a communicator for what they
// settle among each other, beside those that they work with.
class World {
 public:
  // `exchange` gets what HcclGetRootInfo made on rank 0 to all others.
  static Result<World> join(const Place& place, const std::function<Status(HcclRootInfo&)>& exchange);
  static Result<World> join(const Place& place, const std::string& rank_table);

  const Place& place() const { return place_; }
  // Another communicator of all ranks.
  Result<Communicator> communicator();
  // Waits for all ranks.
  Status meet();
  // Ends a meet() of another thread.
  void abort() { rank_->abort(); }
  // The failure of the lowest rank that has one, or success: all ranks get the same code. Its message names the rank,
  // on rank 0; elsewhere it is empty, as one that tells is enough.
  Status agree(const Status& mine);
  // Ending::bad_input, told as above, unless all ranks have the same values under these names.
  Status compare(const std::vector<std::pair<const char*, std::int64_t>>& values);
  // What every rank has, by rank, on rank 0. `bytes` says how much each has.
  Result<std::vector<std::vector<std::byte>>> gather(std::span<const std::byte> mine,
                                                     const std::vector<std::int64_t>& bytes);

 private:
  World(const Place& place, std::unique_ptr<Rank> rank) : place_(place), rank_(std::move(rank)) {}
  // As many bytes from each rank, one after the other.
  Result<std::vector<std::byte>> all(std::span<const std::byte> mine);

  Place place_;
  std::unique_ptr<Rank> rank_;
};

}  // namespace moeyard::model
