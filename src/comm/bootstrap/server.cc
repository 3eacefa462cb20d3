// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap/server.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <thread>

#include "base/boundary.h"
#include "base/errors.h"
#include "base/log.h"
#include "comm/bootstrap/packet.h"

namespace moeyard::comm {
namespace {

constexpr int kTickMs = 50;  // while there are connections: deadlines are looked at
constexpr std::chrono::seconds kGreetingTime{10};
constexpr std::size_t kMostGreetingBytes = 64 * 1024;  // from strangers
constexpr std::size_t kMostConnections = 8192;

}  // namespace

// What is to be sent, by any thread: at once, so that it gets out even if this process ends next; what the socket
// does not take yet, later by the server's thread.
struct Server::Outbox {
  explicit Outbox(Descriptor to) : socket(std::move(to)) {}
  const Descriptor socket;
  std::mutex mutex;
  std::string bytes;
  bool last = false;  // nothing comes after it

  void add(const std::string& frame, bool is_last) {
    const std::lock_guard lock(mutex);
    if (last) return;
    bytes += frame;
    last = is_last;
    send();
  }
  // False: the connection has ended.
  bool send() {
    if (bytes.empty()) return true;
    const ssize_t size = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (size > 0) bytes.erase(0, static_cast<std::size_t>(size));
    return size >= 0 || errno == EAGAIN || errno == EINTR;
  }
};

struct Server::Connection {
  explicit Connection(Descriptor socket) : outbox(std::make_shared<Outbox>(std::move(socket))) {}
  int socket() const { return outbox->socket.get(); }

  const std::shared_ptr<Outbox> outbox;
  std::string bytes;
  Token number = random_token();
  Deadline greeting_end = Deadline::after(kGreetingTime);
  // Once greeted.
  std::shared_ptr<Gathering> gathering;
  int rank = -1;
  Key key;  // for what it sends
};

Server& Server::instance() {
  static auto* server = new Server;
  return *server;
}

Server::Server() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Result<int> Server::offer(std::string_view function, const GatheringId& id, Offer offer,
                          const std::string& address, const std::vector<std::pair<int, int>>& ports) {
  const std::lock_guard lock(mutex_);
  auto place = std::ranges::find_if(
      places_, [&](const Place& one) { return one.address == address && one.ports == ports; });
  if (place == places_.end()) {
    Listener listener = MOEYARD_TRY(listen_at(function, address, ports));
    places_.push_back({address, ports, std::move(listener)});
    place = places_.end() - 1;
  }
  std::erase_if(offers_, [](const auto& entry) {
    const auto gathering = entry.second.gathering.lock();
    return gathering == nullptr || gathering->over();
  });
  offers_[id] = std::move(offer);
  if (!running_) {
    watch_for_fork();
    // Signals of the program are for its own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this] { run(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    running_ = true;
  } else {
    eventfd_write(wake_, 1);
  }
  return place->listener.port;
}

std::optional<Server::Offer> Server::find(const GatheringId& id) {
  const std::lock_guard lock(mutex_);
  const auto found = offers_.find(id);
  return found == offers_.end() ? std::nullopt : std::optional(found->second);
}

void Server::run() {
  pthread_setname_np(pthread_self(), "moeyard-join");
  std::vector<pollfd> waiting;
  for (;;) {
    waiting.assign({{wake_, POLLIN, 0}});
    {
      const std::lock_guard lock(mutex_);
      for (const Place& place : places_) waiting.push_back({place.listener.socket.get(), POLLIN, 0});
    }
    const std::size_t first = waiting.size();
    for (const auto& connection : connections_) {
      const std::lock_guard lock(connection->outbox->mutex);
      const bool sends = !connection->outbox->bytes.empty();
      waiting.push_back({connection->socket(), static_cast<short>(sends ? POLLIN | POLLOUT : POLLIN), 0});
    }
    poll(waiting.data(), waiting.size(), connections_.empty() ? -1 : kTickMs);
    if (waiting[0].revents != 0) {
      eventfd_t count;
      eventfd_read(wake_, &count);
    }
    // What goes wrong here (no memory, for one) ends connections, not the program.
    try {
      std::set<Gathering*> gatherings;
      for (std::size_t i = 0; i < waiting.size() - first; ++i) {
        auto& connection = connections_[i];
        if (connection->gathering != nullptr && gatherings.insert(connection->gathering.get()).second)
          connection->gathering->expire();
        if (!serve(*connection, waiting[first + i].revents)) {
          if (connection->gathering != nullptr) connection->gathering->leave(connection->rank);
          connection.reset();
        }
      }
      std::erase(connections_, nullptr);
      for (std::size_t i = 1; i < first; ++i)
        if (waiting[i].revents != 0) accept_from(waiting[i].fd);
    } catch (const std::exception& error) {
      log_error("a rank of another process could not be served: {}", error.what());
      std::erase(connections_, nullptr);
    }
  }
}

void Server::accept_from(int listener) {
  for (;;) {
    Descriptor socket(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.get() < 0) return;
    if (connections_.size() >= kMostConnections) continue;
    auto connection = std::make_unique<Connection>(std::move(socket));
    const Challenge challenge{.number = connection->number, .process = this_process()};
    connection->outbox->add(
        pack(Frame::challenge, {reinterpret_cast<const char*>(&challenge), sizeof challenge}, std::nullopt),
        false);
    connections_.push_back(std::move(connection));
  }
}

bool Server::serve(Connection& connection, short events) {
  const bool greeted = connection.gathering != nullptr;
  if (!greeted && connection.greeting_end.expired()) return false;
  if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) {
    char part[16384];
    const ssize_t size = recv(connection.socket(), part, sizeof part, 0);
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (size > 0) connection.bytes.append(part, static_cast<std::size_t>(size));
    if (!greeted && connection.bytes.size() > kMostGreetingBytes) return false;
    bool broken = false;
    while (const auto frame = unpack(connection.bytes, broken))
      if (!take(connection, *frame)) return false;
    if (broken) return false;
  }
  const std::lock_guard lock(connection.outbox->mutex);
  if (!connection.outbox->send()) return false;
  return !connection.outbox->bytes.empty() || !connection.outbox->last;
}

bool Server::take(Connection& connection, const Unpacked& frame) {
  if (connection.gathering == nullptr) return frame.frame == Frame::hello && greet(connection, frame);
  if (frame.frame != Frame::ready || !proves(frame, connection.key)) return false;
  const auto status = decode_status(frame.body);
  if (!status) return false;
  connection.gathering->ready(connection.rank, *status);
  return true;
}

bool Server::greet(Connection& connection, const Unpacked& frame) {
  PacketReader packet(frame.body);
  const auto id = packet.take<GatheringId>();
  const auto number = packet.take<Token>();
  const auto turn_away = [&](std::string_view why) {
    connection.outbox->add(pack(Frame::unknown, why, std::nullopt), true);
    connection.greeting_end = Deadline::after(kGreetingTime);
    return true;
  };
  const auto offer = find(id);
  const auto gathering = offer ? offer->gathering.lock() : nullptr;
  if (gathering == nullptr || gathering->over())
    return turn_away("no communicator of this kind is being made there");
  if (!proves(frame, {offer->secret, connection.number}))
    return turn_away("the secrets of both sides differ");
  const auto greeting = decode_greeting(packet.rest());
  if (!greeting) return false;
  const std::string address = peer_address(connection.socket());
  if (offer->addresses && std::ranges::find(*offer->addresses, address) == offer->addresses->end())
    return turn_away(fmt::format("address {} may not join", address));

  const int wake = wake_;
  const auto reply = [outbox = connection.outbox, key = Key{offer->secret, number}, wake](
                         Frame kind, const std::string& body) {
    outbox->add(pack(kind, body, key), kind != Frame::table);
    eventfd_write(wake, 1);
  };
  const Status entered = gathering->enter(greeting->function, greeting->candidate, greeting->timeout, reply);
  if (!entered.ok()) {
    reply(Frame::failure, encode(entered));
    return true;
  }
  connection.gathering = gathering;
  connection.rank = greeting->candidate.rank;
  connection.key = {offer->secret, connection.number};
  return true;
}

}  // namespace moeyard::comm
