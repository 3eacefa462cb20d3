// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/group.h"

namespace moeyard::comm {

// What all ranks of a communicator say alike.
struct Spec {
  std::string name;  // empty: generated
  Limits limits;
  int deterministic = 0;  // kept and compared; results never depend on it
};

// A name that no other communicator has.
std::string generate_name();

// Makes and enrolls all ranks of a communicator in this process: rank i belongs to devices[i]. HCCL_E_PARA:
// the name is taken.
Result<std::vector<std::shared_ptr<Group>>> create_local(std::string_view function, const Spec& spec,
                                                         std::span<const std::int32_t> devices);

// Makes rank `rank` of the sub-communicator of parent's ranks `members`. Does not wait for the others; the
// ranks of one sub-communicator find each other by its name. HCCL_E_PARA: other members than another rank
// said, a name that is taken.
Result<std::shared_ptr<Group>> create_sub(std::string_view function, const Group& parent, const Spec& spec,
                                          std::span<const std::uint32_t> members, int rank);

}  // namespace moeyard::comm
