// Moeyard. SPDX-License-Identifier: Apache-2.0
// How processes of one host hand each other the descriptors of their memory: over a local socket of the first one,
// whose name and password follow from what only members of the communicator know.
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/errors.h"
#include "base/sha256.h"
#include "comm/bootstrap/assembly.h"
#include "comm/bootstrap/network.h"
#include "hccl/hccl_types.h"

namespace moeyard::comm {
namespace {

constexpr int kSliceMs = 20;

struct Member {  // what a process says of itself, with its descriptor if it has memory to share
  Digest password;
  ProcessId id;
  std::uint64_t bytes;
};
struct Introduction {  // what the first says of another, with its descriptor
  std::int32_t process;
  std::int32_t last;  // none follows; carries the board, and no descriptor
  std::uint64_t bytes;
  Ref board;
};

Digest derive(const Token& token, std::string_view purpose) {
  return hmac_sha256({reinterpret_cast<const char*>(&token), sizeof token}, purpose);
}

struct Name {
  sockaddr_un address{};
  socklen_t bytes;
};
Name socket_name(const Token& token) {
  constexpr std::string_view kPrefix = "moeyard-";
  constexpr char kDigits[] = "0123456789abcdef";
  Name name;
  name.address.sun_family = AF_UNIX;
  char* at = name.address.sun_path + 1;  // after a zero: no file
  at += kPrefix.copy(at, kPrefix.size());
  for (const std::uint8_t byte : derive(token, "name")) {
    *at++ = kDigits[byte >> 4];
    *at++ = kDigits[byte & 15];
  }
  name.bytes = static_cast<socklen_t>(at - reinterpret_cast<char*>(&name.address));
  return name;
}

Status failed(std::string_view function, const char* what) {
  return fail(HCCL_E_SYSCALL, TextCode::hccl_connection,
              "{}: the processes of this host could not show each other their memory: {} ({})", function,
              what, std::strerror(errno));
}
Status late(std::string_view function) {
  return fail(HCCL_E_TIMEOUT, TextCode::hccl_connection,
              "{}: the processes of this host did not show each other their memory in time; raise "
              "HCCL_CONNECT_TIMEOUT",
              function);
}

// Waits until the socket can be read or written; false: the deadline has passed.
bool wait_for(int socket, short events, const Deadline& deadline) {
  for (;;) {
    pollfd waiting{socket, events, 0};
    if (poll(&waiting, 1, kSliceMs) > 0) return true;
    if (deadline.expired()) return false;
  }
}

// One message: packets of a SOCK_SEQPACKET socket stay whole.
template <class T>
Status send_packet(std::string_view function, int socket, const T& value, int descriptor,
                   const Deadline& deadline) {
  iovec part{const_cast<T*>(&value), sizeof value};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  }
  for (;;) {
    if (sendmsg(socket, &message, MSG_NOSIGNAL) >= 0) return {};
    if (errno != EAGAIN && errno != EINTR) return failed(function, "sending");
    if (!wait_for(socket, POLLOUT, deadline)) return late(function);
  }
}

template <class T>
struct Packet {
  T value{};
  Descriptor descriptor;
};
template <class T>
Result<Packet<T>> receive_packet(std::string_view function, int socket, const Deadline& deadline) {
  Packet<T> packet;
  iovec part{&packet.value, sizeof packet.value};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  for (;;) {
    if (!wait_for(socket, POLLIN, deadline)) return late(function);
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t size = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (size >= 0 && (message.msg_flags & MSG_CTRUNC) != 0) errno = EMFILE;  // the descriptor found no place
    if (size < 0 || (message.msg_flags & MSG_CTRUNC) != 0) return failed(function, "receiving");
    for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
      if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
      int descriptor;
      std::memcpy(&descriptor, CMSG_DATA(head), sizeof descriptor);
      packet.descriptor = Descriptor(descriptor);
    }
    if (size == sizeof packet.value) return packet;
    return fail(HCCL_E_REMOTE, TextCode::hccl_connection,
                "{}: a process of this host left while the processes showed each other their memory",
                function);
  }
}

Result<std::shared_ptr<const PeerProcess>> adopt(std::string_view function, const ProcessId& id,
                                                 Descriptor& descriptor, std::uint64_t bytes) {
  auto process = PeerProcess::adopt(id, descriptor.release(), bytes);
  if (!process) return Status(HCCL_E_MEMORY, fmt::format("{}: {}", function, process.error().message()));
  return process;
}

}  // namespace

namespace {

class Sharing {
 public:
  Sharing(std::string_view function, const Token& token, const std::vector<ProcessId>& processes, int own,
          const Deadline& deadline)
      : function_(function),
        token_(token),
        ids_(processes),
        own_(own),
        deadline_(deadline),
        known_(processes.size()) {}

  Result<SharedHost> run(const std::function<Ref(const Spaces&)>& make_board) {
    auto self = PeerProcess::self(function_);
    if (self)
      known_[static_cast<std::size_t>(own_)] = *self;
    else
      failure_ = Status(HCCL_E_MEMORY, self.error().message());  // the others are told, and wait no longer
    return own_ == 0 ? lead(make_board) : follow();
  }

 private:
  Result<SharedHost> lead(const std::function<Ref(const Spaces&)>& make_board) {
    Descriptor listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const Name name = socket_name(token_);
    if (listener.get() < 0 ||
        bind(listener.get(), reinterpret_cast<const sockaddr*>(&name.address), name.bytes) != 0 ||
        listen(listener.get(), SOMAXCONN) != 0)
      return failed(function_, "listening");
    std::vector<Descriptor> sockets(ids_.size());
    for (std::size_t left = ids_.size() - 1; left > 0;) {
      if (!wait_for(listener.get(), POLLIN, deadline_)) return late(function_);
      Descriptor socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (socket.get() < 0) {
        if (errno == EMFILE || errno == ENFILE) return failed(function_, "accepting");
        continue;
      }
      auto member = MOEYARD_TRY(receive_packet<Member>(function_, socket.get(), deadline_));
      const auto place = std::ranges::find(ids_, member.value.id);
      if (!same_digest(member.value.password, derive(token_, "password")) || place == ids_.end()) continue;
      if (failure_.ok() && member.descriptor.get() < 0)
        return fail(HCCL_E_REMOTE, TextCode::hccl_connection,
                    "{}: a process of this host has no memory to share; its own error says why", function_);
      const auto index = static_cast<std::size_t>(place - ids_.begin());
      if (sockets[index].get() >= 0) continue;
      if (failure_.ok())
        known_[index] = MOEYARD_TRY(adopt(function_, member.value.id, member.descriptor, member.value.bytes));
      sockets[index] = std::move(socket);
      --left;
    }
    MOEYARD_TRY(failure_);
    SharedHost host{Spaces(known_, own_), {}};
    host.board = make_board(host.spaces);
    if (host.board.null())
      return fail(HCCL_E_MEMORY, TextCode::runtime_resource,
                  "{}: there is no memory to share with other processes; free device memory", function_);
    for (std::size_t to = 1; to < ids_.size(); ++to)
      MOEYARD_TRY(introduce(to, sockets[to].get(), host.board));
    return host;
  }

  // A process must not get its own descriptor: closing that would undo the lock that shows that it lives.
  Status introduce(std::size_t to, int socket, Ref board) {
    for (std::size_t process = 0; process < ids_.size(); ++process) {
      if (process == to) continue;
      const runtime::MappedFile& memory = known_[process]->memory();
      const Introduction introduction{static_cast<std::int32_t>(process), 0, memory.bytes(), {}};
      MOEYARD_TRY(send_packet(function_, socket, introduction, memory.descriptor(), deadline_));
    }
    return send_packet(function_, socket, Introduction{-1, 1, 0, board}, -1, deadline_);
  }

  Result<SharedHost> follow() {
    const Name name = socket_name(token_);
    Descriptor socket;
    for (;;) {  // the first may not be there yet
      socket = Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
      if (socket.get() < 0) return failed(function_, "connecting");
      if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&name.address), name.bytes) == 0) break;
      if (errno != ECONNREFUSED && errno != EAGAIN && errno != ENOENT) return failed(function_, "connecting");
      if (deadline_.expired()) return late(function_);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    if (!failure_.ok()) {
      const Member without{derive(token_, "password"), this_process(), 0};
      MOEYARD_TRY(send_packet(function_, socket.get(), without, -1, deadline_));
      return failure_;
    }
    const runtime::MappedFile& own = known_[static_cast<std::size_t>(own_)]->memory();
    const Member me{derive(token_, "password"), this_process(), own.bytes()};
    MOEYARD_TRY(send_packet(function_, socket.get(), me, own.descriptor(), deadline_));
    for (;;) {
      auto packet = MOEYARD_TRY(receive_packet<Introduction>(function_, socket.get(), deadline_));
      if (packet.value.last != 0) return SharedHost{Spaces(known_, own_), packet.value.board};
      const auto index = static_cast<std::size_t>(packet.value.process);
      if (index >= ids_.size() || packet.descriptor.get() < 0) return failed(function_, "receiving");
      known_[index] = MOEYARD_TRY(adopt(function_, ids_[index], packet.descriptor, packet.value.bytes));
    }
  }

  const std::string_view function_;
  const Token& token_;
  const std::vector<ProcessId>& ids_;
  const int own_;
  const Deadline& deadline_;
  Status failure_;  // of this process, before it has met another
  std::vector<std::shared_ptr<const PeerProcess>> known_;
};

}  // namespace

Result<SharedHost> share_host(std::string_view function, const Token& token,
                              const std::vector<ProcessId>& processes, int own,
                              const std::function<Ref(const Spaces&)>& make_board, const Deadline& deadline) {
  return Sharing(function, token, processes, own, deadline).run(make_board);
}

}  // namespace moeyard::comm
