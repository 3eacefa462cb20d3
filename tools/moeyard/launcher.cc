// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "moeyard/launcher.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <random>

#include "moeyard/first_failure.h"
#include "moeyard/rank_group.h"

namespace moeyard::tool {
namespace {

constexpr int kForwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
constexpr std::chrono::milliseconds kSettleTime{30};

}  // namespace

CaughtSignals::CaughtSignals() {
  sigset_t handled;
  sigemptyset(&handled);
  sigaddset(&handled, SIGCHLD);
  for (const int signal : kForwarded) sigaddset(&handled, signal);
  sigprocmask(SIG_BLOCK, &handled, &before_);
  descriptor_ = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
}

CaughtSignals::~CaughtSignals() {
  close(descriptor_);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

std::vector<int> CaughtSignals::take() const {
  std::vector<int> signals;
  signalfd_siginfo info;
  while (read(descriptor_, &info, sizeof info) == static_cast<ssize_t>(sizeof info))
    if (info.ssi_signo != SIGCHLD) signals.push_back(static_cast<int>(info.ssi_signo));
  return signals;
}

bool ends_programs(int signal) { return signal != SIGUSR1 && signal != SIGUSR2; }

int poll_timeout(const std::optional<std::chrono::steady_clock::time_point>& until) {
  if (!until) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(*until - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::max<std::int64_t>(left, 0));
}

void print_line(int rank, bool is_error, std::string_view text) {
  const std::string line = fmt::format("[{}] {}\n", rank, text);
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t size =
        write(is_error ? STDERR_FILENO : STDOUT_FILENO, line.data() + sent, line.size() - sent);
    if (size < 0 && errno != EINTR) return;  // nobody reads any more
    sent += size < 0 ? 0 : static_cast<std::size_t>(size);
  }
}

std::string random_text() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

Result<int> run_launch(const Launch& launch) {
  const CaughtSignals signals;
  const Host here{.name = "", .address = "127.0.0.1", .slots = launch.ranks, .is_here = true};
  RankProcesses ranks({launch.command, launch.ranks, 0, launch.ranks, rank_table_of({here}), random_text()},
                      print_line);
  // A terminal belongs to its foreground alone.
  MOEYARD_TRY(ranks.start(isatty(STDIN_FILENO) != 0 ? -1 : STDIN_FILENO, signals.before()));
  FirstFailure failure(launch.grace, kSettleTime);
  while (!ranks.all_ended()) {
    std::vector<pollfd> waiting{{signals.descriptor(), POLLIN, 0}};
    ranks.watch(waiting);
    poll(waiting.data(), waiting.size(), poll_timeout(failure.next()));
    ranks.pump();
    for (const int signal : signals.take()) {
      ranks.send(signal);
      if (ends_programs(signal)) failure.interrupted();
    }
    for (const EndedRank& ended : ranks.reap()) failure.rank_ended(ended.rank, ended.status);
    if (const auto report = failure.report(ranks.all_ended())) {
      ranks.pump();  // its last words come before ours
      fmt::print(stderr, "moeyard launch: {}\n", *report);
    }
    if (const int signal = failure.signal_due()) ranks.send(signal);
  }
  ranks.finish();
  return failure.code();
}

}  // namespace moeyard::tool
