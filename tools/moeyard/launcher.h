// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "moeyard/hosts.h"

namespace moeyard::tool {

// A program to be run as several ranks.
struct Launch {
  int ranks = 1;
  std::vector<std::string> command;
  std::chrono::milliseconds grace{5000};  // for the others to end by themselves after the first failure
  std::vector<Host> hosts;                // none: this one
  std::vector<std::string> ssh;           // how to run a command on a host
  std::string remote_program;             // this program there; empty: at the same place
  std::vector<std::string> variables;     // that its ranks get from here, beside those of CANN and Moeyard
};

// Runs it: what ranks write comes out line by line with their numbers in front; signals go to all of them. Returns
// the exit code: that of the first rank that failed (128 + n if signal n has ended it), 0 if none did. Ending::bad_input:
// the command cannot be run.
Result<int> run_launch(const Launch& launch);
Result<int> run_launch_on_hosts(const Launch& launch);

// ---- What both have in common ----

// The signals that go to all ranks, and SIGCHLD, come by a descriptor while this lives.
class CaughtSignals {
 public:
  CaughtSignals();
  ~CaughtSignals();
  int descriptor() const { return descriptor_; }
  const sigset_t& before() const { return before_; }
  // Those that have come, without SIGCHLD.
  std::vector<int> take() const;

 private:
  sigset_t before_{};
  int descriptor_ = -1;
};
bool ends_programs(int signal);
// Milliseconds from now for poll; -1 for never.
int poll_timeout(const std::optional<std::chrono::steady_clock::time_point>& until);
// A rank's line with its number in front, to standard output or error.
void print_line(int rank, bool is_error, std::string_view line);
// 32 hexadecimal digits that nobody can guess.
std::string random_text();

}  // namespace moeyard::tool
