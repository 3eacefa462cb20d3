// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "moeyard/meeting_place.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <list>
#include <string_view>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "base/sha256.h"
#include "model/errors.h"

namespace moeyard::tool {
namespace {

using model::run_failed;
using std::chrono::milliseconds;

//   rank 0    challenge
//   another   request      proves that it knows the secret
//   rank 0    answer       so does it; then what it hands out, if it does
using Number = std::array<std::uint8_t, 32>;
struct Challenge {
  std::array<char, 8> magic{'M', 'O', 'E', 'Y', 'M', 'E', 'E', 'T'};
  Number number{};
};
struct Request {
  Number number{};
  std::int32_t rank = 0, ranks = 0;
  Digest proof{};
};
struct Answer {
  enum class Kind : std::int32_t { yes, other_secret, other_size } kind = Kind::yes;
  std::int32_t ranks = 0;
  Digest proof{};  // of what follows, as it is sent
};

constexpr milliseconds kSlice{50};
constexpr milliseconds kPatience{10'000};  // with those who connect and say nothing
constexpr std::size_t kMostVisitors = 4096;

class Socket {
 public:
  explicit Socket(int fd = -1) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

Number random_number() {
  Number made;
  for (std::size_t got = 0; got < made.size();) {
    const ssize_t size = getrandom(made.data() + got, made.size() - got, 0);
    if (size > 0) got += static_cast<std::size_t>(size);
  }
  return made;
}

template <class T>
std::string_view bytes_of(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Both ends of one connection agree on these, and nobody else can make them.
struct Proofs {
  const std::string& secret;
  const Number& of_server;
  const Number& of_client;

  Digest make(std::string_view purpose, std::string_view text) const {
    std::string all(purpose);
    all.append(bytes_of(of_server)).append(bytes_of(of_client)).append(text);
    return hmac_sha256(secret, all);
  }
  Digest of(const Request& request) const {
    return make("request", fmt::format("{} {}", request.rank, request.ranks));
  }
  Digest of(const Answer& answer, std::string_view sent) const {
    std::string text = fmt::format("{} {} ", static_cast<int>(answer.kind), answer.ranks);
    return make("answer", text.append(sent));
  }
  // Turns readable into unreadable, and back.
  void scramble(std::span<char> text) const {
    Digest block{};
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (i % block.size() == 0) block = make("block", std::to_string(i));
      text[i] = static_cast<char>(static_cast<std::uint8_t>(text[i]) ^ block[i % block.size()]);
    }
  }
};

struct Addresses {
  addrinfo* first = nullptr;
  std::string problem;
  ~Addresses() {
    if (first != nullptr) freeaddrinfo(first);
  }
};
void resolve(const char* host, int port, int flags, Addresses& to) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags;
  const int code = getaddrinfo(host, std::to_string(port).c_str(), &wanted, &to.first);
  if (code != 0) to.problem = code == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(code);
}

// A name of this host may be its loopback address here and another one elsewhere, so that rank 0 listens at all of its
// addresses, unless only this host is meant.
bool only_here(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

Result<Socket> listen_at(const MeetingPlace& place) {
  const bool here = only_here(place.host);
  Addresses addresses;
  resolve(here ? place.host.c_str() : nullptr, place.port, AI_PASSIVE, addresses);
  std::string problem = addresses.problem;
  // Of the wildcards IPv6's takes both families, where there is IPv6.
  for (const int family : {AF_INET6, AF_INET})
    for (const addrinfo* one = addresses.first; one != nullptr; one = one->ai_next) {
      if (one->ai_family != family || (here && family == AF_INET6 && place.host != "::1")) continue;
      Socket socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      const int on = 1, off = 0;
      setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      if (family == AF_INET6) setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
      if (socket.get() >= 0 && bind(socket.get(), one->ai_addr, one->ai_addrlen) == 0 &&
          listen(socket.get(), SOMAXCONN) == 0)
        return socket;
      problem = std::strerror(errno);
      if (errno == EADDRINUSE) break;
    }
  return run_failed(
      "rank 0 cannot listen at port {} for the others ({}); --meet-at HOST:PORT chooses another one.",
      place.port, problem);
}

// Sends or receives all of it before the deadline.
bool transfer(int socket, bool sends, std::span<char> bytes, const Deadline& deadline) {
  while (!bytes.empty()) {
    const ssize_t size = sends ? send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT)
                               : recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(size));
    } else if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
      if (deadline.expired()) return false;
      pollfd waiting{socket, static_cast<short>(sends ? POLLOUT : POLLIN), 0};
      poll(&waiting, 1, static_cast<int>(kSlice.count()));
    } else {
      return false;
    }
  }
  return true;
}
template <class T>
bool receive_value(int socket, T& value, const Deadline& deadline) {
  return transfer(socket, false, {reinterpret_cast<char*>(&value), sizeof value}, deadline);
}

class Server final : public Handout {
 public:
  Server(const MeetingPlace& place, std::span<const char> bytes, Socket listener)
      : place_(place),
        bytes_(bytes.begin(), bytes.end()),
        listener_(std::move(listener)),
        wake_(eventfd(0, EFD_CLOEXEC)) {
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() override {
    eventfd_write(wake_.get(), 1);
    thread_.join();
  }

 private:
  struct Visitor {
    Socket socket;
    Number number = random_number();
    std::string received, to_send;
    bool answered = false;
    Deadline patience = Deadline::after(kPatience);
  };

  void serve() {
    for (;;) {
      std::vector<pollfd> waiting = {{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      for (const Visitor& visitor : visitors_)
        waiting.push_back(
            {visitor.socket.get(), static_cast<short>(visitor.to_send.empty() ? POLLIN : POLLOUT), 0});
      poll(waiting.data(), waiting.size(), visitors_.empty() ? -1 : static_cast<int>(kSlice.count()));
      if (waiting[0].revents != 0) return;
      std::size_t i = 2;
      std::erase_if(visitors_, [&](Visitor& visitor) {
        return (waiting[i++].revents != 0 && !attend(visitor)) || visitor.patience.expired();
      });
      if (waiting[1].revents != 0) welcome();
    }
  }
  void welcome() {
    Socket socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.get() < 0 || visitors_.size() >= kMostVisitors) return;
    Visitor& visitor = visitors_.emplace_back();
    visitor.socket = std::move(socket);
    visitor.to_send = bytes_of(Challenge{.number = visitor.number});
  }
  // False: nothing is left to do for it.
  bool attend(Visitor& visitor) {
    if (!visitor.to_send.empty()) {
      const ssize_t size =
          send(visitor.socket.get(), visitor.to_send.data(), visitor.to_send.size(), MSG_NOSIGNAL);
      if (size < 0) return errno == EAGAIN || errno == EINTR;
      visitor.to_send.erase(0, static_cast<std::size_t>(size));
      return !visitor.to_send.empty() || !visitor.answered;
    }
    char part[sizeof(Request)];
    const ssize_t size = recv(visitor.socket.get(), part, sizeof part - visitor.received.size(), 0);
    if (size <= 0) return size < 0 && (errno == EAGAIN || errno == EINTR);
    visitor.received.append(part, static_cast<std::size_t>(size));
    if (visitor.received.size() == sizeof(Request)) answer(visitor);
    return true;
  }
  void answer(Visitor& visitor) const {
    Request request;
    std::memcpy(&request, visitor.received.data(), sizeof request);
    const Proofs proofs{place_.secret, visitor.number, request.number};
    Answer answer{.ranks = place_.ranks};
    std::string sent;
    if (!same_digest(request.proof, proofs.of(request))) {
      answer.kind = Answer::Kind::other_secret;
    } else if (request.ranks != place_.ranks) {
      answer.kind = Answer::Kind::other_size;
    } else {
      sent = bytes_;
      proofs.scramble(sent);
    }
    answer.proof = proofs.of(answer, sent);
    visitor.to_send.append(bytes_of(answer)).append(sent);
    visitor.answered = true;
  }

  const MeetingPlace place_;
  const std::string bytes_;
  const Socket listener_, wake_;
  std::list<Visitor> visitors_;  // of the thread
  std::thread thread_;
};

// Why it did not work out; `final` says that it never will.
struct Attempt {
  bool done = false, final = false;
  std::string why;
};

class Client {
 public:
  Client(const MeetingPlace& place, int rank, std::span<char> bytes)
      : place_(place), rank_(rank), bytes_(bytes) {}

  Attempt try_once(const Deadline& deadline) const {
    Addresses addresses;
    resolve(place_.host.c_str(), place_.port, 0, addresses);
    Attempt attempt{.why = addresses.problem};
    for (const addrinfo* one = addresses.first; one != nullptr && !attempt.done && !attempt.final;
         one = one->ai_next) {
      Socket socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      if (!connects(socket.get(), *one, deadline))
        attempt.why = std::strerror(errno);
      else
        attempt = ask(socket.get());
    }
    return attempt;
  }

 private:
  static bool connects(int socket, const addrinfo& to, const Deadline& deadline) {
    if (connect(socket, to.ai_addr, to.ai_addrlen) == 0) return true;
    while (errno == EINPROGRESS || errno == EAGAIN) {
      pollfd waiting{socket, POLLOUT, 0};
      if (poll(&waiting, 1, static_cast<int>(kSlice.count())) > 0) {
        int problem = 0;
        socklen_t size = sizeof problem;
        getsockopt(socket, SOL_SOCKET, SO_ERROR, &problem, &size);
        errno = problem;
        return problem == 0;
      }
      errno = deadline.expired() ? ETIMEDOUT : EINPROGRESS;
    }
    return false;
  }
  Attempt ask(int socket) const {
    const Deadline patience = Deadline::after(kPatience);
    Challenge challenge;
    const Challenge expected;
    if (!receive_value(socket, challenge, patience) || challenge.magic != expected.magic)
      return {.why = "something else listens there"};
    Request request{random_number(), rank_, place_.ranks, {}};
    const Proofs proofs{place_.secret, challenge.number, request.number};
    request.proof = proofs.of(request);
    Answer answer;
    if (!transfer(socket, true, {reinterpret_cast<char*>(&request), sizeof request}, patience) ||
        !receive_value(socket, answer, patience))
      return {.why = "rank 0 has hung up"};
    if (answer.kind == Answer::Kind::other_secret)
      return {.final = true, .why = "MOEYARD_SECRET is another one there"};
    std::string sent(answer.kind == Answer::Kind::yes ? bytes_.size() : 0, '\0');
    if (!transfer(socket, false, sent, patience) || !same_digest(answer.proof, proofs.of(answer, sent)))
      return {.final = true, .why = "MOEYARD_SECRET is another one there"};
    if (answer.kind == Answer::Kind::other_size)
      return {.final = true,
              .why = fmt::format("it is one of {} ranks, this one of {}", answer.ranks, place_.ranks)};
    proofs.scramble(sent);
    std::ranges::copy(sent, bytes_.begin());
    return {.done = true};
  }

  const MeetingPlace& place_;
  const int rank_;
  const std::span<char> bytes_;
};

}  // namespace

Result<std::unique_ptr<Handout>> Handout::begin(const MeetingPlace& place, std::span<const char> bytes) {
  Socket listener = MOEYARD_TRY(listen_at(place));
  return std::unique_ptr<Handout>(std::make_unique<Server>(place, bytes, std::move(listener)));
}

Status receive_handout(const MeetingPlace& place, int rank, milliseconds timeout, std::span<char> bytes) {
  const Deadline deadline = Deadline::after(timeout);
  const Client client(place, rank, bytes);
  for (;;) {
    const Attempt attempt = client.try_once(deadline);
    if (attempt.done) return {};
    if (attempt.final)
      return run_failed("rank {}: rank 0 at {}, port {}, refuses it: {}.", rank, place.host, place.port,
                        attempt.why);
    if (deadline.expired())
      return run_failed(
          "rank {} did not find rank 0 at {}, port {}, within {} s ({}); --meet-at HOST:PORT says where it "
          "is, "
          "HCCL_CONNECT_TIMEOUT how long to look.",
          rank, place.host, place.port, timeout.count() / 1000, attempt.why);
    std::this_thread::sleep_for(kSlice);
  }
}

}  // namespace moeyard::tool
