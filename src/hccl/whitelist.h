// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace moeyard::hccl {

// The addresses of HCCL_WHITELIST_FILE, {"host_ip": ["10.0.0.1"], "device_ip": []}. HCCL_E_OPEN_FILE_FAILURE: it
// cannot be read; HCCL_E_PARA: it is no such file.
Result<std::vector<std::string>> read_whitelist(std::string_view function, const std::string& path);

}  // namespace moeyard::hccl
