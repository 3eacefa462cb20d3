// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap/door.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>

#include "base/errors.h"
#include "hccl/hccl_types.h"

namespace moeyard::comm {
namespace {

constexpr int kSliceMs = 20;
constexpr std::chrono::seconds kPatience{2};  // for a stranger to say who it is

// What both sides say: the one that comes first.
struct Card {
  Digest proof;
  std::int32_t port;
};

Digest card_proof(const Token& token, int from, int to) {
  return hmac_sha256({reinterpret_cast<const char*>(&token), sizeof token},
                     fmt::format("host {} to host {}", from, to));
}

bool read_card(int socket, Card& card, const std::function<bool()>& go_on) {
  std::size_t size = 0;
  while (size < sizeof card) {
    pollfd waiting{socket, POLLIN, 0};
    if (poll(&waiting, 1, kSliceMs) > 0) {
      const ssize_t part = recv(socket, reinterpret_cast<char*>(&card) + size, sizeof card - size, 0);
      if (part == 0 || (part < 0 && errno != EAGAIN && errno != EINTR)) return false;
      if (part > 0) size += static_cast<std::size_t>(part);
    } else if (!go_on()) {
      return false;
    }
  }
  return true;
}
bool write_card(int socket, const Card& card) {
  return ::send(socket, &card, sizeof card, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof card);
}

// The listening socket of this process. Whoever waits at it accepts for all that do.
class DoorKeeper {
 public:
  static DoorKeeper& instance() {
    static auto* keeper = new DoorKeeper;
    return *keeper;
  }

  Door open(const Network& network) {
    const std::lock_guard lock(mutex_);
    if (listener_) return door_;
    constexpr std::string_view kNobody = "";
    auto address = own_address(kNobody, network);
    if (!address) return {};
    auto listener = listen_at(kNobody, *address, network.data_ports);
    if (!listener) return {};
    listener_ = std::move(*listener);
    ports_ = network.data_ports;
    return door_ = {*address, listener_->port};
  }
  const std::vector<std::pair<int, int>>& ports() const { return ports_; }

  // The connection of the one that shows this proof; none: go_on() was false. The card that it showed.
  std::optional<std::pair<Descriptor, Card>> await(const Digest& proof, const std::function<bool()>& go_on) {
    std::unique_lock lock(mutex_);
    wanted_.push_back(proof);
    std::optional<std::pair<Descriptor, Card>> found;
    while (!found && go_on()) {
      if (const auto here = come_.find(proof); here != come_.end()) {
        found = std::move(here->second);
        come_.erase(here);
      } else if (accepting_) {
        changed_.wait_for(lock, std::chrono::milliseconds(kSliceMs));
      } else {
        accepting_ = true;
        lock.unlock();
        auto visitor = accept_one();
        lock.lock();
        accepting_ = false;
        if (visitor && std::ranges::find(wanted_, visitor->second.proof) != wanted_.end())
          come_.insert_or_assign(visitor->second.proof, std::move(*visitor));
        else if (visitor)
          waiting_.push_back(std::move(*visitor));
        changed_.notify_all();
      }
      // Who came before it was wanted.
      const auto early =
          std::ranges::find_if(waiting_, [&](const auto& one) { return one.second.proof == proof; });
      if (early != waiting_.end()) {
        come_.insert_or_assign(proof, std::move(*early));
        waiting_.erase(early);
      }
      constexpr std::size_t kMostWaiting = 64;
      if (waiting_.size() > kMostWaiting) waiting_.erase(waiting_.begin());
    }
    wanted_.erase(std::ranges::find(wanted_, proof));
    return found;
  }

 private:
  std::optional<std::pair<Descriptor, Card>> accept_one() {
    pollfd waiting{listener_->socket.get(), POLLIN, 0};
    if (poll(&waiting, 1, kSliceMs) <= 0) return std::nullopt;
    Descriptor socket(accept4(listener_->socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.get() < 0) return std::nullopt;
    Card card{};
    const Deadline patience = Deadline::after(kPatience);
    if (!read_card(socket.get(), card, [&] { return !patience.expired(); })) return std::nullopt;
    return std::pair(std::move(socket), card);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Listener> listener_;
  Door door_;
  std::vector<std::pair<int, int>> ports_;
  bool accepting_ = false;
  std::vector<Digest> wanted_;
  std::map<Digest, std::pair<Descriptor, Card>> come_;
  std::vector<std::pair<Descriptor, Card>> waiting_;
};

Status late(std::string_view function, int host, const Door& door) {
  return fail(
      HCCL_E_TIMEOUT, TextCode::hccl_connection,
      "{}: host {} of the communicator, {}, port {}, did not connect in time; see that the hosts reach each "
      "other at these addresses (HCCL_IF_IP, HCCL_SOCKET_IFNAME, HCCL_NPU_SOCKET_PORT_RANGE), or raise "
      "HCCL_CONNECT_TIMEOUT",
      function, host, door.address, door.port);
}

}  // namespace

Door open_door(const Network& network) { return DoorKeeper::instance().open(network); }
const std::vector<std::pair<int, int>>& door_ports() { return DoorKeeper::instance().ports(); }

Digest host_proof(const Token& token, int host) {
  return hmac_sha256({reinterpret_cast<const char*>(&token), sizeof token},
                     fmt::format("data of host {}", host));
}

Result<std::vector<int>> exchange_ports(std::string_view function, const Token& token,
                                        const std::vector<Door>& doors, int own, int port,
                                        const Deadline& deadline) {
  const auto go_on = [&] { return !deadline.expired(); };
  std::vector<int> ports(doors.size());
  for (int host = 0; host < static_cast<int>(doors.size()); ++host) {
    const Door& door = doors[static_cast<std::size_t>(host)];
    if (host == own) continue;
    if (door.port == 0)
      return fail(HCCL_E_NETWORK, TextCode::hccl_connection,
                  "{}: host {} of the communicator has no address that others can reach; set HCCL_IF_IP or "
                  "HCCL_SOCKET_IFNAME there",
                  function, host);
    const Card mine{card_proof(token, own, host), port};
    Card theirs{};
    if (host > own) {
      auto visitor = DoorKeeper::instance().await(card_proof(token, host, own), go_on);
      if (!visitor || !write_card(visitor->first.get(), mine)) return late(function, host, door);
      theirs = visitor->second;
    } else {
      for (;;) {
        const Connected connected = connect_to(door.address, door.port, go_on);
        if (connected.socket.get() >= 0 && write_card(connected.socket.get(), mine) &&
            read_card(connected.socket.get(), theirs, go_on) &&
            same_digest(theirs.proof, card_proof(token, host, own)))
          break;
        if (!go_on()) return late(function, host, door);
        poll(nullptr, 0, kSliceMs);
      }
    }
    ports[static_cast<std::size_t>(host)] = theirs.port;
  }
  return ports;
}

}  // namespace moeyard::comm
