// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string_view>

#include "comm/group.h"
#include "comm/rendezvous.h"
#include "hccl/hccl_types.h"
#include "runtime/handle_table.h"

namespace moeyard::hccl {

// HcclComm: a rank of a communicator, or one that is still connecting (so that HcclCommDestroy can break its
// wait).

struct Connecting {
  static constexpr std::uint8_t kHandleKind = 0x49;
  std::shared_ptr<comm::Rendezvous> rendezvous;
  int rank;
};

runtime::HandleTable<comm::Group>& handles();
runtime::HandleTable<Connecting>& connecting_handles();

// HCCL_E_MEMORY: too many.
Result<HcclComm> add_handle(std::string_view function, std::shared_ptr<comm::Group> group);

// HCCL_E_PTR: null; HCCL_E_PARA: not alive.
Result<std::shared_ptr<comm::Group>> find_comm(std::string_view function, HcclComm comm);

// By name: the rank of this thread's current device, else the lowest of this process. HCCL_E_PARA: none.
Result<std::shared_ptr<comm::Group>> find_named(std::string_view function, std::string_view name);

Status null_pointer(std::string_view function, std::string_view parameter);  // HCCL_E_PTR
template <class T>
Status check_pointer(std::string_view function, std::string_view parameter, const T* pointer) {
  return pointer == nullptr ? null_pointer(function, parameter) : Status();
}

}  // namespace moeyard::hccl
