// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "moeyard/rank_group.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "model/errors.h"

namespace moeyard::tool {
namespace {

using model::bad_input;
using model::run_failed;
constexpr std::size_t kLongestLine = 64 * 1024;  // longer ones are cut

}  // namespace

// One output of one rank, passed on by whole lines.
class RankProcesses::Stream {
 public:
  Stream(int rank, bool is_error, int from, const Listener& listener)
      : rank_(rank), is_error_(is_error), from_(from), listener_(listener) {}
  int from() const { return from_; }
  bool open() const { return from_ >= 0; }

  // Passes on what is there.
  void pump() {
    std::array<char, 16384> part;
    while (open()) {
      const ssize_t size = read(from_, part.data(), part.size());
      if (size < 0 && errno == EINTR) continue;
      if (size < 0 && errno == EAGAIN) return;
      if (size <= 0) return close_it();
      bytes_.append(part.data(), static_cast<std::size_t>(size));
      pass_lines();
    }
  }
  void close_it() {
    if (!open()) return;
    if (!bytes_.empty()) listener_(rank_, is_error_, bytes_);
    bytes_.clear();
    close(std::exchange(from_, -1));
  }

 private:
  void pass_lines() {
    std::size_t begin = 0;
    for (std::size_t end; (end = bytes_.find('\n', begin)) != std::string::npos; begin = end + 1)
      listener_(rank_, is_error_, std::string_view(bytes_).substr(begin, end - begin));
    bytes_.erase(0, begin);
    if (bytes_.size() < kLongestLine) return;
    listener_(rank_, is_error_, bytes_);
    bytes_.clear();
  }

  int rank_;
  bool is_error_;
  int from_;
  const Listener& listener_;
  std::string bytes_;
};

RankProcesses::RankProcesses(RankGroup group, Listener listener)
    : group_(std::move(group)), listener_(std::move(listener)) {}

RankProcesses::~RankProcesses() {
  send(SIGKILL);
  for (const Child& child : children_)
    if (!child.ended) waitpid(child.process, nullptr, 0);
  for (Stream& stream : streams_) stream.close_it();
  if (table_ >= 0) close(table_);
}

Status RankProcesses::start(int input, const sigset_t& signals) {
  table_ = memfd_create("rank_table", MFD_CLOEXEC);
  if (table_ < 0 || write(table_, group_.table.data(), group_.table.size()) < 0)
    return run_failed("the rank table cannot be made ({}).", std::strerror(errno));
  for (int index = 0; index < group_.count; ++index) {
    if (Status started = start_rank(index, input, signals); !started.ok()) {
      send(SIGKILL);
      return started;
    }
  }
  return {};
}

Status RankProcesses::start_rank(int index, int input, const sigset_t& signals) {
  const int rank = group_.first + index;
  int out[2], error[2], started[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(error, O_CLOEXEC) != 0 || pipe2(started, O_CLOEXEC) != 0)
    return run_failed("rank {} cannot be started: {}.", rank, std::strerror(errno));
  const pid_t process = fork();
  if (process == 0) become(index, input, out[1], error[1], started[1], signals);
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
    streams_.emplace_back(rank, from == error[0], from, listener_);
  }
  if (problem == 0) return {};
  return bad_input("{} cannot be run ({}); name a program that is there.", group_.command.front(),
                   std::strerror(problem));
}

void RankProcesses::become(int index, int input, int out, int error, int started,
                           const sigset_t& signals) const {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);
  if (group_.first + index != 0 || input < 0) {
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    close(nothing);
  } else if (input != STDIN_FILENO) {
    dup2(input, STDIN_FILENO);
  }
  dup2(out, STDOUT_FILENO);
  dup2(error, STDERR_FILENO);
  set_variables(index);
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  std::vector<char*> arguments;
  for (const std::string& argument : group_.command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int problem = errno;
  if (write(started, &problem, sizeof problem) < 0) _exit(126);
  _exit(127);
}

void RankProcesses::set_variables(int index) const {
  const auto set = [](const char* name, const std::string& value, bool overwrite = true) {
    setenv(name, value.c_str(), overwrite ? 1 : 0);
  };
  for (const char* name : {"RANK", "RANK_ID"}) set(name, std::to_string(group_.first + index));
  for (const char* name : {"WORLD_SIZE", "RANK_SIZE"}) set(name, std::to_string(group_.ranks));
  set("LOCAL_RANK", std::to_string(index));
  set("LOCAL_WORLD_SIZE", std::to_string(group_.count));
  set("RANK_TABLE_FILE", fmt::format("/proc/{}/fd/{}", getppid(), table_));
  set("MOEYARD_SHARED_MEMORY", "1", false);
  set("MOEYARD_SECRET", group_.secret, false);
  set("MOEYARD_DEVICES", std::to_string(std::max(16, group_.count)), false);
}

void RankProcesses::watch(std::vector<pollfd>& waiting) const {
  for (const Stream& stream : streams_)
    if (stream.open()) waiting.push_back({stream.from(), POLLIN, 0});
}

void RankProcesses::pump() {
  for (Stream& stream : streams_) stream.pump();
}

std::vector<EndedRank> RankProcesses::reap() {
  std::vector<EndedRank> ended;
  for (std::size_t index = 0; index < children_.size(); ++index) {
    Child& child = children_[index];
    int status = 0;
    if (child.ended || waitpid(child.process, &status, WNOHANG) != child.process) continue;
    child.ended = true;
    ended.push_back({group_.first + static_cast<int>(index), status});
  }
  return ended;
}

bool RankProcesses::all_ended() const {
  return std::ranges::all_of(children_, [](const Child& child) { return child.ended; });
}

void RankProcesses::send(int signal) const {
  for (const Child& child : children_)
    if (!child.ended) kill(-child.process, signal);
}

void RankProcesses::finish() {
  for (Stream& stream : streams_) {
    stream.pump();
    stream.close_it();
  }
}

}  // namespace moeyard::tool
