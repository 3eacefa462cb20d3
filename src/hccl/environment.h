// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/settings.h"
#include "base/status.h"
#include "comm/bootstrap/network.h"

namespace moeyard::hccl {

// The HCCL_* variables. They are read and checked whenever a communicator is made, as programs set them with
// setenv.
std::span<const Setting> all_variables();

struct Environment {
  std::int64_t buffer_mb;                     // HCCL_BUFFSIZE
  std::chrono::milliseconds connect_timeout;  // HCCL_CONNECT_TIMEOUT
  std::chrono::milliseconds exec_timeout;     // HCCL_EXEC_TIMEOUT; 0 = never
  int deterministic;                          // HCCL_DETERMINISTIC: false 0, true 1, strict 2
  comm::Network network;                      // HCCL_IF_*, HCCL_SOCKET_*, HCCL_*_PORT_RANGE, HCCL_WHITELIST_*
};

// HCCL_E_PARA: a variable has a value that it must not have.
Result<Environment> read_environment(std::string_view function);

// HCCL_ENTRY_LOG_ENABLE as of the last time the environment was read.
bool logs_entries();

}  // namespace moeyard::hccl
