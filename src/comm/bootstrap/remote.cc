// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap/remote.h"

#include <cerrno>
#include <cstring>
#include <thread>

#include "base/errors.h"
#include "comm/bootstrap/assembly.h"
#include "comm/bootstrap/packet.h"
#include "comm/registry.h"
#include "hccl/hccl_types.h"

namespace moeyard::comm {
namespace {

using GoOn = std::function<bool()>;
constexpr std::chrono::seconds kChallengeTime{5};  // a port may belong to somebody else, who says nothing
constexpr std::chrono::seconds kGrace{5};          // for the other side to say who is missing

// A connection whose other end is such a server; or why there is none.
struct Reached {
  std::optional<Channel> channel;
  Challenge challenge;
  std::string why;
  int error = 0;
};

Reached greet(const std::string& address, int port, const GoOn& go_on) {
  Reached reached;
  Connected connected = connect_to(address, port, go_on);
  if (connected.socket.get() < 0) {
    reached.error = connected.error;
    reached.why = std::strerror(connected.error);
    return reached;
  }
  Channel channel(std::move(connected.socket));
  const Deadline patience = Deadline::after(kChallengeTime);
  const auto frame = channel.receive([&] { return go_on() && !patience.expired(); });
  const Challenge expected;
  if (frame && frame->frame == Frame::challenge && frame->body.size() == sizeof(Challenge))
    std::memcpy(static_cast<void*>(&reached.challenge), frame->body.data(), sizeof(Challenge));
  if (reached.challenge.magic != expected.magic || reached.challenge.number == Token{}) {
    reached.why = "something else listens there";
    return reached;
  }
  reached.channel = std::move(channel);
  return reached;
}

// The way through an open connection.
class Visitor {
 public:
  Visitor(std::string_view function, const Target& target, const Candidate& candidate,
          const Deadline& deadline, std::chrono::milliseconds timeout, const GoOn& go_on)
      : function_(function),
        target_(target),
        candidate_(candidate),
        deadline_(deadline),
        timeout_(timeout),
        go_on_(go_on) {}

  // None: the server does not serve this communicator; why_not() says why.
  std::optional<Result<std::shared_ptr<Group>>> join(Reached& reached) {
    Channel& channel = *reached.channel;
    const Key to_server{target_.secret, reached.challenge.number};
    const Key to_me{target_.secret, random_token()};
    PacketWriter hello;
    hello.add(target_.id).add(to_me.number);
    channel.send(pack(Frame::hello, hello.bytes() + encode(candidate_, function_, timeout_), to_server));

    auto frame = channel.receive(go_on_);
    if (frame && frame->frame == Frame::unknown) {
      why_not_ = frame->body;
      return std::nullopt;
    }
    if (Status stopped = check(frame, to_me); !stopped.ok()) return stopped;
    const auto membership = decode_membership(frame->body);
    if (frame->frame != Frame::table || !membership || candidate_.rank >= membership->size()) return gone();

    auto group = assemble(function_, *membership, candidate_.rank, deadline_);
    channel.send(pack(Frame::ready, encode(group ? Status() : group.error()), to_server));
    if (!group) return group;
    frame = channel.receive(go_on_);
    Status stopped = check(frame, to_me);
    if (stopped.ok() && frame->frame != Frame::go) stopped = gone();
    if (stopped.ok()) return group;
    retire(**group);
    return stopped;
  }
  const std::string& why_not() const { return why_not_; }

 private:
  // What ends the way here.
  Status check(const std::optional<Unpacked>& frame, const Key& to_me) const {
    if (!frame && !go_on_())
      return fail(HCCL_E_TIMEOUT, TextCode::hccl_connection,
                  "{}: rank {}: the process where the ranks gather did not answer within {} ms; raise "
                  "HCCL_CONNECT_TIMEOUT",
                  function_, candidate_.rank, timeout_.count());
    if (!frame || !proves(*frame, to_me)) return gone();
    if (frame->frame != Frame::failure) return {};
    const auto status = decode_status(frame->body);
    return status && !status->ok() ? *status : gone();
  }
  Status gone() const {
    return fail(HCCL_E_REMOTE, TextCode::hccl_connection,
                "{}: rank {}: the process where the ranks gather left while the ranks were connecting; look "
                "why it has "
                "ended",
                function_, candidate_.rank);
  }

  const std::string_view function_;
  const Target& target_;
  const Candidate& candidate_;
  const Deadline& deadline_;
  const std::chrono::milliseconds timeout_;
  const GoOn& go_on_;
  std::string why_not_;
};

Status given_up(std::string_view function, int rank) {
  return fail(HCCL_E_UNAVAIL, TextCode::hccl_parameter,
              "{}: rank {} was destroyed while the ranks were still connecting", function, rank);
}

}  // namespace

Result<std::shared_ptr<Group>> RemoteGathering::arrive(std::string_view function, const Candidate& candidate,
                                                       std::chrono::milliseconds timeout) {
  const Deadline deadline = Deadline::after(timeout);
  const Deadline last = timeout.count() == 0 ? Deadline::never() : Deadline::after(timeout + kGrace);
  const GoOn connecting = [&] { return !cancelled_ && !deadline.expired(); };
  const GoOn waiting = [&] { return !cancelled_ && !last.expired(); };
  const std::string& address = target_.addresses.front();
  const int port = target_.ports.front().first;
  Reached reached = greet(address, port, connecting);
  if (cancelled_) return given_up(function, candidate.rank);
  if (!reached.channel)
    return fail(
        reached.error == ETIMEDOUT ? HCCL_E_TIMEOUT : HCCL_E_TCP_CONNECT, TextCode::hccl_connection,
        "{}: rank {} did not find the process that made rootInfo at {}, port {} ({}); keep it running until "
        "all "
        "ranks have joined, and choose an address there that this host can reach (HCCL_SOCKET_IFNAME, "
        "HCCL_IF_IP)",
        function, candidate.rank, address, port, reached.why);
  Visitor visitor(function, target_, candidate, deadline, timeout, waiting);
  auto joined = visitor.join(reached);
  if (cancelled_) return given_up(function, candidate.rank);
  if (joined) return *std::move(joined);
  return fail(HCCL_E_PARA, TextCode::hccl_parameter,
              "{}: rootInfo is not valid any more ({}); call HcclGetRootInfo for each communicator", function,
              visitor.why_not());
}

Result<std::shared_ptr<Group>> TableRendezvous::arrive(std::string_view function, const Candidate& candidate,
                                                       std::chrono::milliseconds timeout) {
  const Deadline deadline = Deadline::after(timeout);
  const Deadline last = timeout.count() == 0 ? Deadline::never() : Deadline::after(timeout + kGrace);
  const GoOn looking = [&] { return !cancelled_ && !deadline.expired() && !here_->settled(); };
  const GoOn waiting = [&] { return !cancelled_ && !last.expired(); };
  MOEYARD_TRY(here_->enter(function, candidate, timeout));
  std::string why = "nobody listens there";
  bool answered = false;  // what a rank 0 said tells more than that it has gone since
  while (looking()) {
    for (const std::string& address : elsewhere_.addresses)
      for (const auto& [first, end] : elsewhere_.ports)
        for (int port = first; port <= end && looking(); ++port) {
          Reached reached = greet(address, port, looking);
          if (!reached.channel) {
            if (!answered) why = reached.why;
            if (reached.error != 0 && reached.error != ECONNREFUSED) break;  // the same at every port
            continue;
          }
          if (reached.challenge.process == this_process()) continue;  // then it waits here
          here_->forget(candidate.rank);
          Visitor visitor(function, elsewhere_, candidate, deadline, timeout, waiting);
          auto joined = visitor.join(reached);
          if (cancelled_) return given_up(function, candidate.rank);
          if (joined && *joined) here_->hand_out(candidate.rank, **joined);
          if (joined) return *std::move(joined);
          why = visitor.why_not();
          answered = true;
          MOEYARD_TRY(here_->enter(function, candidate, timeout));
        }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  here_->note(fmt::format(" (looking for rank 0 at {}, port {}: {})", elsewhere_.addresses.front(),
                          elsewhere_.ports.front().first, why));
  return here_->conclude(function, candidate.rank, deadline);
}

}  // namespace moeyard::comm
