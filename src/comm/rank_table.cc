// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/rank_table.h"

#include <arpa/inet.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/errors.h"
#include "hccl/hccl_types.h"

namespace moeyard::comm {
namespace {

using Json = nlohmann::json;
constexpr std::size_t kMostPathBytes = 4095;
constexpr std::size_t kMostServerIdBytes = 64;
constexpr std::int64_t kMostRanks = 1 << 20;

class Reader {
 public:
  Reader(std::string_view function, const std::string& path) : function_(function), path_(path) {}

  Result<RankTable> read(const Json& root) {
    if (!root.is_object()) return wrong("it is no JSON object");
    const std::string status = MOEYARD_TRY(text(root, "the table", "status", true));
    if (status == "initializing")
      return fail(HCCL_E_UNAVAIL, TextCode::hccl_parameter,
                  "{}: rank table {}: status is initializing; call again when it is completed", function_,
                  path_);
    if (status != "completed") return wrong(fmt::format("status is {}, it must be completed", status));
    const std::string version = MOEYARD_TRY(text(root, "the table", "version", true));
    if (version != "1.0" && version != "1.2")
      return wrong(fmt::format("version is {}, it must be 1.0 or 1.2", version));
    MOEYARD_TRY(read_servers(root, version));
    if (version == "1.2") MOEYARD_TRY(check_super_pods(root));
    RankTable table;
    table.ranks.reserve(ranks_.size());
    for (auto& [rank, where] : ranks_) {
      if (rank != static_cast<int>(table.ranks.size()))
        return wrong(fmt::format("rank_id {} is missing; the {} ranks are numbered from 0",
                                 table.ranks.size(), ranks_.size()));
      table.ranks.push_back(std::move(where));
    }
    MOEYARD_TRY(check_consecutive(table));
    table.text = root.dump();
    return table;
  }

 private:
  Status wrong(const std::string& what) const {
    return fail(HCCL_E_PARA, TextCode::hccl_parameter, "{}: rank table {}: {}", function_, path_, what);
  }

  // Values are strings, numbers are accepted too. Not there: an error if it is required, else empty.
  Result<std::string> text(const Json& object, const std::string& where, const char* key,
                           bool required) const {
    const auto value = object.find(key);
    if (value == object.end()) {
      if (required) return wrong(fmt::format("{} has no {}", where, key));
      return std::string();
    }
    if (value->is_string()) return value->get<std::string>();
    if (value->is_number_integer()) return std::to_string(value->get<std::int64_t>());
    return wrong(fmt::format("{} of {} is neither a string nor an integer", key, where));
  }

  Result<std::optional<int>> integer(const Json& object, const std::string& where, const char* key,
                                     bool required, std::int64_t low, std::int64_t high) const {
    const std::string digits = MOEYARD_TRY(text(object, where, key, required));
    if (digits.empty() && !required) return std::optional<int>();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size() || value < low || value > high)
      return wrong(fmt::format("{} of {} is \"{}\", it must be an integer in [{}, {}]", key, where, digits,
                               low, high));
    return std::optional<int>(static_cast<int>(value));
  }

  Result<std::string> address(const Json& object, const std::string& where, const char* key) const {
    std::string ip = MOEYARD_TRY(text(object, where, key, false));
    unsigned char bytes[sizeof(in6_addr)];
    if (!ip.empty() && inet_pton(AF_INET, ip.c_str(), bytes) != 1 &&
        inet_pton(AF_INET6, ip.c_str(), bytes) != 1)
      return wrong(fmt::format("{} of {} is \"{}\", it must be an IPv4 or IPv6 address", key, where, ip));
    return ip;
  }

  Result<const Json*> list(const Json& object, const std::string& where, const char* key) const {
    const auto value = object.find(key);
    if (value == object.end() || !value->is_array() || value->empty())
      return wrong(fmt::format("{} has no {} with entries", where, key));
    return &*value;
  }

  Status read_servers(const Json& root, const std::string& version) {
    const Json& servers = *MOEYARD_TRY(list(root, "the table", "server_list"));
    const auto count =
        MOEYARD_TRY(integer(root, "the table", "server_count", version == "1.0", 1, kMostRanks));
    if (count && *count != static_cast<int>(servers.size()))
      return wrong(fmt::format("server_count is {} but server_list has {} entries", *count, servers.size()));
    for (const Json& server : servers) MOEYARD_TRY(read_server(server, servers.size() > 1, version));
    return {};
  }

  Status read_server(const Json& server, bool among_several, const std::string& version) {
    if (!server.is_object()) return wrong("server_list has an entry that is no object");
    const std::string id = MOEYARD_TRY(text(server, "an entry of server_list", "server_id", true));
    const std::string where = fmt::format("server {}", id);
    if (id.empty() || id.size() > kMostServerIdBytes)
      return wrong(
          fmt::format("a server_id has {} characters, it must have 1 to {}", id.size(), kMostServerIdBytes));
    if (!servers_.insert(id).second) return wrong(fmt::format("server_id {} is there twice", id));
    const std::string host_ip = MOEYARD_TRY(address(server, where, "host_ip"));
    std::set<int> device_ids;
    for (const Json& device : *MOEYARD_TRY(list(server, where, "device"))) {
      if (!device.is_object()) return wrong(fmt::format("a device of {} is no object", where));
      const int rank =
          *MOEYARD_TRY(integer(device, "a device of " + where, "rank_id", true, 0, kMostRanks - 1));
      const std::string of_rank = fmt::format("rank_id {} ({})", rank, where);
      const int device_id = *MOEYARD_TRY(integer(device, of_rank, "device_id", true, 0, 1 << 16));
      RankTable::Rank entry{id, host_ip, device_id, 0, {}};
      entry.device_ip = MOEYARD_TRY(address(device, of_rank, "device_ip"));
      if (entry.device_ip.empty() && among_several && version == "1.0")
        return wrong(fmt::format("{} has no device_ip, which tables of several servers need", of_rank));
      MOEYARD_TRY(address(device, of_rank, "backup_device_ip"));
      for (const char* port : {"device_port", "backup_device_port"})
        MOEYARD_TRY(integer(device, of_rank, port, false, 1, 65535));
      entry.host_port = MOEYARD_TRY(integer(device, of_rank, "host_port", false, 1, 65535)).value_or(0);
      if (!device_ids.insert(entry.device_id).second)
        return wrong(fmt::format("device_id {} is there twice in {}", entry.device_id, where));
      if (!ranks_.emplace(rank, std::move(entry)).second)
        return wrong(fmt::format("rank_id {} is there twice", rank));
    }
    return {};
  }

  Status check_super_pods(const Json& root) const {
    if (!root.contains("super_pod_list")) return wrong("version 1.2 needs a super_pod_list");
    for (const Json& pod : *MOEYARD_TRY(list(root, "the table", "super_pod_list"))) {
      if (!pod.is_object()) return wrong("super_pod_list has an entry that is no object");
      const std::string id = MOEYARD_TRY(text(pod, "an entry of super_pod_list", "super_pod_id", true));
      const std::string where = fmt::format("super pod {}", id);
      for (const Json& server : *MOEYARD_TRY(list(pod, where, "server_list"))) {
        const std::string server_id =
            server.is_object() ? MOEYARD_TRY(text(server, where, "server_id", true)) : "";
        if (!servers_.contains(server_id))
          return wrong(
              fmt::format("{} names the server \"{}\", which server_list does not have", where, server_id));
      }
    }
    return {};
  }

  Status check_consecutive(const RankTable& table) const {
    std::set<std::string> seen;
    for (std::size_t rank = 0; rank < table.ranks.size(); ++rank) {
      const std::string& server = table.ranks[rank].server_id;
      const bool goes_on = rank > 0 && table.ranks[rank - 1].server_id == server;
      if (!goes_on && !seen.insert(server).second)
        return wrong(fmt::format("the ranks of server {} are not consecutive (rank {})", server, rank));
    }
    return {};
  }

  const std::string_view function_;
  const std::string& path_;
  std::set<std::string> servers_;
  std::map<int, RankTable::Rank> ranks_;
};

}  // namespace

Result<RankTable> parse_rank_table(std::string_view function, const std::string& path,
                                   const std::string& text) {
  const Json root = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded())
    return fail(HCCL_E_PARA, TextCode::hccl_parameter, "{}: rank table {}: it is not valid JSON", function,
                path);
  return Reader(function, path).read(root);
}

Result<RankTable> read_rank_table(std::string_view function, const std::string& path) {
  if (path.size() > kMostPathBytes)
    return fail(HCCL_E_PARA, TextCode::hccl_parameter,
                "{}: clusterInfo has {} characters, at most {} are allowed", function, path.size(),
                kMostPathBytes);
  std::error_code none;
  std::ifstream file(path);
  if (!file || !std::filesystem::is_regular_file(path, none))
    return fail(HCCL_E_OPEN_FILE_FAILURE, TextCode::hccl_parameter, "{}: rank table {} cannot be read",
                function, path);
  return parse_rank_table(function, path, std::string(std::istreambuf_iterator<char>(file), {}));
}

}  // namespace moeyard::comm
