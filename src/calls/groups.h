// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <hccl/hccl.h>

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "calls/call.h"

namespace moeyard::calls {

// The attribute that says how many ranks the group of a parameter has, or which one the caller is: "epWorldSize" and
// "epRankId" for "groupEp", "worldSize" for "group". Empty: the function has none.
std::string size_attribute(const Function& function, std::string_view group_parameter);
std::string rank_attribute(const Function& function, std::string_view group_parameter);

// Whether a parameter names a communicator.
bool names_group(const Parameter& parameter);

// A communicator of as many threads of this process as are needed, one per device.
class Communicator {
 public:
  // buffer_mb 0: as HCCL_BUFFSIZE says.
  static Result<std::unique_ptr<Communicator>> make(std::span<const std::int32_t> devices,
                                                    std::int64_t buffer_mb);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  const std::string& name() const { return name_; }
  std::size_t size() const { return ranks_.size(); }

 private:
  Communicator() = default;
  std::vector<HcclComm> ranks_;
  std::string name_;
};

}  // namespace moeyard::calls
