// Moeyard. SPDX-License-Identifier: Apache-2.0
// A rank's way into a communicator that gathers in another process.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "comm/bootstrap/channel.h"
#include "comm/bootstrap/gathering.h"

namespace moeyard::comm {

// Where a communicator gathers.
struct Target {
  std::vector<std::string> addresses;      // one of them
  std::vector<std::pair<int, int>> ports;  // one of them
  GatheringId id;
  std::string secret;
};

// By a root info of another process.
class RemoteGathering final : public Rendezvous {
 public:
  explicit RemoteGathering(Target target) : target_(std::move(target)) {}
  Result<std::shared_ptr<Group>> arrive(std::string_view function, const Candidate& candidate,
                                        std::chrono::milliseconds timeout) override;
  void cancel(int) override { cancelled_ = true; }

 private:
  const Target target_;
  std::atomic<bool> cancelled_{false};
};

// By a rank table, for ranks other than 0: rank 0 may come to this process, or be in another one.
class TableRendezvous final : public Rendezvous {
 public:
  TableRendezvous(std::shared_ptr<Gathering> here, Target elsewhere)
      : here_(std::move(here)), elsewhere_(std::move(elsewhere)) {}
  Result<std::shared_ptr<Group>> arrive(std::string_view function, const Candidate& candidate,
                                        std::chrono::milliseconds timeout) override;
  void cancel(int rank) override {
    cancelled_ = true;
    here_->cancel(rank);
  }

 private:
  const std::shared_ptr<Gathering> here_;
  const Target elsewhere_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace moeyard::comm
