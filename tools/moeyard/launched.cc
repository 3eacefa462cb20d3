// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "moeyard/launched.h"

#include <algorithm>
#include <charconv>

#include "model/errors.h"

namespace moeyard::tool {
namespace {

using model::bad_input;
constexpr int kMostRanks = 1 << 20, kLastPort = 65535;
constexpr int kSlurmPorts = 20000;  // below those that systems give to outgoing connections

std::optional<int> number(const std::string& text, int low, int high) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high)
    return std::nullopt;
  return value;
}

class Reader {
 public:
  Reader(const Variables& variables, const std::string& meet_at) : variables_(variables), meet_at_(meet_at) {}

  Result<std::optional<Launched>> read() {
    if (set("RANK_ID") && set("RANK_TABLE_FILE")) return of_table();
    if (set("RANK") || set("WORLD_SIZE")) return of_torchrun();
    if (set("RANK_ID"))
      return bad_input(
          "RANK_ID is set, but neither RANK_TABLE_FILE nor RANK and WORLD_SIZE are: set them, or unset it.");
    if (set("SLURM_PROCID") && set("SLURM_NTASKS")) return of_slurm();
    return std::optional<Launched>();
  }

 private:
  bool set(const char* name) const { return !value(name).empty(); }
  std::string value(const char* name) const { return variables_(name).value_or(""); }

  Result<int> integer(const char* name, int low, int high) const {
    const std::string text = value(name);
    if (text.empty()) return bad_input("{} is missing; whoever starts the ranks sets it.", name);
    if (const auto read = number(text, low, high)) return *read;
    return bad_input("{} is {}, it must be an integer in [{}, {}].", name, model::in_quotes(text), low, high);
  }

  // Rank and size, and the number among the ranks of its host for the device.
  Status read_place(const char* rank, const char* size, std::initializer_list<const char*> local) {
    made_.place.ranks = MOEYARD_TRY(integer(size, 1, kMostRanks));
    made_.place.rank = MOEYARD_TRY(integer(rank, 0, kMostRanks));
    if (made_.place.rank >= made_.place.ranks)
      return bad_input("{} is {}, it must be below {} ({}).", rank, made_.place.rank, made_.place.ranks,
                       size);
    made_.place.device = made_.place.rank;
    for (const char* name : local) {
      if (!set(name)) continue;
      made_.place.device = MOEYARD_TRY(integer(name, 0, made_.place.ranks - 1));
      break;
    }
    made_.variables = fmt::format("{} and {}", rank, size);
    return {};
  }

  Result<std::optional<Launched>> of_table() {
    MOEYARD_TRY(read_place("RANK_ID", "RANK_SIZE", {"LOCAL_RANK", "DEVICE_ID"}));
    for (const auto& [name, own] : {std::pair{"RANK", made_.place.rank}, {"WORLD_SIZE", made_.place.ranks}})
      if (set(name) && number(value(name), 0, kMostRanks) != own)
        return bad_input("{} is {}, but {} say {}: unset what is not meant.", name,
                         model::in_quotes(value(name)), made_.variables, own);
    made_.rank_table = value("RANK_TABLE_FILE");
    return std::optional(made_);
  }

  Result<std::optional<Launched>> of_torchrun() {
    MOEYARD_TRY(read_place("RANK", "WORLD_SIZE", {"LOCAL_RANK"}));
    MOEYARD_TRY(meet_at_.empty() ? read_master() : read_meet_at());
    return std::optional(made_);
  }

  Result<std::optional<Launched>> of_slurm() {
    MOEYARD_TRY(read_place("SLURM_PROCID",
                           set("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS",
                           {"SLURM_LOCALID"}));
    if (!meet_at_.empty()) {
      MOEYARD_TRY(read_meet_at());
    } else if (set("MASTER_ADDR")) {
      MOEYARD_TRY(read_master());
    } else {
      for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_NODELIST", "SLURM_JOB_NODELIST"})
        if (made_.host.empty()) made_.host = first_host(value(name));
      if (made_.host.empty()) made_.host = value("SLURM_LAUNCH_NODE_IPADDR");
      if (made_.host.empty())
        return bad_input(
            "SLURM_PROCID and SLURM_NTASKS are set, but nothing says where rank 0 is: SLURM_STEP_NODELIST, "
            "SLURM_NODELIST, SLURM_LAUNCH_NODE_IPADDR, MASTER_ADDR or --meet-at HOST:PORT does.");
      // Jobs of one host, and steps of one job, do not meet at the same port.
      const int job = set("SLURM_JOB_ID") ? MOEYARD_TRY(integer("SLURM_JOB_ID", 0, INT32_MAX)) : 0;
      const int step = number(value("SLURM_STEP_ID"), 0, INT32_MAX).value_or(0);
      made_.port = kSlurmPorts + (job % 10000 + step % 10000) % 10000;
    }
    return std::optional(made_);
  }

  // torchrun's own store listens at MASTER_PORT.
  Status read_master() {
    made_.host = value("MASTER_ADDR");
    if (made_.host.empty())
      return bad_input(
          "{} are set, but MASTER_ADDR is missing: set it to the host of rank 0, or give --meet-at "
          "HOST:PORT.",
          made_.variables);
    made_.port = MOEYARD_TRY(integer("MASTER_PORT", 1, kLastPort)) + 1;
    if (made_.port <= kLastPort) return {};
    return bad_input("MASTER_PORT is {}, and ranks meet at the port after it: give --meet-at HOST:PORT.",
                     made_.port - 1);
  }

  Status read_meet_at() {
    const std::size_t colon = meet_at_.rfind(':');
    const auto port =
        colon == std::string::npos ? std::nullopt : number(meet_at_.substr(colon + 1), 1, kLastPort);
    made_.host = meet_at_.substr(0, colon);
    if (made_.host.size() > 2 && made_.host.front() == '[' && made_.host.back() == ']')
      made_.host = made_.host.substr(1, made_.host.size() - 2);  // an IPv6 address
    if (!port || made_.host.empty())
      return bad_input("--meet-at {} must be HOST:PORT, with a port from 1 to {}.", meet_at_, kLastPort);
    made_.port = *port;
    return {};
  }

  const Variables& variables_;
  const std::string& meet_at_;
  Launched made_;
};

}  // namespace

Result<std::optional<Launched>> read_launched(const Variables& variables, const std::string& meet_at) {
  return Reader(variables, meet_at).read();
}

std::string first_host(const std::string& list) {
  const std::size_t end = list.find_first_of(",[");
  if (end == std::string::npos || list[end] == ',') return list.substr(0, end);
  const std::size_t number_end = list.find_first_of("-,]", end), close = list.find(']', end);
  if (number_end == std::string::npos || close == std::string::npos) return list.substr(0, end);
  return list.substr(0, end) + list.substr(end + 1, number_end - end - 1) +
         list.substr(close + 1, list.find_first_of(",[", close) - close - 1);
}

}  // namespace moeyard::tool
