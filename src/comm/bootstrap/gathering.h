// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// Where the ranks of a communicator that were started on their own find each other: at the process that made the
// root info, or that has rank 0 of the rank table. Its own ranks come here as threads, those of other processes
// through its Server.
//
//   a rank comes:       hello      its number and what it wants; compared with those before
//   all have come:      table      who they are; the processes of each host share their memory
//   a rank is done:     ready      with that, or why not
//   all are done:       go
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "comm/bootstrap/membership.h"

namespace moeyard::comm {

// A communicator in the making, as a rank sees it. Errors are HCCL's codes.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  // Waits until all ranks have come and returns the candidate's. HCCL_E_PARA: its rank, size, device or spec
  // contradicts another's; HCCL_E_TIMEOUT: ranks did not come, the message names them; HCCL_E_REMOTE: a rank's
  // process has ended. A timeout of 0 waits for ever.
  virtual Result<std::shared_ptr<Group>> arrive(std::string_view function, const Candidate& candidate,
                                                std::chrono::milliseconds timeout) = 0;
  // A rank that waits in arrive() gives up: everybody gets HCCL_E_UNAVAIL.
  virtual void cancel(int rank) = 0;
};

class Gathering final : public Rendezvous {
 public:
  enum class OnDuplicate {
    fail_all,     // of a root info: the communicator can't come about any more
    refuse_late,  // of a rank table: the first one waits on
  };
  explicit Gathering(OnDuplicate on_duplicate) : on_duplicate_(on_duplicate) {}

  Result<std::shared_ptr<Group>> arrive(std::string_view function, const Candidate& candidate,
                                        std::chrono::milliseconds timeout) override;
  void cancel(int rank) override;

  // For ranks of other processes. `reply` sends them a frame; it may be called by any thread, and under a lock.
  using Reply = std::function<void(Frame, const std::string&)>;
  Status enter(std::string_view function, const Candidate& candidate, std::chrono::milliseconds timeout,
               Reply reply);
  void ready(int rank, const Status& status);
  void leave(int rank);  // its process has ended
  // Ends when the first deadline of a rank has passed.
  void expire();

  // The two halves of arrive() for a rank of this process that looks for the others elsewhere meanwhile: it comes,
  // and waits for the rest; or goes again, as it has found them.
  Status enter(std::string_view function, const Candidate& candidate, std::chrono::milliseconds timeout) {
    return enter(function, candidate, timeout, {});
  }
  Result<std::shared_ptr<Group>> conclude(std::string_view function, int rank, const Deadline& deadline);
  void forget(int rank);
  // It has found them: what became of it.
  void hand_out(int rank, const std::shared_ptr<Group>& group);
  // All have come, or it is over.
  bool settled() const;
  // What a timeout's message says beside the missing ranks.
  void note(std::string text);

  bool over() const;
  // Whether the communicator came about and this rank of it has not been destroyed; any: whether any rank is.
  bool is_alive(int rank) const;
  bool any_alive() const;

 private:
  struct Entry {
    Candidate candidate;
    Deadline deadline = Deadline::never();
    std::chrono::milliseconds timeout{0};
    Reply reply;  // none: of this process
    bool ready = false;
  };
  Status check(std::string_view function, const Candidate& candidate) const;
  Status enter_locked(std::string_view function, const Candidate& candidate,
                      std::chrono::milliseconds timeout, Reply reply);
  void complete(std::string_view function);
  void ready_locked(int rank, const Status& status);
  void end_with(Status failure);
  std::string missing() const;

  const OnDuplicate on_duplicate_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::optional<Entry>> entries_;  // by rank
  int size_ = 0;                               // 0: nobody has come yet
  int come_ = 0;
  int ready_ = 0;
  Spec spec_;
  std::string function_;
  std::string note_;
  std::optional<Membership> membership_;  // once all have come, if they are in several processes
  bool over_ = false;
  Status failure_;
  std::vector<std::shared_ptr<Group>> groups_;  // of ranks in one process, until they are handed out
  std::vector<std::weak_ptr<Group>> handed_out_;
};

// Names ranks, at most eight: "rank 3", "ranks 1, 2 and 5 more".
std::string list_of_ranks(const std::vector<int>& ranks);

}  // namespace moeyard::comm
