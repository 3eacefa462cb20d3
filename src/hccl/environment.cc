// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "hccl/environment.h"

#include <arpa/inet.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "base/errors.h"
#include "hccl/hccl_types.h"
#include "hccl/whitelist.h"

namespace moeyard::hccl {
namespace {

std::optional<std::int64_t> integer(std::string_view text, std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high)
    return std::nullopt;
  return value;
}

std::optional<double> seconds(std::string_view text) {
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= 0) || value > 2147483647.0)
    return std::nullopt;
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool is_flag(std::string_view text) { return text == "0" || text == "1"; }
bool is_anything(std::string_view) { return true; }
bool is_address(std::string_view text) {
  unsigned char bytes[sizeof(in6_addr)];
  const std::string address(text);
  return inet_pton(AF_INET, address.c_str(), bytes) == 1 || inet_pton(AF_INET6, address.c_str(), bytes) == 1;
}

// "60000-60050" or "60000,60050-60100", ranges do not overlap; "auto": any, an empty list.
using Ports = std::vector<std::pair<int, int>>;
std::optional<Ports> parse_ports(std::string_view text) {
  Ports ranges;
  if (text == "auto") return ranges;
  for (const std::string_view part : split(text, ',')) {
    const auto ends = split(part, '-');
    const auto low = integer(ends.front(), 1, 65535), high = integer(ends.back(), 1, 65535);
    if (ends.size() > 2 || !low || !high || *low > *high) return std::nullopt;
    ranges.emplace_back(static_cast<int>(*low), static_cast<int>(*high));
  }
  Ports sorted = ranges;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted, [](auto a, auto b) { return b.first <= a.second; }) != sorted.end())
    return std::nullopt;
  return ranges;
}
bool is_port_range(std::string_view text) { return parse_ports(text).has_value(); }

template <class... Words>
bool is_one_of(std::string_view text, Words... words) {
  return ((text == words) || ...);
}

struct Variable {
  Setting setting;
  bool (*accepts)(std::string_view value);
  const char* rule;
};

constexpr const char* kPorts = "ports 1 to 65535 such as 60000,60050-60100 that do not overlap, or auto";

constexpr Variable kVariables[] = {
    {{"HCCL_BUFFSIZE", "200", "MiB of each exchange buffer of a communicator, and of its window"},
     [](std::string_view text) { return integer(text, 1, INT32_MAX).has_value(); },
     "an integer of 1 or more"},
    {{"HCCL_CONNECT_TIMEOUT", "120", "seconds to wait for all ranks when a communicator is made"},
     [](std::string_view text) { return integer(text, 1, 7200).has_value(); },
     "an integer in [1, 7200]"},
    {{"HCCL_EXEC_TIMEOUT", "1836", "seconds to wait for peers in a collective; 0 waits for ever"},
     [](std::string_view text) { return seconds(text).has_value(); },
     "a number in [0, 2147483647]"},
    {{"HCCL_IF_IP", "", "address for finding ranks of other processes"},
     is_address,
     "an IPv4 or IPv6 address"},
    {{"HCCL_SOCKET_IFNAME", "", "interfaces for finding ranks of other processes"}, is_anything, ""},
    {{"HCCL_SOCKET_FAMILY", "AF_INET", "address family used with HCCL_SOCKET_IFNAME"},
     [](std::string_view text) { return is_one_of(text, "AF_INET", "AF_INET6"); },
     "AF_INET or AF_INET6"},
    {{"HCCL_IF_BASE_PORT", "60000", "first of 32 ports for finding ranks of other processes"},
     [](std::string_view text) { return integer(text, 1024, 65520).has_value(); },
     "an integer in [1024, 65520]"},
    {{"HCCL_HOST_SOCKET_PORT_RANGE", "", "ports for finding ranks; wins over HCCL_IF_BASE_PORT"},
     is_port_range,
     kPorts},
    {{"HCCL_NPU_SOCKET_PORT_RANGE", "", "ports for data between hosts"}, is_port_range, kPorts},
    {{"HCCL_WHITELIST_DISABLE", "1", "0: only addresses in HCCL_WHITELIST_FILE may join"}, is_flag, "0 or 1"},
    {{"HCCL_WHITELIST_FILE", "", "file of the addresses that may join"}, is_anything, ""},
    {{"HCCL_DETERMINISTIC", "false", "false, true or strict; results are always those of strict"},
     [](std::string_view text) {
       return is_one_of(text, "false", "true", "strict", "FALSE", "TRUE", "STRICT");
     },
     "false, true or strict"},
    {{"HCCL_OP_EXPANSION_MODE", "", "accepted, without effect"},
     [](std::string_view text) {
       return is_one_of(text, "AI_CPU", "AICPU_TS", "AIV", "HOST", "HOST_TS", "CCU_MS", "CCU_SCHED",
                        "AICPU_CacheDisable");
     },
     "AI_CPU, AICPU_TS, AIV, HOST, HOST_TS, CCU_MS, CCU_SCHED or AICPU_CacheDisable"},
    {{"HCCL_ALGO", "", "accepted, without effect"}, is_anything, ""},
    {{"HCCL_INTRA_PCIE_ENABLE", "1", "A2: with HCCL_INTRA_ROCE_ENABLE=0, selects layered communication"},
     is_flag,
     "0 or 1"},
    {{"HCCL_INTRA_ROCE_ENABLE", "0", "see HCCL_INTRA_PCIE_ENABLE"}, is_flag, "0 or 1"},
    {{"HCCL_LOGIC_SUPERPOD_ID", "", "accepted, without effect"},
     [](std::string_view text) { return text.size() < 128; },
     "at most 127 characters"},
    {{"HCCL_ENTRY_LOG_ENABLE", "0", "1 logs every collective call"}, is_flag, "0 or 1"},
};

// An empty variable is one that is not set.
std::string_view value_of(std::string_view name) {
  const char* set = std::getenv(std::string(name).c_str());
  if (set != nullptr && *set != '\0') return set;
  for (const Variable& variable : kVariables)
    if (variable.setting.name == name) return variable.setting.default_value;
  return {};
}

std::atomic<bool> entry_log{false};

std::chrono::milliseconds to_ms(double of_seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(of_seconds * 1000)));
}

Result<comm::Network> read_network(std::string_view function) {
  constexpr int kBootstrapPorts = 32, kLastPort = 65535;
  comm::Network network;
  network.address = value_of("HCCL_IF_IP");
  network.interfaces = value_of("HCCL_SOCKET_IFNAME");
  network.ipv6 = value_of("HCCL_SOCKET_FAMILY") == "AF_INET6";
  const std::string_view range = value_of("HCCL_HOST_SOCKET_PORT_RANGE");
  const int base = static_cast<int>(*integer(value_of("HCCL_IF_BASE_PORT"), 1024, 65520));
  network.ports =
      range.empty() ? Ports{{base, std::min(base + kBootstrapPorts - 1, kLastPort)}} : *parse_ports(range);
  if (const std::string_view data = value_of("HCCL_NPU_SOCKET_PORT_RANGE"); !data.empty())
    network.data_ports = *parse_ports(data);
  if (value_of("HCCL_WHITELIST_DISABLE") == "0")
    network.whitelist = MOEYARD_TRY(read_whitelist(function, std::string(value_of("HCCL_WHITELIST_FILE"))));
  return network;
}

}  // namespace

std::span<const Setting> all_variables() {
  static const auto settings = [] {
    std::vector<Setting> list;
    for (const Variable& variable : kVariables) list.push_back(variable.setting);
    return list;
  }();
  return settings;
}

Result<Environment> read_environment(std::string_view function) {
  for (const Variable& variable : kVariables) {
    const std::string_view value = value_of(variable.setting.name);
    if (!value.empty() && !variable.accepts(value))
      return fail(HCCL_E_PARA, TextCode::hccl_environment,
                  "{}: the environment variable {} is \"{}\", it must be {}", function, variable.setting.name,
                  value, variable.rule);
  }
  entry_log = value_of("HCCL_ENTRY_LOG_ENABLE") == "1";
  const std::string_view deterministic = value_of("HCCL_DETERMINISTIC");
  comm::Network network = MOEYARD_TRY(read_network(function));
  return Environment{*integer(value_of("HCCL_BUFFSIZE"), 1, INT32_MAX),
                     std::chrono::seconds(*integer(value_of("HCCL_CONNECT_TIMEOUT"), 1, 7200)),
                     to_ms(*seconds(value_of("HCCL_EXEC_TIMEOUT"))),
                     is_one_of(deterministic, "false", "FALSE") ? 0
                     : is_one_of(deterministic, "true", "TRUE") ? 1
                                                                : 2,
                     std::move(network)};
}

bool logs_entries() { return entry_log.load(std::memory_order_relaxed); }

}  // namespace moeyard::hccl
