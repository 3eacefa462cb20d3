// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "hccl/handles.h"

#include "base/errors.h"
#include "comm/registry.h"
#include "runtime/stream.h"

namespace moeyard::hccl {

runtime::HandleTable<comm::Group>& handles() {
  static auto& all = *new runtime::HandleTable<comm::Group>;
  return all;
}

runtime::HandleTable<Connecting>& connecting_handles() {
  static auto& all = *new runtime::HandleTable<Connecting>;
  return all;
}

Result<HcclComm> add_handle(std::string_view function, std::shared_ptr<comm::Group> group) {
  if (HcclComm handle = handles().add(group)) {
    group->handle = handle;
    return handle;
  }
  return fail(HCCL_E_MEMORY, TextCode::runtime_resource, "{}: there are too many communicators; destroy some",
              function);
}

Result<std::shared_ptr<comm::Group>> find_comm(std::string_view function, HcclComm comm) {
  if (comm == nullptr) return null_pointer(function, "comm");
  if (auto group = handles().find(comm)) return group;
  return fail(HCCL_E_PARA, TextCode::hccl_parameter,
              "{}: comm is no live communicator; it was destroyed, is still connecting, or was never made",
              function);
}

Result<std::shared_ptr<comm::Group>> find_named(std::string_view function, std::string_view name) {
  if (auto group = comm::find_rank(name, runtime::current_device())) return group;
  for (int rank = 0, size = comm::find_group(name).value_or(comm::GroupInfo{0, {}}).size; rank < size; ++rank)
    if (auto group = comm::find_member(name, rank)) return group;
  return fail(HCCL_E_PARA, TextCode::hccl_parameter,
              "{}: no live communicator of this process has the name {}", function, name);
}

Status null_pointer(std::string_view function, std::string_view parameter) {
  return fail(HCCL_E_PTR, TextCode::hccl_parameter, "{}: {} is null", function, parameter);
}

}  // namespace moeyard::hccl
