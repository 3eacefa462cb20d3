// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// Ranks, and how an operator talks to its peers.
//
// A communicator is a set of ranks; a Group is one rank's handle on it. A collective call of one rank is an
// Exchange, a sequence of rounds in which every rank takes part:
//
//   Exchange exchange(group, "aclnnX");    when the work is submitted: takes its place in the sequence
//   Round round = MOEYARD_TRY(exchange.round(posting));  on a stream's worker: everybody has posted
//   ... read round.message(peer), write round.address(peer, block) ...
//   return exchange.finish();              everybody is done: my memory is mine again
//
// Costs per round and rank: one store of the posting, one atomic increment, one wait; the last to come
// compares what was posted (ranks x facts) and wakes the others. Nothing is allocated, and nothing grows with
// the square of the ranks. A collective that moves data is two rounds, a barrier one.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "comm/posting.h"
#include "comm/transport.h"

namespace moeyard::comm {

class Family;

struct Limits {
  std::int64_t buffer_mb = 200;               // HCCL_BUFFSIZE: size of each exchange buffer and of the window
  std::chrono::milliseconds exec_timeout{0};  // for waiting on peers; 0 = never gives up
};

struct Identity {
  std::string name;
  int rank;
  int size;
  std::int32_t device;
};

class Group {
 public:
  static constexpr std::uint8_t kHandleKind = 0x48;  // of HcclComm, see runtime/handle_table.h

  Group(Identity identity, Limits limits, std::shared_ptr<Family> family,
        std::unique_ptr<Transport> transport);
  ~Group();

  int rank() const { return identity_.rank; }
  int size() const { return identity_.size; }
  const std::string& name() const { return identity_.name; }
  std::int32_t device() const { return identity_.device; }
  const Limits& limits() const { return limits_; }
  Family& family() const { return *family_; }

  // Success, or the 507048 and story of what put the communicator out of use.
  Status fault() const { return transport_->fault(); }

  // For phase one of an operator: rank's call has been refused. A peer that waits for it in that operator, or
  // comes to wait, fails after a second of grace with `message` (507015). Forgotten when the rank submits its
  // next collective call; without effect if nobody waits.
  void post_refusal(int rank, std::string_view operator_name, const std::string& message) {
    transport_->post_refusal(rank, intern_operator(operator_name), message);
  }
  // Takes back what was posted for this rank.
  void withdraw_refusal() { transport_->withdraw_refusal(rank()); }

  // Sends and receives with single peers; they do not block each other. Blocks, so only on a stream's worker.
  Status transfer(std::string_view operator_name, std::span<const Transfer> items);

  // The window of a rank: limits().buffer_mb of zeros at first, alive as long as the communicator. Of a rank on another
  // host it is a stand-in: pieces of it go there with write_window(), in order, and come from there with read_window().
  // Both wait until that is done.
  Result<Exposed> window(int rank) { return transport_->window(rank); }
  bool is_far(int rank) const { return transport_->is_far(rank); }
  Status write_window(std::string_view operator_name, std::span<const WindowPiece> pieces) {
    return transport_->write_window(intern_operator(operator_name), pieces, limits_.exec_timeout);
  }
  Status read_window(std::string_view operator_name, std::span<const WindowPiece> pieces) {
    return transport_->read_window(intern_operator(operator_name), pieces, limits_.exec_timeout);
  }

  // Collective calls and transfers that are submitted and not yet over.
  class Work {
   public:
    explicit Work(std::shared_ptr<Group> group) : group_(std::move(group)) { group_->works_.fetch_add(1); }
    Work(Work&&) = default;
    Work& operator=(Work&&) = delete;
    ~Work() { end(); }
    void end() {
      if (group_) group_->works_.fetch_sub(1);
      group_.reset();
    }
    Group& group() const { return *group_; }

   private:
    std::shared_ptr<Group> group_;
  };
  bool busy() const { return works_.load() != 0; }

  // For callers with several host threads: held from the making of an Exchange to the submission of its task,
  // it keeps the order of the sequence and that of the stream equal.
  std::mutex submission;

  // The HcclComm of this rank.
  std::atomic<void*> handle{nullptr};

  // Between suspend and resume the HCCL functions refuse new work of this rank.
  std::atomic<bool> suspended{false};

  // This rank in a communicator of some of the ranks.
  Result<std::unique_ptr<Transport>> sub(std::string_view function, const SubSpec& spec) const {
    return transport_->sub(function, spec);
  }

  // The handle is being destroyed: peers that wait for this rank fail.
  void depart() { transport_->depart(); }

 private:
  friend class Exchange;
  std::uint64_t take_turn();
  Status await_turn(std::uint64_t turn, std::string_view operator_name, std::chrono::milliseconds timeout);
  void end_turn(std::uint64_t turn);

  const Identity identity_;
  const Limits limits_;
  const std::shared_ptr<Family> family_;
  const std::unique_ptr<Transport> transport_;
  std::atomic<int> works_{0};

  // Collective calls run in the order of their submission, whatever streams they are on.
  std::mutex turn_mutex_;
  std::condition_variable turn_changed_;
  std::uint64_t next_turn_ = 0;
  std::atomic<std::uint64_t> serving_{0};
  std::vector<std::uint64_t>
      ended_early_;  // turns that ended (their task was dropped) before they were served
};

// What everybody posted. Valid until the next round or the end of the exchange.
class Round {
 public:
  std::span<const std::byte> message(int peer) const { return transport_->message(peer); }

  // A peer's block in this process's memory, null where it cannot be addressed; and its size.
  std::byte* address(int peer, int block) const { return transport_->block(peer, block).data; }
  std::int64_t bytes(int peer, int block) const { return transport_->block(peer, block).bytes; }

  // Of a peer on another host address() is a stand-in, memory of this process: fetch() what is to be read before that,
  // and send() what has been written before the next round. For other peers that is nothing.
  bool is_far(int peer) const { return transport_->is_far(peer); }
  int host_of(int peer) const { return transport_->host_of(peer); }
  // The place of a piece for the peer's host that another one can be the same as (Piece::same); -1: none.
  std::int64_t same_host(std::span<const Piece> pieces, int peer) const {
    for (std::size_t i = 0; i < pieces.size(); ++i)
      if (pieces[i].same < 0 && host_of(pieces[i].peer) == host_of(peer)) return static_cast<std::int64_t>(i);
    return -1;
  }
  Status send(std::span<const Piece> pieces) const { return transport_->send(pieces); }
  Status fetch(std::span<const Piece> pieces) const { return transport_->fetch(pieces); }
  // Of peers on other hosts, all at once; others are left out.
  Status get_all(std::span<const Get> gets) const { return transport_->get_all(gets); }

  // Work on every transport. Out of a block's bounds: 507000.
  Status put(int peer, int block, std::int64_t offset, std::span<const std::byte> bytes) const {
    return transport_->put(peer, block, offset, bytes);
  }
  Status get(int peer, int block, std::int64_t offset, std::span<std::byte> bytes) const {
    return transport_->get(peer, block, offset, bytes);
  }

 private:
  friend class Exchange;
  explicit Round(Transport* transport) : transport_(transport) {}
  Transport* transport_;
};

// One rank's part in one collective call. Make it when the work is submitted (then collective calls of one
// rank keep their order whatever streams they run on, and HcclCommDestroy knows of them) or at the latest on
// the worker.
class Exchange {
 public:
  // timeout: the call's own limit for each wait; not given: the communicator's.
  Exchange(std::shared_ptr<Group> group, std::string_view operator_name,
           std::optional<std::chrono::milliseconds> timeout = std::nullopt);
  Exchange(Exchange&&) = default;
  Exchange& operator=(Exchange&&) = delete;
  // Leaving after a first round without finish() puts the communicator in fault, as peers rely on this rank.
  ~Exchange();

  Group& group() const { return work_.group(); }

  // Before the first round: only these ranks take part, numbered in the order given, of which this rank is one.
  // Every one of them must say the same.
  Status among(std::span<const std::int32_t> members);

  // Each wait from now on ends after `timeout` at the latest; 0: never.
  void limit_waits(std::chrono::milliseconds timeout) { timeout_ = timeout; }

  // From now on each round adds to waits[peer], in nanoseconds, how long this rank waited for the peer to come.
  void count_waits(std::span<std::int64_t> waits) { waits_ = waits; }

  // Posts this rank's part, waits for everybody's. A failure is the same on every rank and ends the exchange.
  Result<Round> round(const Posting& posting);

  // The last round: everybody is done with everybody's memory. May compare facts and report an error, too;
  // posts nothing to read.
  Status finish(const Posting& posting = {});

 private:
  enum class State { submitted, open, over };
  Status meet(const Posting& posting);
  void end();

  // A moved-from exchange is over.
  struct StateBox {
    State value = State::submitted;
    StateBox() = default;
    StateBox(StateBox&& other) noexcept : value(std::exchange(other.value, State::over)) {}
  };

  Group::Work work_;
  Transport* transport_;
  std::span<std::int64_t> waits_;
  OperatorName operator_name_;
  std::chrono::milliseconds timeout_;
  std::uint64_t turn_;
  int rounds_ = 0;
  StateBox state_;
};

}  // namespace moeyard::comm
