// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <optional>
#include <string>

namespace moeyard::tool {

// Which rank of a launch failed first, and what becomes of the others: they have some time to end by themselves, then get
// SIGTERM, then SIGKILL.
class FirstFailure {
 public:
  using Clock = std::chrono::steady_clock;
  // `settle`: how long after the first failure one that came before it may become known.
  FirstFailure(std::chrono::milliseconds grace, std::chrono::milliseconds settle)
      : grace_(grace), settle_(settle) {}

  // A rank has ended, as waitpid tells it. One that a signal has ended comes before those that exit because they miss it.
  void rank_ended(int rank, int status);
  // A rank that is lost, and why: it comes before all others.
  void rank_lost(int rank, const std::string& why);
  // A signal that ends programs was passed on: no rank is to blame.
  void interrupted();

  // Anything to say by now, once.
  std::optional<std::string> report(bool all_ended);
  // The signal that the others get by now; 0: none.
  int signal_due();
  // How often SIGKILL was due without success.
  int kills() const { return kills_; }
  // When to ask again.
  std::optional<Clock::time_point> next() const;
  // The exit code: that of the first rank that failed.
  int code() const { return code_; }

 private:
  struct Failure {
    int rank, weight, code;
    std::string how;
  };
  void add(Failure failure);

  const std::chrono::milliseconds grace_, settle_;
  std::optional<Failure> first_;
  std::optional<Clock::time_point> decision_, next_;
  bool decided_ = false, interrupted_ = false, terminated_ = false;
  int code_ = 0, kills_ = 0;
};

}  // namespace moeyard::tool
