// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "comm/posting.h"

namespace moeyard::comm {

// An operator's name, one address per name in this process.
using OperatorName = const std::string*;
OperatorName intern_operator(std::string_view name);

// One rank's visit to a meeting.
struct Visit {
  OperatorName operator_name = nullptr;
  int round = 0;  // of its exchange
  Posting posting;
};

// A communicator of some ranks of another one.
struct SubSpec {
  std::string name;
  std::vector<std::int32_t> members;
  int generation;  // of that name and those members, as this rank counts them: all count alike
  int rank;        // this one's number in it
  std::int32_t device;
  std::int64_t window_bytes;
};

// How one rank reaches the peers of its communicator. host/ is the model: one object per rank, shared
// state behind it. Group and Exchange see to it that a rank has at most one collective call at a time;
// transfers and everything below "any thread" may run beside it.
//
// Errors of meet and transfer: 507015 for what a rank posted, 507048 for a peer that is missing, gone or in
// another operator, after which the communicator is in fault and every call fails at once with the same
// story.
class Transport {
 public:
  virtual ~Transport() = default;

  // Posts the visit and waits until every rank has posted the same one. With a timeout of 0 it waits for
  // ever. When it fails in a round after the first of an exchange, no peer touches this rank's memory any
  // more.
  virtual Status meet(const Visit& visit, std::chrono::milliseconds timeout) = 0;

  // What peers posted in the meeting that was last met; valid until the next one.
  virtual std::span<const std::byte> message(int peer) const = 0;
  // data null: not addressable here, use put and get. On a peer of another host a stand-in, see Round.
  virtual Exposed block(int peer, int index) const = 0;
  virtual Status put(int peer, int index, std::int64_t offset, std::span<const std::byte> bytes) = 0;
  virtual Status get(int peer, int index, std::int64_t offset, std::span<std::byte> bytes) = 0;
  virtual bool is_far(int /*peer*/) const { return false; }
  virtual int host_of(int /*peer*/) const { return 0; }
  // Pieces of stand-ins go to the blocks that they stand for, or come from there.
  virtual Status send(std::span<const Piece> /*pieces*/) { return {}; }
  virtual Status fetch(std::span<const Piece> /*pieces*/) { return {}; }
  virtual Status get_all(std::span<const Get> /*gets*/) { return {}; }
  // The same for windows; any thread.
  virtual Status write_window(OperatorName, std::span<const WindowPiece>, std::chrono::milliseconds) {
    return {};
  }
  virtual Status read_window(OperatorName, std::span<const WindowPiece>, std::chrono::milliseconds) {
    return {};
  }
  // How much later than this rank the peer's posting was there; not above 0 where nobody waited for it.
  virtual std::chrono::nanoseconds lateness(int peer) const = 0;

  // This rank among some of the ranks, which are numbered in the order given; it is one of them. Their meetings and
  // faults are their own: nobody waits for the others, whatever has become of them. Lives as long as this one.
  virtual Result<Transport*> among(std::span<const std::int32_t> members) = 0;

  // This rank in a communicator of its own of some of the ranks. Does not wait for them. HCCL_E_PARA: others have the
  // name.
  virtual Result<std::unique_ptr<Transport>> sub(std::string_view function, const SubSpec& spec) = 0;

  // This rank leaves a call between its first and its last round: the communicator is in fault. Returns when
  // no peer touches this rank's memory any more.
  virtual void abandon(OperatorName operator_name) = 0;

  // Runs the transfers, which do not block each other, and waits until all are done.
  virtual Status transfer(OperatorName operator_name, std::span<const Transfer> items,
                          std::chrono::milliseconds timeout) = 0;

  // Any thread from here on.
  virtual Status fault() const = 0;  // 507048 and the story, once in fault
  virtual void post_refusal(int rank, OperatorName operator_name, const std::string& message) = 0;
  virtual void withdraw_refusal(int rank) = 0;
  virtual void depart() = 0;  // this rank's handle is being destroyed: whoever waits for it fails
  // The window of a rank: zero at first, made when somebody first asks; data null: not addressable here. Of a rank of
  // another host a stand-in, see Group.
  virtual Result<Exposed> window(int rank) = 0;
};

}  // namespace moeyard::comm
