// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "moeyard/first_failure.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "model/errors.h"

namespace moeyard::tool {

namespace {
constexpr std::chrono::seconds kTermTime{3};  // from SIGTERM to SIGKILL
}

void FirstFailure::rank_ended(int rank, int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  if (WIFEXITED(status))
    return add({rank, 0, WEXITSTATUS(status), fmt::format("exited with code {}", WEXITSTATUS(status))});
  const int signal = WTERMSIG(status);
  add({rank, 1, 128 + signal, fmt::format("was ended by signal {} ({})", signal, strsignal(signal))});
}

void FirstFailure::rank_lost(int rank, const std::string& why) {
  add({rank, 2, static_cast<int>(model::Ending::failed), "is lost: " + why});
}

void FirstFailure::add(Failure failure) {
  if (decided_ || (first_ && first_->weight >= failure.weight)) return;
  if (!first_) decision_ = Clock::now() + settle_;
  first_ = std::move(failure);
}

void FirstFailure::interrupted() {
  interrupted_ = true;
  if (!next_) next_ = Clock::now() + grace_;
}

std::optional<std::string> FirstFailure::report(bool all_ended) {
  if (!first_ || decided_ || (!all_ended && Clock::now() < *decision_)) return std::nullopt;
  decided_ = true;
  code_ = first_->code;
  if (interrupted_) return std::nullopt;
  if (!next_) next_ = Clock::now() + grace_;
  return fmt::format("rank {} {}{}", first_->rank, first_->how,
                     all_ended ? "" : "; the others are ended if they don't end by themselves");
}

int FirstFailure::signal_due() {
  if (!next_ || Clock::now() < *next_) return 0;
  next_ = Clock::now() + kTermTime;
  if (!terminated_) {
    terminated_ = true;
    return SIGTERM;
  }
  ++kills_;
  return SIGKILL;
}

std::optional<FirstFailure::Clock::time_point> FirstFailure::next() const {
  if (!first_ || decided_) return next_;
  return next_ ? std::min(*next_, *decision_) : *decision_;
}

}  // namespace moeyard::tool
