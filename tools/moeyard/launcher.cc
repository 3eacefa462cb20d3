// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "moeyard/launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <random>
#include <thread>

#include "model/errors.h"

namespace moeyard::tool {
namespace {

using Clock = std::chrono::steady_clock;
using model::bad_input;

constexpr std::chrono::seconds kTermTime{3};  // from SIGTERM to SIGKILL
constexpr std::chrono::milliseconds kSettleTime{30};
constexpr std::size_t kLongestLine = 64 * 1024;  // longer ones are cut
constexpr int kForwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

bool ends_programs(int signal) { return signal != SIGUSR1 && signal != SIGUSR2; }

// One output of one rank, passed on by whole lines.
class Stream {
 public:
  Stream(int rank, int from, int to) : rank_(rank), from_(from), to_(to) {}
  int from() const { return from_; }
  bool open() const { return from_ >= 0; }

  // Passes on what is there.
  void pump() {
    std::array<char, 16384> part;
    for (;;) {
      const ssize_t size = read(from_, part.data(), part.size());
      if (size < 0 && errno == EINTR) continue;
      if (size < 0 && errno == EAGAIN) return;
      if (size <= 0) return close_it();
      bytes_.append(part.data(), static_cast<std::size_t>(size));
      write_lines();
    }
  }
  void close_it() {
    if (!open()) return;
    if (!bytes_.empty()) write_line(bytes_);
    bytes_.clear();
    close(std::exchange(from_, -1));
  }

 private:
  void write_lines() {
    std::size_t begin = 0;
    for (std::size_t end; (end = bytes_.find('\n', begin)) != std::string::npos; begin = end + 1)
      write_line(std::string_view(bytes_).substr(begin, end - begin));
    bytes_.erase(0, begin);
    if (bytes_.size() < kLongestLine) return;
    write_line(bytes_);
    bytes_.clear();
  }
  void write_line(std::string_view text) const {
    const std::string line = fmt::format("[{}] {}\n", rank_, text);
    for (std::size_t sent = 0; sent < line.size();) {
      const ssize_t size = write(to_, line.data() + sent, line.size() - sent);
      if (size < 0 && errno != EINTR) return;  // nobody reads any more
      sent += size < 0 ? 0 : static_cast<std::size_t>(size);
    }
  }

  int rank_, from_, to_;
  std::string bytes_;
};

struct Child {
  pid_t process = -1;
  bool ended = false;
};

// Programs find each other by a table that no file system holds, and let in nobody else.
class Surroundings {
 public:
  static Result<Surroundings> make(int ranks) {
    std::random_device random;
    const auto hex = [&] { return fmt::format("{:08x}{:08x}", random(), random()); };
    std::string devices;
    for (int rank = 0; rank < ranks; ++rank)
      devices += fmt::format(R"({}{{"device_id":"{}","rank_id":"{}"}})", rank == 0 ? "" : ",", rank, rank);
    const std::string table =
        fmt::format(R"({{"version":"1.0","status":"completed","server_count":"1","server_list":[)"
                    R"({{"server_id":"launch_{}_{}","host_ip":"127.0.0.1","device":[{}]}}]}})",
                    getpid(), hex(), devices);
    Surroundings made;
    made.table_ = memfd_create("rank_table", MFD_CLOEXEC);
    if (made.table_ < 0 || write(made.table_, table.data(), table.size()) < 0)
      return Status(static_cast<int>(model::Ending::failed),
                    fmt::format("the rank table cannot be made ({}).", std::strerror(errno)));
    made.secret_ = hex() + hex();
    made.ranks_ = ranks;
    return made;
  }

  // In the process of a rank.
  void apply(int rank) const {
    const auto set = [](const char* name, const std::string& value, bool overwrite = true) {
      setenv(name, value.c_str(), overwrite ? 1 : 0);
    };
    for (const char* name : {"RANK", "LOCAL_RANK", "RANK_ID"}) set(name, std::to_string(rank));
    for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE", "RANK_SIZE"})
      set(name, std::to_string(ranks_));
    set("RANK_TABLE_FILE", fmt::format("/proc/{}/fd/{}", getppid(), table_));
    set("MOEYARD_SHARED_MEMORY", "1", false);
    set("MOEYARD_SECRET", secret_, false);
    set("MOEYARD_DEVICES", std::to_string(std::max(16, ranks_)), false);
  }

 private:
  int table_ = -1;  // open as long as this process lives
  int ranks_ = 0;
  std::string secret_;
};

class Launcher {
 public:
  explicit Launcher(const Launch& launch) : launch_(launch) {}

  Result<int> run() {
    sigset_t handled;
    sigemptyset(&handled);
    sigaddset(&handled, SIGCHLD);
    for (const int signal : kForwarded) sigaddset(&handled, signal);
    sigprocmask(SIG_BLOCK, &handled, &before_);
    signals_ = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
    const Result<int> code = start_and_watch();
    close(signals_);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    return code;
  }

 private:
  Result<int> start_and_watch() {
    const auto surroundings = Surroundings::make(launch_.ranks);
    if (!surroundings) return surroundings.error();
    for (int rank = 0; rank < launch_.ranks; ++rank) {
      if (Status started = start(rank, *surroundings); !started.ok()) {
        send_all(SIGKILL);
        for (const Child& child : children_) waitpid(child.process, nullptr, 0);
        return started;
      }
    }
    while (!all_ended()) {
      wait_and_pump();
      take_signals();
      reap();
      escalate();
    }
    for (Stream& stream : streams_) {  // what was written before the end
      if (stream.open()) stream.pump();
      stream.close_it();
    }
    return code_;
  }

  Status start(int rank, const Surroundings& surroundings) {
    int out[2], error[2], started[2];
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(error, O_CLOEXEC) != 0 || pipe2(started, O_CLOEXEC) != 0)
      return Status(static_cast<int>(model::Ending::failed),
                    fmt::format("rank {} cannot be started: {}.", rank, std::strerror(errno)));
    const pid_t process = fork();
    if (process == 0) become(rank, surroundings, out[1], error[1], started[1]);
    for (const int end : {out[1], error[1], started[1]}) close(end);
    int problem = process < 0 ? errno : 0;
    if (process > 0) {
      setpgid(process, process);
      children_.push_back({process});
      while (read(started[0], &problem, sizeof problem) < 0 && errno == EINTR) {
      }
    }
    close(started[0]);
    for (const int from : {out[0], error[0]}) {
      fcntl(from, F_SETFL, O_NONBLOCK);
      streams_.emplace_back(rank, from, from == out[0] ? STDOUT_FILENO : STDERR_FILENO);
    }
    if (problem == 0) return {};
    return bad_input("{} cannot be run ({}); name a program that is there.", launch_.command.front(),
                     std::strerror(problem));
  }

  [[noreturn]] void become(int rank, const Surroundings& surroundings, int out, int error, int started) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    if (rank != 0 || isatty(STDIN_FILENO) != 0) {  // a terminal belongs to its foreground alone
      const int nothing = open("/dev/null", O_RDONLY);
      dup2(nothing, STDIN_FILENO);
      close(nothing);
    }
    dup2(out, STDOUT_FILENO);
    dup2(error, STDERR_FILENO);
    surroundings.apply(rank);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    std::vector<char*> arguments;
    for (const std::string& argument : launch_.command)
      arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    const int problem = errno;
    if (write(started, &problem, sizeof problem) < 0) _exit(126);
    _exit(127);
  }

  void wait_and_pump() {
    std::vector<pollfd> waiting{{signals_, POLLIN, 0}};
    std::vector<Stream*> of;
    for (Stream& stream : streams_)
      if (stream.open()) {
        waiting.push_back({stream.from(), POLLIN, 0});
        of.push_back(&stream);
      }
    int timeout = -1;
    if (next_) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next_ - Clock::now());
      timeout = std::max<int>(static_cast<int>(left.count()), 0);
    }
    poll(waiting.data(), waiting.size(), timeout);
    for (std::size_t i = 0; i < of.size(); ++i)
      if (waiting[i + 1].revents != 0) of[i]->pump();
  }

  void take_signals() {
    signalfd_siginfo info;
    while (read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      const int signal = static_cast<int>(info.ssi_signo);
      if (signal == SIGCHLD) continue;
      send_all(signal);
      if (ends_programs(signal) && !next_) {
        next_ = Clock::now() + launch_.grace;
        interrupted_ = true;
      }
    }
  }

  // The first that failed. A rank that a signal has ended comes before those that exit because they miss it: they may
  // have been quicker.
  void reap() {
    std::optional<Failure> first = reap_ended();
    if (!first || code_ != 0) return;
    std::this_thread::sleep_for(kSettleTime);
    if (const auto later = reap_ended(); later && WIFSIGNALED(later->status) && !WIFSIGNALED(first->status))
      first = later;
    const int status = first->status;
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    for (Stream& stream : streams_)
      if (stream.open()) stream.pump();  // its last words come before ours
    if (interrupted_) return;
    const std::string how = WIFEXITED(status) ? fmt::format("exited with code {}", code_)
                                              : fmt::format("was ended by signal {} ({})", WTERMSIG(status),
                                                            strsignal(WTERMSIG(status)));
    fmt::print(stderr, "moeyard launch: rank {} {}{}\n", first->rank, how,
               all_ended() ? "" : "; the others are ended if they don't end by themselves");
    if (!next_) next_ = Clock::now() + launch_.grace;
  }

  struct Failure {
    int rank, status;
  };
  std::optional<Failure> reap_ended() {
    std::optional<Failure> first;
    for (int rank = 0; rank < static_cast<int>(children_.size()); ++rank) {
      Child& child = children_[static_cast<std::size_t>(rank)];
      int status = 0;
      if (child.ended || waitpid(child.process, &status, WNOHANG) != child.process) continue;
      child.ended = true;
      const bool failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
      if (failed && (!first || (WIFSIGNALED(status) && !WIFSIGNALED(first->status)))) first = {rank, status};
    }
    return first;
  }

  // After the first failure: time to end, SIGTERM, SIGKILL.
  void escalate() {
    if (!next_ || Clock::now() < *next_) return;
    send_all(terminated_ ? SIGKILL : SIGTERM);
    terminated_ = true;
    next_ = Clock::now() + kTermTime;
  }

  void send_all(int signal) const {
    for (const Child& child : children_)
      if (!child.ended) kill(-child.process, signal);
  }
  bool all_ended() const {
    return std::ranges::all_of(children_, [](const Child& child) { return child.ended; });
  }

  const Launch& launch_;
  sigset_t before_{};
  int signals_ = -1;
  std::vector<Child> children_;  // by rank
  std::vector<Stream> streams_;
  int code_ = 0;
  bool interrupted_ = false, terminated_ = false;
  std::optional<Clock::time_point> next_;  // step of the end
};

}  // namespace

Result<int> run_launch(const Launch& launch) { return Launcher(launch).run(); }

}  // namespace moeyard::tool
