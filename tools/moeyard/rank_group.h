// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <poll.h>

#include <csignal>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace moeyard::tool {

// Some ranks of a program, one after the other, and what they find in their environment.
struct RankGroup {
  std::vector<std::string> command;
  int ranks = 1;             // in all
  int first = 0, count = 1;  // here; their numbers here are those of their devices
  std::string table;         // rank table
  std::string secret;        // of those who have none yet
};

struct EndedRank {
  int rank, status;  // as waitpid tells it
};

// Their processes, on this host. Ended with this one, or with the thread that started them.
class RankProcesses {
 public:
  // Told every line that a rank writes, without its end.
  using Listener = std::function<void(int rank, bool is_error, std::string_view line)>;
  RankProcesses(RankGroup group, Listener listener);
  RankProcesses(const RankProcesses&) = delete;
  ~RankProcesses();

  // `input`: what rank 0 reads, if it is here; -1: nothing. `signals`: what the processes block. On failure none is
  // left; Ending::bad_input: the command cannot be run.
  Status start(int input, const sigset_t& signals);
  // For poll: where ranks write, and then what is there.
  void watch(std::vector<pollfd>& waiting) const;
  void pump();
  // Those that have ended since the last time.
  std::vector<EndedRank> reap();
  bool all_ended() const;
  void send(int signal) const;
  // Passes on what was written before the end.
  void finish();

 private:
  class Stream;
  struct Child {
    pid_t process = -1;
    bool ended = false;
  };
  Status start_rank(int index, int input, const sigset_t& signals);
  [[noreturn]] void become(int index, int input, int out, int error, int started,
                           const sigset_t& signals) const;
  void set_variables(int index) const;

  const RankGroup group_;
  const Listener listener_;
  int table_ = -1;  // a file in memory, open as long as this process lives
  std::vector<Child> children_;
  std::list<Stream> streams_;
};

}  // namespace moeyard::tool
