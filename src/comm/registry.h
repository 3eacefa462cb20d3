// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/group.h"

namespace moeyard::comm {

// The live communicators of this process by name. Any thread may call these; looking up costs a hash and a
// shared lock.

struct GroupInfo {
  int size;
  Limits limits;
};
// None: no rank of a communicator of that name lives in this process.
std::optional<GroupInfo> find_group(std::string_view name);
// The rank that belongs to a device, or has a number; null if it does not live in this process.
std::shared_ptr<Group> find_rank(std::string_view name, std::int32_t device);
std::shared_ptr<Group> find_member(std::string_view name, int rank);

// What the local ranks of a communicator have in common. A name belongs to one family at a time.
class Family {
 public:
  explicit Family(bool is_sub) : is_sub_(is_sub) {}
  bool is_sub() const { return is_sub_; }

 private:
  friend class SubCommunicators;
  struct Sub {
    std::shared_ptr<Family> family;
    std::map<int, int> times_joined;  // by rank of the sub-communicator
  };
  const bool is_sub_;
  std::mutex mutex_;
  std::map<std::pair<std::string, std::vector<std::int32_t>>, Sub> subs_;  // by name and ranks of the parent
};

// Makes ranks known; all or none. HCCL_E_PARA if another family has the name, or a device has a rank in it
// already.
Status enroll(std::string_view function, std::span<const std::shared_ptr<Group>> groups);
// Forgets a rank; false if it was not known.
bool retire(const Group& group);

}  // namespace moeyard::comm
