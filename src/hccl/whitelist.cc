// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "hccl/whitelist.h"

#include <arpa/inet.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "hccl/hccl_types.h"

namespace moeyard::hccl {

Result<std::vector<std::string>> read_whitelist(std::string_view function, const std::string& path) {
  const auto wrong = [&](std::string_view what) {
    return fail(HCCL_E_PARA, TextCode::hccl_environment,
                "{}: HCCL_WHITELIST_FILE {} {}; it must be JSON such as {{\"host_ip\": [\"10.0.0.1\"], "
                "\"device_ip\": "
                "[]}}",
                function, path, what);
  };
  if (path.empty())
    return fail(
        HCCL_E_PARA, TextCode::hccl_environment,
        "{}: HCCL_WHITELIST_DISABLE is 0 but HCCL_WHITELIST_FILE is not set; name the file of the addresses "
        "that may join",
        function);
  std::ifstream file(path);
  if (!file)
    return fail(HCCL_E_OPEN_FILE_FAILURE, TextCode::hccl_environment,
                "{}: HCCL_WHITELIST_FILE {} cannot be opened; see that it exists and can be read", function,
                path);
  const auto root = nlohmann::json::parse(file, nullptr, false);
  if (root.is_discarded() || !root.is_object()) return wrong("is no JSON object");
  if (!root.contains("host_ip") || !root["host_ip"].is_array()) return wrong("has no list host_ip");
  std::vector<std::string> addresses;
  for (const auto& entry : root["host_ip"]) {
    unsigned char bytes[sizeof(in6_addr)];
    if (!entry.is_string() || (inet_pton(AF_INET, entry.get_ref<const std::string&>().c_str(), bytes) != 1 &&
                               inet_pton(AF_INET6, entry.get_ref<const std::string&>().c_str(), bytes) != 1))
      return wrong("has an entry in host_ip that is no IPv4 or IPv6 address");
    addresses.push_back(entry);
  }
  return addresses;
}

}  // namespace moeyard::hccl
