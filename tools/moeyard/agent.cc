// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "moeyard/agent.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "model/errors.h"
#include "moeyard/launcher.h"
#include "moeyard/rank_group.h"

namespace moeyard::tool {
namespace {

using model::bad_input;
constexpr std::size_t kHeadBytes = 1 + sizeof(std::uint32_t);

// To standard output, all of it; false: nobody reads it.
bool tell(Message kind, std::string_view body) {
  const std::string bytes = pack(kind, body);
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t size = write(STDOUT_FILENO, bytes.data() + sent, bytes.size() - sent);
    if (size < 0 && errno != EINTR) return false;
    sent += size < 0 ? 0 : static_cast<std::size_t>(size);
  }
  return true;
}

class Agent {
 public:
  int run() {
    if (write(STDOUT_FILENO, kAgentGreeting.data(), kAgentGreeting.size()) < 0) return 1;
    auto orders = wait_for_orders();
    if (!orders) return 1;
    if (const Status started = start(*orders); !started.ok()) {
      tell(Message::refused, number_bytes(started.code()) + started.message());
      return 1;
    }
    while (!ranks_->all_ended() && !orphaned_) {
      wait();
      ranks_->pump();
      for (const int signal : signals_.take()) ranks_->send(signal);
      const auto ended = ranks_->reap();
      if (!ended.empty()) ranks_->pump();  // its last words come before its end
      for (const EndedRank& one : ended)
        tell(Message::ended, number_bytes(one.rank) + number_bytes(one.status));
    }
    if (!orphaned_) ranks_->finish();
    ranks_.reset();  // ends those that are left
    return 0;
  }

 private:
  std::optional<nlohmann::json> wait_for_orders() {
    for (;;) {
      if (auto letter = inbox_.next()) {
        auto orders = nlohmann::json::parse(letter->body, nullptr, /*allow_exceptions=*/false);
        if (letter->kind == Message::orders && orders.is_object()) return orders;
        return std::nullopt;
      }
      std::array<char, 16384> part;
      const ssize_t size = read(STDIN_FILENO, part.data(), part.size());
      if (size == 0 || (size < 0 && errno != EINTR)) return std::nullopt;
      if (size > 0) inbox_.add({part.data(), static_cast<std::size_t>(size)});
    }
  }

  Status start(const nlohmann::json& orders) {
    const std::string folder = orders.at("folder");
    if (chdir(folder.c_str()) != 0)
      return bad_input("the folder {} is not there ({}); start the launch in one that all hosts have.",
                       folder, std::strerror(errno));
    for (const auto& [name, value] : orders.at("variables").items())
      setenv(name.c_str(), value.get<std::string>().c_str(), 1);
    int input[2] = {-1, -1};
    if (orders.at("input").get<bool>()) {
      if (pipe2(input, O_CLOEXEC) != 0)
        return model::run_failed("no pipe for the input ({}).", std::strerror(errno));
      fcntl(input[1], F_SETFL, O_NONBLOCK);
      input_ = std::make_unique<Outgoing>(input[1]);
    }
    RankGroup group{orders.at("command"), orders.at("ranks"), orders.at("first"),
                    orders.at("count"),   orders.at("table"), orders.at("secret")};
    ranks_ =
        std::make_unique<RankProcesses>(std::move(group), [](int rank, bool is_error, std::string_view line) {
          tell(is_error ? Message::error_line : Message::line, number_bytes(rank).append(line));
        });
    const Status started = ranks_->start(input[0], signals_.before());
    if (input[0] >= 0) close(input[0]);
    return started;
  }

  void wait() {
    take_messages();  // some may have come with the orders
    feed();
    std::vector<pollfd> waiting{{signals_.descriptor(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    if (input_ && !input_->empty()) waiting.push_back({input_->to(), POLLOUT, 0});
    ranks_->watch(waiting);
    poll(waiting.data(), waiting.size(), -1);
    if (waiting[1].revents != 0) read_messages();
    take_messages();
    feed();
  }

  void read_messages() {
    std::array<char, 16384> part;
    const ssize_t size = read(STDIN_FILENO, part.data(), part.size());
    if (size == 0 || (size < 0 && errno != EINTR)) orphaned_ = true;
    if (size > 0) inbox_.add({part.data(), static_cast<std::size_t>(size)});
  }
  void take_messages() {
    while (auto letter = inbox_.next()) {
      if (letter->kind == Message::signal) ranks_->send(letter->take_number());
      if (letter->kind == Message::input && input_) input_->add(letter->body);
      if (letter->kind == Message::input_ends) input_ended_ = true;
    }
  }

  // What has come for rank 0.
  void feed() {
    if (!input_) return;
    if (!input_->empty()) {
      const auto taken = input_->flush();
      if (taken && *taken > 0) tell(Message::input_taken, number_bytes(static_cast<std::int32_t>(*taken)));
      if (!taken) input_ended_ = true;
      if (taken && !input_->empty()) return;
    }
    if (!input_ended_) return;
    close(input_->to());
    input_.reset();
  }

  const CaughtSignals signals_;
  Inbox inbox_;
  std::unique_ptr<RankProcesses> ranks_;
  std::unique_ptr<Outgoing> input_;
  bool input_ended_ = false, orphaned_ = false;
};

}  // namespace

std::string number_bytes(std::int32_t value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

std::string pack(Message kind, std::string_view body) {
  std::string bytes(1, static_cast<char>(kind));
  return bytes.append(number_bytes(static_cast<std::int32_t>(body.size()))).append(body);
}

std::optional<Inbox::Letter> Inbox::next() {
  std::uint32_t size = 0;
  if (bytes_.size() < kHeadBytes) return std::nullopt;
  std::memcpy(&size, bytes_.data() + 1, sizeof size);
  if (bytes_.size() - kHeadBytes < size) return std::nullopt;
  Letter letter{static_cast<Message>(bytes_[0]), bytes_.substr(kHeadBytes, size)};
  bytes_.erase(0, kHeadBytes + size);
  return letter;
}

bool Inbox::skip_past(std::string_view text) {
  const std::size_t at = bytes_.find(text);
  if (at == std::string::npos) return false;
  bytes_.erase(0, at + text.size());
  return true;
}

std::optional<std::size_t> Outgoing::flush() {
  std::size_t written = 0;
  while (!bytes_.empty()) {
    const ssize_t size = write(to_, bytes_.data(), bytes_.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) break;
    if (size < 0) return std::nullopt;
    bytes_.erase(0, static_cast<std::size_t>(size));
    written += static_cast<std::size_t>(size);
  }
  return written;
}

int run_agent() {
  signal(SIGPIPE, SIG_IGN);
  return Agent().run();
}

}  // namespace moeyard::tool
