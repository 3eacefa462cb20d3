// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/rendezvous.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <random>

#include "base/deadline.h"
#include "base/errors.h"
#include "comm/registry.h"
#include "hccl/hccl_types.h"

namespace moeyard::comm {
namespace {

template <class... Args>
Status contradiction(fmt::format_string<Args...> format, Args&&... args) {
  return fail(HCCL_E_PARA, TextCode::hccl_parameter, format, std::forward<Args>(args)...);
}

}  // namespace

Status Gathering::check(std::string_view function, const Candidate& candidate) const {
  if (size_ == 0) return {};
  if (candidate.size != size_)
    return contradiction(
        "{}: nRanks is {} on rank {} but {} on a rank that came before; give the same on all ranks", function,
        candidate.size, candidate.rank, size_);
  if (devices_[candidate.rank])
    return contradiction("{}: rank {} has come already; give each rank its own number", function,
                         candidate.rank);
  for (int rank = 0; rank < size_; ++rank)
    if (devices_[rank] == candidate.device)
      return contradiction(
          "{}: ranks {} and {} are both on device {}; set another device before one of them joins", function,
          rank, candidate.rank, candidate.device);
  const auto differs = [&](const char* what, const auto& mine, const auto& before) {
    return contradiction(
        "{}: {} is {} on rank {} but {} on a rank that came before; give the same on all ranks", function,
        what, mine, candidate.rank, before);
  };
  const Spec& spec = candidate.spec;
  if (spec.name != spec_.name) return differs("hcclCommName", spec.name, spec_.name);
  if (spec.limits.buffer_mb != spec_.limits.buffer_mb)
    return differs("the buffer size in MB", spec.limits.buffer_mb, spec_.limits.buffer_mb);
  if (spec.limits.exec_timeout != spec_.limits.exec_timeout)
    return differs("the execution timeout in ms", spec.limits.exec_timeout.count(),
                   spec_.limits.exec_timeout.count());
  if (spec.deterministic != spec_.deterministic)
    return differs("hcclDeterministic", spec.deterministic, spec_.deterministic);
  return {};
}

Result<std::shared_ptr<Group>> Gathering::arrive(std::string_view function, const Candidate& candidate,
                                                 std::chrono::milliseconds timeout) {
  const Deadline deadline = Deadline::after(timeout);
  std::unique_lock lock(mutex_);
  if (over_)
    return failure_.ok()
               ? contradiction("{}: this communicator is complete; make another root info", function)
               : failure_;
  if (Status wrong = check(function, candidate); !wrong.ok()) {
    const bool duplicate = candidate.size == size_ && devices_[candidate.rank];
    if (!duplicate || on_duplicate_ == OnDuplicate::fail_all) end_with(wrong);
    return wrong;
  }
  if (size_ == 0) {
    size_ = candidate.size;
    spec_ = candidate.spec;
    devices_.resize(size_);
  }
  devices_[candidate.rank] = candidate.device;
  if (++come_ == size_) complete(function);
  while (!over_) {
    if (!deadline.at()) {
      changed_.wait(lock);
    } else if (changed_.wait_until(lock, *deadline.at()) == std::cv_status::timeout && !over_) {
      end_with(fail(HCCL_E_TIMEOUT, TextCode::hccl_connection,
                    "{}: {} of {} did not come within {} ms; start every rank as a thread of this process "
                    "(ranks of other "
                    "processes are not supported yet), or raise HCCL_CONNECT_TIMEOUT",
                    function, missing(), size_, timeout.count()));
    }
  }
  if (!failure_.ok()) return failure_;
  return std::move(groups_[candidate.rank]);
}

void Gathering::complete(std::string_view function) {
  std::vector<std::int32_t> devices;
  for (const auto& device : devices_) devices.push_back(*device);
  auto created = create_local(function, spec_, devices);
  if (!created) return end_with(created.error());
  groups_ = *std::move(created);
  handed_out_.assign(groups_.begin(), groups_.end());
  end_with({});
}

void Gathering::end_with(Status failure) {
  over_ = true;
  failure_ = std::move(failure);
  changed_.notify_all();
}

void Gathering::cancel(int rank) {
  std::lock_guard lock(mutex_);
  if (!over_)
    end_with(fail(HCCL_E_UNAVAIL, TextCode::hccl_parameter,
                  "HcclCommDestroy: rank {} was destroyed while the ranks were still connecting", rank));
}

bool Gathering::over() const {
  std::lock_guard lock(mutex_);
  return over_;
}

bool Gathering::is_alive(int rank) const {
  std::lock_guard lock(mutex_);
  return rank < static_cast<int>(handed_out_.size()) && !handed_out_[rank].expired();
}

bool Gathering::any_alive() const {
  std::lock_guard lock(mutex_);
  return std::ranges::any_of(handed_out_, [](const auto& group) { return !group.expired(); });
}

std::string Gathering::missing() const {
  constexpr int kMostNamed = 8;
  std::string text;
  int count = 0;
  for (int rank = 0; rank < size_; ++rank) {
    if (devices_[rank] || ++count > kMostNamed) continue;
    text += fmt::format("{}{}", text.empty() ? (size_ - come_ == 1 ? "rank " : "ranks ") : ", ", rank);
  }
  if (count > kMostNamed) text += fmt::format(" and {} more", count - kMostNamed);
  return text;
}

// ---- Root infos ----

namespace {

using Token = std::array<std::uint64_t, 2>;

struct RootInfo {
  char magic[8] = {'M', 'O', 'E', 'Y', 'A', 'R', 'D', 'R'};
  std::uint32_t version = 1;
  std::uint32_t reserved = 0;
  Token process{};  // who made it
  Token id{};       // of the gathering
  Token secret{};   // only who was given the root info knows it
};
static_assert(sizeof(RootInfo) <= kRootInfoBytes);

Token random_token() {
  std::random_device random;
  Token token;
  for (std::uint64_t& word : token) word = static_cast<std::uint64_t>(random()) << 32 | random();
  return token;
}

struct RootInfos {
  struct Open {
    Token secret;
    std::shared_ptr<Gathering> gathering;
  };
  const Token process = random_token();
  std::mutex mutex;
  std::map<Token, Open> open;
};

RootInfos& root_infos() {
  static RootInfos& all = *new RootInfos;
  return all;
}

}  // namespace

void make_root_info(std::span<char, kRootInfoBytes> bytes) {
  RootInfos& all = root_infos();
  RootInfo info;
  info.process = all.process;
  info.id = random_token();
  info.secret = random_token();
  {
    std::lock_guard lock(all.mutex);
    std::erase_if(all.open, [](const auto& entry) { return entry.second.gathering->over(); });
    all.open[info.id] = {info.secret, std::make_shared<Gathering>(Gathering::OnDuplicate::fail_all)};
  }
  std::memset(bytes.data(), 0, bytes.size());
  std::memcpy(bytes.data(), &info, sizeof(info));
}

Result<std::shared_ptr<Gathering>> find_gathering(std::string_view function,
                                                  std::span<const char, kRootInfoBytes> bytes) {
  RootInfos& all = root_infos();
  RootInfo info;
  std::memcpy(static_cast<void*>(&info), bytes.data(), sizeof(info));
  const RootInfo expected;
  if (std::memcmp(info.magic, expected.magic, sizeof(info.magic)) != 0 || info.version != expected.version)
    return contradiction(
        "{}: rootInfo was not made by this library's HcclGetRootInfo; copy all {} bytes of it", function,
        kRootInfoBytes);
  if (info.process != all.process)
    return fail(HCCL_E_NOT_SUPPORT, TextCode::hccl_parameter,
                "{}: rootInfo was made in another process; ranks of several processes are not supported yet, "
                "so start the "
                "ranks as threads of one process",
                function);
  std::lock_guard lock(all.mutex);
  const auto found = all.open.find(info.id);
  if (found == all.open.end() || found->second.secret != info.secret)
    return contradiction(
        "{}: rootInfo has served its communicator already; call HcclGetRootInfo for each communicator",
        function);
  return found->second.gathering;
}

// ---- Rank tables ----

Result<std::shared_ptr<Gathering>> find_table_gathering(std::string_view function, const std::string& table,
                                                        int rank) {
  // By the table's text: gatherings of which a rank is alive, and the one under way last.
  struct Tables {
    std::mutex mutex;
    std::map<std::string, std::vector<std::shared_ptr<Gathering>>> gatherings;
  };
  static Tables& all = *new Tables;
  std::lock_guard lock(all.mutex);
  auto& gatherings = all.gatherings[table];
  std::erase_if(gatherings, [](const auto& one) { return one->over() && !one->any_alive(); });
  for (const auto& one : gatherings)
    if (one->is_alive(rank))
      return contradiction(
          "{}: rank {} of this rank table is initialised in this process already; destroy it first", function,
          rank);
  if (gatherings.empty() || gatherings.back()->over())
    gatherings.push_back(std::make_shared<Gathering>(Gathering::OnDuplicate::refuse_late));
  return gatherings.back();
}

}  // namespace moeyard::comm
