// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// How operators of attention/FFN disaggregation reach the windows of other workers.
#pragma once
#include <string>

#include "comm/group.h"
#include "contract/contract.h"
#include "ops/afd/patience.h"
#include "runtime/stream.h"

namespace moeyard::ops {

// The limits of the workers' communicator. Errors: 161002 there is none of that name, 561002 it has another size.
Result<comm::Limits> find_workers(const char* function, const std::string& group, std::int64_t world_size);

// Whether windows hold `layout_bytes`, counting the padding between their parts. `counted_bytes` is what the documents
// count, in whole MiB. 561002 otherwise.
Status check_window(const char* function, const comm::Limits& limits, std::uint64_t counted_bytes,
                    std::uint64_t layout_bytes);

// A worker's access to the windows of its communicator while one call runs.
class Windows {
 public:
  // 161002: no rank of the group is on the stream's device.
  static Result<Windows> open(const char* function, const std::string& group, const runtime::Stream& stream);

  int rank() const { return work_.group().rank(); }
  const Patience& patience() const { return patience_; }
  Status fault() const { return work_.group().fault(); }
  Result<std::byte*> of(const char* function, std::int64_t rank) const;
  // What of() gives of a worker on another host is a stand-in: what has been written there goes to the worker with
  // write(), in order, and what is to be read comes from it with read().
  bool is_far(std::int64_t rank) const { return work_.group().is_far(static_cast<int>(rank)); }
  Status write(const char* function, std::span<const comm::WindowPiece> pieces) const {
    return work_.group().write_window(function, pieces);
  }
  Status read(const char* function, std::span<const comm::WindowPiece> pieces) const {
    return work_.group().read_window(function, pieces);
  }

 private:
  Windows(std::shared_ptr<comm::Group> group, const runtime::Stream& stream);
  comm::Group::Work work_;
  Patience patience_;
};

// Rules that both operators have alike: A has group and world_size.
template <class A>
constexpr contract::Rule group_is_named() {
  return contract::rule<A>(
      contract::Stage::nulls, kEverywhere, "group", "name a communicator",
      [](const A& a) { return !a.group.empty(); }, "pass what HcclGetCommName gives",
      ACLNN_ERR_PARAM_NULLPTR);
}
template <class A>
constexpr contract::Rule group_is_short() {
  return contract::rule<A>(
      contract::Stage::strings, kEverywhere, "group", "have at most 127 characters",
      [](const A& a) { return a.group.size() < 128; }, {}, ACLNN_ERR_PARAM_INVALID);
}
template <class A>
constexpr contract::Rule world_size_on_devices() {
  return contract::rule<A>(contract::Stage::attributes, kDevices, "worldSize", "be in [2, 768]",
                           [](const A& a) { return 2 <= a.world_size && a.world_size <= 768; });
}
template <class A>
constexpr contract::Rule world_size_on_host() {
  return contract::rule<A>(contract::Stage::attributes, kHost, "worldSize", "be at least 1",
                           [](const A& a) { return a.world_size >= 1; });
}

}  // namespace moeyard::ops
