// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// Where ranks that were started on their own find each other and become a communicator. So far they are
// threads of one process; ranks of other processes are named as missing when the time is up.
#pragma once
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

#include "comm/create.h"

namespace moeyard::comm {

// One rank that wants to join.
struct Candidate {
  int rank;
  int size;  // of the communicator, as this rank says
  std::int32_t device;
  Spec spec;
};

// A communicator in the making. Errors are HCCL's codes.
class Gathering {
 public:
  enum class OnDuplicate {
    fail_all,     // of a root info: the communicator can't come about any more
    refuse_late,  // of a rank table: the first one waits on
  };
  explicit Gathering(OnDuplicate on_duplicate) : on_duplicate_(on_duplicate) {}

  // Waits until all ranks have come and returns the candidate's. HCCL_E_PARA: its rank, size, device or spec
  // contradicts another's; HCCL_E_TIMEOUT: ranks did not come, the message names them; 0 waits for ever.
  Result<std::shared_ptr<Group>> arrive(std::string_view function, const Candidate& candidate,
                                        std::chrono::milliseconds timeout);
  // A rank that waits in arrive() gives up: everybody gets HCCL_E_UNAVAIL.
  void cancel(int rank);
  // Whether it has ended, one way or the other.
  bool over() const;
  // Whether the communicator came about and this rank of it has not been destroyed; any: whether any rank is.
  bool is_alive(int rank) const;
  bool any_alive() const;

 private:
  Status check(std::string_view function, const Candidate& candidate) const;
  void complete(std::string_view function);
  void end_with(Status failure);
  std::string missing() const;

  const OnDuplicate on_duplicate_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::optional<std::int32_t>> devices_;  // by rank
  int size_ = 0;                                      // 0: nobody has come yet
  int come_ = 0;
  Spec spec_;
  bool over_ = false;
  Status failure_;
  std::vector<std::shared_ptr<Group>> groups_;  // until they are handed out
  std::vector<std::weak_ptr<Group>> handed_out_;
};

// The bytes of an HcclRootInfo: says which gathering of which process it belongs to, and proves it.
inline constexpr std::size_t kRootInfoBytes = 4108;
void make_root_info(std::span<char, kRootInfoBytes> bytes);
// HCCL_E_PARA: no root info, or one that has served; HCCL_E_NOT_SUPPORT: made in another process.
Result<std::shared_ptr<Gathering>> find_gathering(std::string_view function,
                                                  std::span<const char, kRootInfoBytes> bytes);

// The gathering of the rank table with this text; begins a new one when the last is over. HCCL_E_PARA: `rank`
// of that table lives in this process already.
Result<std::shared_ptr<Gathering>> find_table_gathering(std::string_view function, const std::string& table,
                                                        int rank);

}  // namespace moeyard::comm
