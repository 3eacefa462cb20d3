// Moeyard. SPDX-License-Identifier: Apache-2.0
// A launch on several hosts, as the one who starts it sees it: an agent on each, over ssh or as a child process.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <list>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "model/errors.h"
#include "moeyard/agent.h"
#include "moeyard/first_failure.h"
#include "moeyard/launcher.h"

namespace moeyard::tool {
namespace {

using model::run_failed;
constexpr std::chrono::milliseconds kSettleTime{200};  // news of several hosts
constexpr std::chrono::seconds kClosingTime{1};
constexpr int kMostKills = 2;  // then the connections are cut

// This program's own file.
std::string own_path() {
  char path[PATH_MAX + 1] = {};
  return readlink("/proc/self/exe", path, PATH_MAX) > 0 ? path : "moeyard";
}

std::string quoted_for_shell(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// Variables that ranks get from here. Addresses and interfaces are a matter of each host.
bool is_passed_on(std::string_view name, const std::vector<std::string>& more) {
  if (name == "HCCL_IF_IP" || name == "HCCL_SOCKET_IFNAME")
    return std::ranges::find(more, name) != more.end();
  for (const char* prefix : {"MOEYARD_", "HCCL_", "ASCEND_"})
    if (name.starts_with(prefix)) return true;
  return name == "PATH" || name == "LD_LIBRARY_PATH" || std::ranges::find(more, name) != more.end();
}

nlohmann::json passed_variables(const std::vector<std::string>& more) {
  nlohmann::json variables = nlohmann::json::object();
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos && is_passed_on(text.substr(0, equals), more))
      variables[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
  return variables;
}

// The agent of one host.
class Connection {
 public:
  Connection(const Host& host, int first)
      : host_(host), first_(first), ended_(static_cast<std::size_t>(host.slots)) {}
  Connection(const Connection&) = delete;
  ~Connection() { cut(); }

  Status start(const Launch& launch, const sigset_t& signals) {
    int in[2], out[2], error[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(error, O_CLOEXEC) != 0)
      return run_failed("host {}: no pipes for its agent ({}).", host_.name, std::strerror(errno));
    std::vector<std::string> command = {own_path(), "launch", "--agent"};
    if (!host_.is_here) {
      const std::string there = launch.remote_program.empty() ? own_path() : launch.remote_program;
      command = launch.ssh;
      command.push_back(host_.name);
      command.push_back(quoted_for_shell(there) + " launch --agent");
    }
    process_ = fork();
    if (process_ == 0) become(command, in[0], out[1], error[1], signals);
    for (const int end : {in[0], out[1], error[1]}) close(end);
    in_ = in[1];
    out_ = out[0];
    error_ = error[0];
    for (const int end : {in_, out_, error_}) fcntl(end, F_SETFL, O_NONBLOCK);
    if (process_ < 0)
      return run_failed("host {}: no process for its agent ({}).", host_.name, std::strerror(errno));
    to_agent_ = std::make_unique<Outgoing>(in_);
    return {};
  }

  const Host& host() const { return host_; }
  void send(Message kind, std::string_view body) {
    if (in_ >= 0) to_agent_->add(pack(kind, body));
    flush();
  }
  bool has_to_send() const { return in_ >= 0 && !to_agent_->empty(); }
  bool over() const { return out_ < 0; }
  bool has_ranks() const { return std::ranges::count(ended_, true) < host_.slots; }
  int first_left() const {
    return first_ + static_cast<int>(std::ranges::find(ended_, false) - ended_.begin());
  }
  // Rank 0 reads from here: bytes that it may get now.
  std::size_t input_room() const { return over() || has_to_send() ? 0 : kInputAhead - input_under_way_; }
  void send_input(std::string_view bytes) {
    input_under_way_ += bytes.size();
    send(Message::input, bytes);
  }

  void watch(std::vector<pollfd>& waiting) const {
    if (out_ >= 0) waiting.push_back({out_, POLLIN, 0});
    if (error_ >= 0) waiting.push_back({error_, POLLIN, 0});
    if (has_to_send()) waiting.push_back({in_, POLLOUT, 0});
  }
  // Passes on what ranks wrote, and tells which have ended.
  void pump(FirstFailure& failure, Status& refused) {
    flush();
    read_error();
    const bool ended = !read_some(out_, [&](std::string_view bytes) { inbox_.add(bytes); });
    if (!greeted_) greeted_ = inbox_.skip_past(kAgentGreeting);
    while (auto letter = greeted_ ? inbox_.next() : std::nullopt) take(*letter, failure, refused);
    if (!ended) return;
    read_error();  // its last words
    lose(failure, refused);
  }
  // Without any more ado.
  void cut() {
    for (int* end : {&in_, &out_, &error_})
      if (*end >= 0) close(std::exchange(*end, -1));
    if (process_ > 0) {
      kill(process_, SIGKILL);
      waitpid(std::exchange(process_, -1), nullptr, 0);
    }
  }

 private:
  [[noreturn]] static void become(const std::vector<std::string>& command, int in, int out, int error,
                                  const sigset_t& signals) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);  // signals of a terminal come through the launcher
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(error, STDERR_FILENO);
    sigprocmask(SIG_SETMASK, &signals, nullptr);
    std::vector<char*> arguments;
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    const std::string problem = fmt::format("{} cannot be run ({})\n", command.front(), std::strerror(errno));
    if (write(STDERR_FILENO, problem.data(), problem.size()) < 0) _exit(126);
    _exit(127);
  }

  void flush() {
    if (in_ >= 0 && !to_agent_->flush()) close(std::exchange(in_, -1));
  }

  // False, once: the other end is closed.
  template <class Take>
  static bool read_some(int& from, Take take) {
    std::array<char, 16384> part;
    while (from >= 0) {
      const ssize_t size = read(from, part.data(), part.size());
      if (size < 0 && errno == EINTR) continue;
      if (size < 0 && errno == EAGAIN) return true;
      if (size <= 0) {
        close(std::exchange(from, -1));
        return false;
      }
      take(std::string_view(part.data(), static_cast<std::size_t>(size)));
    }
    return true;
  }

  // What ssh says, or an agent that fails.
  void read_error() {
    const bool ended = !read_some(error_, [&](std::string_view bytes) { said_.append(bytes); });
    std::size_t begin = 0;
    for (std::size_t end; (end = said_.find('\n', begin)) != std::string::npos; begin = end + 1)
      fmt::print(stderr, "[{}] {}\n", host_.name, std::string_view(said_).substr(begin, end - begin));
    said_.erase(0, begin);
    if (ended && !said_.empty()) fmt::print(stderr, "[{}] {}\n", host_.name, said_);
  }

  void take(Inbox::Letter& letter, FirstFailure& failure, Status& refused) {
    const int number = letter.take_number();
    switch (letter.kind) {
      case Message::line:
      case Message::error_line:
        print_line(number, letter.kind == Message::error_line, letter.body);
        break;
      case Message::ended:
        if (number < first_ || number >= first_ + host_.slots) break;
        ended_[static_cast<std::size_t>(number - first_)] = true;
        failure.rank_ended(number, letter.take_number());
        break;
      case Message::input_taken:
        input_under_way_ -= std::min(input_under_way_, static_cast<std::size_t>(number));
        break;
      case Message::refused:
        refused_ = true;
        if (refused.ok()) refused = Status(number, fmt::format("host {}: {}", host_.name, letter.body));
        break;
      default:
        break;
    }
  }

  int end_process() {
    int status = 0;
    const auto patience = FirstFailure::Clock::now() + kClosingTime;  // it has closed its output
    while (process_ > 0 && waitpid(process_, &status, WNOHANG) == 0) {
      if (FirstFailure::Clock::now() > patience) kill(process_, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    process_ = -1;
    return status;
  }

  // The agent has ended; if ranks were left they are lost.
  void lose(FirstFailure& failure, Status& refused) {
    const int status = end_process();
    if (refused_ || !has_ranks()) return;
    const std::string how = WIFEXITED(status) ? fmt::format("code {}", WEXITSTATUS(status))
                                              : fmt::format("signal {}", WTERMSIG(status));
    if (greeted_)
      failure.rank_lost(first_left(),
                        fmt::format("the connection to host {} has ended ({})", host_.name, how));
    else if (refused.ok())
      refused = run_failed(
          "host {}: {} has ended ({}) before an agent of moeyard spoke; try --ssh, --remote-program.",
          host_.name, host_.is_here ? "the agent" : "the connection", how);
    std::ranges::fill(ended_, true);
  }

  const Host& host_;
  const int first_;
  std::vector<char> ended_;  // by rank of this host
  pid_t process_ = -1;
  int in_ = -1, out_ = -1, error_ = -1;
  std::unique_ptr<Outgoing> to_agent_;
  Inbox inbox_;
  std::string said_;
  std::size_t input_under_way_ = 0;
  bool greeted_ = false, refused_ = false;
};

class HostsLauncher {
 public:
  explicit HostsLauncher(const Launch& launch) : launch_(launch), failure_(launch.grace, kSettleTime) {}

  Result<int> run() {
    has_input_ = isatty(STDIN_FILENO) == 0;  // a terminal belongs to its foreground alone
    MOEYARD_TRY(start());
    while (!all_over()) {
      wait();
      for (Connection& one : connections_) one.pump(failure_, refused_);
      for (const int signal : signals_.take()) {
        send_all(signal);
        if (ends_programs(signal)) failure_.interrupted();
      }
      const auto report = refused_.ok() ? failure_.report(!has_ranks()) : std::nullopt;
      if (report) fmt::print(stderr, "moeyard launch: {}\n", *report);
      if (const int signal = failure_.signal_due()) send_all(signal);
      if (!refused_.ok() || failure_.kills() >= kMostKills)
        for (Connection& one : connections_) one.cut();
    }
    if (!refused_.ok()) return refused_;
    return failure_.code();
  }

 private:
  Status start() {
    const std::string table = rank_table_of(launch_.hosts), secret = random_text();
    std::array<char, PATH_MAX + 1> folder{};
    if (getcwd(folder.data(), PATH_MAX) == nullptr)
      return run_failed("no current folder ({}).", std::strerror(errno));
    int ranks = 0, first = 0;
    for (const Host& host : launch_.hosts) ranks += host.slots;
    for (const Host& host : launch_.hosts) {
      Connection& one = connections_.emplace_back(host, first);
      MOEYARD_TRY(one.start(launch_, signals_.before()));
      const nlohmann::json orders = {{"folder", folder.data()},
                                     {"command", launch_.command},
                                     {"ranks", ranks},
                                     {"first", first},
                                     {"count", host.slots},
                                     {"table", table},
                                     {"secret", secret},
                                     {"input", has_input_ && first == 0},
                                     {"variables", passed_variables(launch_.variables)}};
      one.send(Message::orders,
               orders.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace));
      first += host.slots;
    }
    return {};
  }

  void wait() {
    std::vector<pollfd> waiting{{signals_.descriptor(), POLLIN, 0}};
    const bool reads = has_input_ && connections_.front().input_room() > 0;
    if (reads) waiting.push_back({STDIN_FILENO, POLLIN, 0});
    for (const Connection& one : connections_) one.watch(waiting);
    poll(waiting.data(), waiting.size(), poll_timeout(failure_.next()));
    if (reads && waiting[1].revents != 0) read_input();
  }
  void read_input() {
    std::array<char, 16384> part;
    const ssize_t size =
        read(STDIN_FILENO, part.data(), std::min(part.size(), connections_.front().input_room()));
    if (size > 0) return connections_.front().send_input({part.data(), static_cast<std::size_t>(size)});
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    has_input_ = false;
    connections_.front().send(Message::input_ends, "");
  }

  void send_all(int signal) {
    for (Connection& one : connections_) one.send(Message::signal, number_bytes(signal));
  }
  bool all_over() const {
    return std::ranges::all_of(connections_, [](const Connection& one) { return one.over(); });
  }
  bool has_ranks() const {
    return std::ranges::any_of(connections_, [](const Connection& one) { return one.has_ranks(); });
  }

  const Launch& launch_;
  const CaughtSignals signals_;
  FirstFailure failure_;
  Status refused_;
  std::list<Connection> connections_;
  bool has_input_ = false;
};

}  // namespace

Result<int> run_launch_on_hosts(const Launch& launch) {
  // An agent that has ended is noticed by its output.
  struct IgnoredPipes {
    void (*const before)(int) = signal(SIGPIPE, SIG_IGN);
    ~IgnoredPipes() { signal(SIGPIPE, before); }
  } ignored;
  return HostsLauncher(launch).run();
}

}  // namespace moeyard::tool
