// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap/gathering.h"

#include <algorithm>
#include <map>

#include "base/errors.h"
#include "comm/bootstrap/assembly.h"
#include "comm/registry.h"
#include "hccl/hccl_types.h"

namespace moeyard::comm {
namespace {

template <class... Args>
Status contradiction(fmt::format_string<Args...> format, Args&&... args) {
  return fail(HCCL_E_PARA, TextCode::hccl_parameter, format, std::forward<Args>(args)...);
}

}  // namespace

std::string list_of_ranks(const std::vector<int>& ranks) {
  constexpr std::size_t kMostNamed = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(ranks.size(), kMostNamed); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  if (ranks.size() > kMostNamed) text += fmt::format(" and {} more", ranks.size() - kMostNamed);
  return text;
}

Status Gathering::check(std::string_view function, const Candidate& candidate) const {
  if (size_ == 0) return {};
  if (candidate.size != size_)
    return contradiction(
        "{}: nRanks is {} on rank {} but {} on a rank that came before; give the same on all ranks", function,
        candidate.size, candidate.rank, size_);
  if (entries_[static_cast<std::size_t>(candidate.rank)])
    return contradiction("{}: rank {} has come already; give each rank its own number", function,
                         candidate.rank);
  for (int rank = 0; rank < size_; ++rank) {
    const auto& entry = entries_[static_cast<std::size_t>(rank)];
    if (entry && entry->candidate.process == candidate.process && entry->candidate.device == candidate.device)
      return contradiction(
          "{}: ranks {} and {} are both on device {}; set another device before one of them joins", function,
          rank, candidate.rank, candidate.device);
  }
  const auto differs = [&](const char* what, const auto& mine, const auto& before) {
    return contradiction(
        "{}: {} is {} on rank {} but {} on a rank that came before; give the same on all ranks", function,
        what, mine, candidate.rank, before);
  };
  const Spec& spec = candidate.spec;
  if (spec.name != spec_.name) return differs("hcclCommName", spec.name, spec_.name);
  if (spec.limits.buffer_mb != spec_.limits.buffer_mb)
    return differs("the buffer size in MiB", spec.limits.buffer_mb, spec_.limits.buffer_mb);
  if (spec.limits.exec_timeout != spec_.limits.exec_timeout)
    return differs("the execution timeout in ms", spec.limits.exec_timeout.count(),
                   spec_.limits.exec_timeout.count());
  if (spec.deterministic != spec_.deterministic)
    return differs("hcclDeterministic", spec.deterministic, spec_.deterministic);
  return {};
}

Status Gathering::enter(std::string_view function, const Candidate& candidate,
                        std::chrono::milliseconds timeout, Reply reply) {
  const std::lock_guard lock(mutex_);
  return enter_locked(function, candidate, timeout, std::move(reply));
}

Status Gathering::enter_locked(std::string_view function, const Candidate& candidate,
                               std::chrono::milliseconds timeout, Reply reply) {
  if (over_ || membership_)
    return failure_.ok()
               ? contradiction("{}: this communicator is complete; make another root info", function)
               : failure_;
  if (Status wrong = check(function, candidate); !wrong.ok()) {
    const bool duplicate =
        candidate.size == size_ && entries_[static_cast<std::size_t>(candidate.rank)].has_value();
    if (!duplicate || on_duplicate_ == OnDuplicate::fail_all) end_with(wrong);
    return wrong;
  }
  if (size_ == 0) {
    size_ = candidate.size;
    spec_ = candidate.spec;
    entries_.resize(static_cast<std::size_t>(size_));
  }
  if (function_.empty()) function_ = function;
  entries_[static_cast<std::size_t>(candidate.rank)] =
      Entry{candidate, Deadline::after(timeout), timeout, std::move(reply)};
  if (++come_ == size_) complete(function);
  return {};
}

Result<std::shared_ptr<Group>> Gathering::arrive(std::string_view function, const Candidate& candidate,
                                                 std::chrono::milliseconds timeout) {
  const Deadline deadline = Deadline::after(timeout);
  MOEYARD_TRY(enter(function, candidate, timeout, {}));
  return conclude(function, candidate.rank, deadline);
}

Result<std::shared_ptr<Group>> Gathering::conclude(std::string_view function, int rank,
                                                   const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  const auto wait_for = [&](auto&& reached) {
    while (!over_ && !reached()) {
      if (!deadline.at()) {
        changed_.wait(lock);
      } else if (changed_.wait_until(lock, *deadline.at()) == std::cv_status::timeout) {
        lock.unlock();
        expire();
        lock.lock();
      }
    }
  };
  wait_for([&] { return membership_.has_value(); });
  if (!failure_.ok()) return failure_;
  if (!membership_) return std::move(groups_[static_cast<std::size_t>(rank)]);

  lock.unlock();
  auto group = assemble(function, *membership_, rank, deadline);
  lock.lock();
  ready_locked(rank, group ? Status() : group.error());
  wait_for([] { return false; });
  if (group && !failure_.ok()) retire(**group);
  if (!failure_.ok()) return failure_;
  lock.unlock();
  hand_out(rank, *group);
  return group;
}

void Gathering::hand_out(int rank, const std::shared_ptr<Group>& group) {
  const std::lock_guard lock(mutex_);
  handed_out_.resize(std::max(handed_out_.size(), static_cast<std::size_t>(group->size())));
  handed_out_[static_cast<std::size_t>(rank)] = group;
}

void Gathering::forget(int rank) {
  const std::lock_guard lock(mutex_);
  if (over_ || membership_ || !entries_[static_cast<std::size_t>(rank)]) return;
  entries_[static_cast<std::size_t>(rank)].reset();
  if (--come_ == 0) size_ = 0;
}

bool Gathering::settled() const {
  const std::lock_guard lock(mutex_);
  return over_ || membership_;
}

void Gathering::note(std::string text) {
  const std::lock_guard lock(mutex_);
  note_ = std::move(text);
}

// With the lock held: all have come.
void Gathering::complete(std::string_view function) {
  if (std::ranges::all_of(entries_,
                          [&](const auto& entry) { return entry->candidate.process == this_process(); })) {
    std::vector<std::int32_t> devices;
    for (const auto& entry : entries_) devices.push_back(entry->candidate.device);
    auto created = create_local(function, spec_, devices);
    if (!created) return end_with(created.error());
    groups_ = *std::move(created);
    handed_out_.assign(groups_.begin(), groups_.end());
    return end_with({});
  }
  Membership made{.spec = spec_, .token = random_token()};
  if (made.spec.name.empty()) made.spec.name = generate_name();
  std::map<std::string, int> hosts;
  std::map<ProcessId, int> processes;
  for (const auto& entry : entries_) {
    const Candidate& candidate = entry->candidate;
    const int host = hosts.emplace(candidate.host, static_cast<int>(hosts.size())).first->second;
    const auto [process, is_new] = processes.emplace(candidate.process, static_cast<int>(processes.size()));
    if (is_new) made.processes.push_back({candidate.process, candidate.door, host});
    made.ranks.push_back({process->second, candidate.device});
  }
  made.hosts = static_cast<int>(hosts.size());
  membership_ = std::move(made);
  const std::string table = encode(*membership_);
  for (const auto& entry : entries_)
    if (entry->reply) entry->reply(Frame::table, table);
  changed_.notify_all();
}

void Gathering::ready(int rank, const Status& status) {
  const std::lock_guard lock(mutex_);
  ready_locked(rank, status);
}

void Gathering::ready_locked(int rank, const Status& status) {
  if (over_) return;
  if (!status.ok()) return end_with(status);
  auto& entry = entries_[static_cast<std::size_t>(rank)];
  if (!entry || entry->ready) return;
  entry->ready = true;
  if (++ready_ == size_) end_with({});
}

void Gathering::leave(int rank) {
  const std::lock_guard lock(mutex_);
  if (!over_)
    end_with(fail(HCCL_E_REMOTE, TextCode::hccl_connection,
                  "{}: rank {} left while the ranks were connecting; look why its process has ended",
                  function_, rank));
}

void Gathering::cancel(int rank) {
  const std::lock_guard lock(mutex_);
  if (!over_)
    end_with(fail(HCCL_E_UNAVAIL, TextCode::hccl_parameter,
                  "HcclCommDestroy: rank {} was destroyed while the ranks were still connecting", rank));
}

void Gathering::expire() {
  const std::lock_guard lock(mutex_);
  if (over_) return;
  for (const auto& entry : entries_) {
    if (!entry || !entry->deadline.expired()) continue;
    const bool assembling = membership_.has_value();
    return end_with(
        fail(HCCL_E_TIMEOUT, TextCode::hccl_connection,
             "{}: {} of {} {} within {} ms{}; start every rank, see that each can reach this host, or raise "
             "HCCL_CONNECT_TIMEOUT",
             function_, missing(), size_, assembling ? "did not connect" : "did not come",
             entry->timeout.count(), note_));
  }
}

void Gathering::end_with(Status failure) {
  over_ = true;
  failure_ = std::move(failure);
  const std::string text = encode(failure_);
  for (auto& entry : entries_) {
    if (!entry || !entry->reply) continue;
    entry->reply(failure_.ok() ? Frame::go : Frame::failure, text);
    entry->reply = {};
  }
  changed_.notify_all();
}

bool Gathering::over() const {
  const std::lock_guard lock(mutex_);
  return over_;
}

bool Gathering::is_alive(int rank) const {
  const std::lock_guard lock(mutex_);
  return rank < static_cast<int>(handed_out_.size()) &&
         !handed_out_[static_cast<std::size_t>(rank)].expired();
}

bool Gathering::any_alive() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(handed_out_, [](const auto& group) { return !group.expired(); });
}

// Ranks that have not come, or once all have, that are not ready.
std::string Gathering::missing() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < size_; ++rank) {
    const auto& entry = entries_[static_cast<std::size_t>(rank)];
    if (!entry || (membership_ && !entry->ready)) ranks.push_back(rank);
  }
  return list_of_ranks(ranks);
}

}  // namespace moeyard::comm
