// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/group.h"

#include <algorithm>
#include <shared_mutex>
#include <unordered_set>
#include <utility>

#include "base/deadline.h"
#include "base/errors.h"
#include "base/trace.h"
#include "runtime/stop_signal.h"

namespace moeyard::comm {

OperatorName intern_operator(std::string_view name) {
  struct Names {
    struct Hash : std::hash<std::string_view> {
      using is_transparent = void;
    };
    std::shared_mutex mutex;
    std::unordered_set<std::string, Hash, std::equal_to<>> set;  // elements keep their address
  };
  static Names& names = *new Names;  // outlives every stream worker
  {
    std::shared_lock lock(names.mutex);
    if (const auto found = names.set.find(name); found != names.set.end()) return &*found;
  }
  std::unique_lock lock(names.mutex);
  return &*names.set.emplace(name).first;
}

Group::Group(Identity identity, Limits limits, std::shared_ptr<Family> family,
             std::unique_ptr<Transport> transport)
    : identity_(std::move(identity)),
      limits_(limits),
      family_(std::move(family)),
      transport_(std::move(transport)) {
  ended_early_.reserve(16);
}

Group::~Group() = default;

Status Group::transfer(std::string_view operator_name, std::span<const Transfer> items) {
  return transport_->transfer(intern_operator(operator_name), items, limits_.exec_timeout);
}

std::uint64_t Group::take_turn() {
  std::lock_guard lock(turn_mutex_);
  return next_turn_++;
}

Status Group::await_turn(std::uint64_t turn, std::string_view operator_name,
                         std::chrono::milliseconds timeout) {
  if (serving_.load(std::memory_order_acquire) == turn) [[likely]]
    return {};
  std::unique_lock lock(turn_mutex_);
  const auto my_turn = [&] { return serving_.load(std::memory_order_relaxed) == turn; };
  const Deadline deadline = Deadline::after(timeout);
  const runtime::StopSignal& stop = runtime::StopSignal::current();
  runtime::Looks looks;
  while (!turn_changed_.wait_until(lock, looks.next_before(deadline.at()), my_turn)) {
    if (stop.requested())
      return fail(stream_error::kPeerMissing, TextCode::runtime_state,
                  "{}: group {}, rank {}: the stream was aborted before the call's turn came", operator_name,
                  name(), rank());
    if (deadline.expired()) break;
  }
  if (my_turn()) return {};
  return fail(
      stream_error::kPeerMissing, TextCode::hccl_timeout,
      "{}: group {}, rank {}: an earlier collective call of this rank on another stream was not over after "
      "{} "
      "ms; a communicator's calls run in the order of their submission, so submit them in an order in which "
      "they can finish",
      operator_name, name(), rank(), timeout.count());
}

void Group::end_turn(std::uint64_t turn) {
  {
    std::lock_guard lock(turn_mutex_);
    if (serving_.load(std::memory_order_relaxed) != turn) {
      ended_early_.push_back(turn);
      return;
    }
    std::uint64_t next = turn + 1;
    for (auto skipped = ended_early_.end();
         (skipped = std::find(ended_early_.begin(), ended_early_.end(), next)) != ended_early_.end();
         ++next) {
      ended_early_.erase(skipped);
    }
    serving_.store(next, std::memory_order_release);
  }
  turn_changed_.notify_all();
}

Exchange::Exchange(std::shared_ptr<Group> group, std::string_view operator_name,
                   std::optional<std::chrono::milliseconds> timeout)
    : work_(std::move(group)),
      transport_(work_.group().transport_.get()),
      operator_name_(intern_operator(operator_name)),
      timeout_(timeout.value_or(this->group().limits().exec_timeout)),
      turn_(this->group().take_turn()) {
  this->group().transport_->withdraw_refusal(this->group().rank());
}

Exchange::~Exchange() {
  if (state_.value == State::over) return;
  if (state_.value == State::open) transport_->abandon(operator_name_);
  end();
}

Status Exchange::among(std::span<const std::int32_t> members) {
  transport_ = MOEYARD_TRY(transport_->among(members));
  return {};
}

void Exchange::end() {
  state_.value = State::over;
  group().end_turn(turn_);
  work_.end();
}

Status Exchange::meet(const Posting& posting) {
  if (state_.value == State::over)
    return fail(stream_error::kInternal, TextCode::internal,
                "{}: a round after the end of the exchange; please report it", *operator_name_);
  if (state_.value == State::submitted) MOEYARD_TRY(group().await_turn(turn_, *operator_name_, timeout_));
  Status met;
  {
    const TraceSpan span("wait", "wait for peers");
    met = transport_->meet(Visit{operator_name_, rounds_++, posting}, timeout_);
  }
  if (!met.ok()) {
    end();
    return met;
  }
  for (std::size_t peer = 0; peer < waits_.size(); ++peer)
    waits_[peer] += std::max<std::int64_t>(transport_->lateness(static_cast<int>(peer)).count(), 0);
  state_.value = State::open;
  return {};
}

Result<Round> Exchange::round(const Posting& posting) {
  MOEYARD_TRY(meet(posting));
  return Round(transport_);
}

Status Exchange::finish(const Posting& posting) {
  MOEYARD_TRY(meet(posting));
  end();
  return {};
}

}  // namespace moeyard::comm
