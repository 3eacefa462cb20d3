// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "moeyard/hosts.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <numeric>
#include <optional>

#include "model/errors.h"
#include "moeyard/launcher.h"

namespace moeyard::tool {
namespace {

using model::bad_input;

// "name", "name:slots", "[address]:slots", or an IPv6 address.
Result<Host> read_host(const std::string& text) {
  Host host{.name = text};
  std::size_t colon = text.rfind(':');
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string::npos) return bad_input("--hosts: {} has no ].", text);
    host.name = text.substr(1, end - 1);
    colon = end + 1 < text.size() ? end + 1 : std::string::npos;
  } else if (std::ranges::count(text, ':') > 1) {
    colon = std::string::npos;
  } else {
    host.name = text.substr(0, colon);
  }
  // A name that begins with a dash would be an option of ssh.
  if (host.name.empty() || host.name.front() == '-')
    return bad_input(
        "--hosts: '{}' is no name of a host; give them as a,b:4 with the number of ranks behind a colon.",
        text);
  if (colon == std::string::npos) return host;
  const std::string slots = text.substr(std::min(colon + 1, text.size()));
  const auto [end, error] = std::from_chars(slots.data(), slots.data() + slots.size(), host.slots);
  if (text[colon] != ':' || error != std::errc{} || end != slots.data() + slots.size() || host.slots < 1 ||
      host.slots > kMostSlots)
    return bad_input("--hosts: the number of ranks of {} must be an integer in [1, {}].", text, kMostSlots);
  return host;
}

std::string name_without_user(const std::string& name) { return name.substr(name.find('@') + 1); }

bool is_this_host(const std::string& name) {
  if (name == "localhost" || name == "::1" || name.starts_with("127.")) return true;
  char own[HOST_NAME_MAX + 1] = {};
  return gethostname(own, HOST_NAME_MAX) == 0 && name == own;
}

bool is_loopback(const std::string& address) { return address == "::1" || address.starts_with("127."); }

Result<std::string> address_of(const std::string& name) {
  std::string problem;
  for (const int family : {AF_INET, AF_INET6}) {
    addrinfo wanted{}, *found = nullptr;
    wanted.ai_family = family;
    wanted.ai_socktype = SOCK_STREAM;
    if (const int code = getaddrinfo(name.c_str(), nullptr, &wanted, &found); code != 0) {
      problem = code == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(code);
      continue;
    }
    std::array<char, NI_MAXHOST> text{};
    const int code =
        getnameinfo(found->ai_addr, found->ai_addrlen, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
    freeaddrinfo(found);
    if (code == 0) return std::string(text.data());
  }
  return bad_input("host {} has no address that is known here ({}); --addresses gives those of all hosts.",
                   name, problem);
}

Status find_addresses(std::vector<Host>& hosts, const std::string& addresses) {
  if (!addresses.empty()) {
    const auto given = split_list(addresses);
    if (given.size() != hosts.size())
      return bad_input("--addresses has {} addresses for the {} hosts; give one for each.", given.size(),
                       hosts.size());
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      std::array<unsigned char, sizeof(in6_addr)> bytes{};
      if (inet_pton(AF_INET, given[i].c_str(), bytes.data()) != 1 &&
          inet_pton(AF_INET6, given[i].c_str(), bytes.data()) != 1)
        return bad_input("--addresses: '{}' is neither an IPv4 nor an IPv6 address.", given[i]);
      hosts[i].address = given[i];
    }
    return {};
  }
  for (Host& host : hosts) host.address = MOEYARD_TRY(address_of(name_without_user(host.name)));
  const auto loopback = [](const Host& host) { return is_loopback(host.address); };
  const auto own = std::ranges::find_if(hosts, loopback);
  if (own != hosts.end() && !std::ranges::all_of(hosts, loopback))
    return bad_input(
        "host {} is {} here, where the other hosts cannot reach it; --addresses gives the addresses of all.",
        own->name, own->address);
  return {};
}

// Gives hosts without a number of slots their part of the ranks that the others leave.
Status spread(std::vector<Host>& hosts, int ranks) {
  const auto open = static_cast<int>(std::ranges::count(hosts, 0, &Host::slots));
  const int said = std::transform_reduce(hosts.begin(), hosts.end(), 0, std::plus(),
                                         [](const Host& h) { return h.slots; });
  int left = ranks == 0 ? open : ranks - said, without = open;
  for (Host& host : hosts) {
    if (host.slots != 0 || without == 0) continue;
    host.slots = std::max((left + without - 1) / without, 0);
    left -= host.slots;
    --without;
  }
  if (left > 0) return bad_input("-n {} is more than the {} ranks that --hosts has places for.", ranks, said);
  int rest = ranks == 0 ? INT_MAX : ranks;
  for (Host& host : hosts) {  // fewer ranks than places: the last hosts have less
    host.slots = std::min(host.slots, rest);
    rest -= host.slots;
  }
  return {};
}

}  // namespace

std::vector<std::string> split_list(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Result<std::vector<Host>> read_hosts(const std::string& list, int ranks, const std::string& addresses) {
  std::vector<Host> hosts;
  for (const std::string& text : split_list(list)) {
    Host host = MOEYARD_TRY(read_host(text));
    if (std::ranges::find(hosts, host.name, &Host::name) != hosts.end())
      return bad_input("--hosts: {} is there twice; give it the number of its ranks, as in {}:4.", host.name,
                       host.name);
    host.is_here = is_this_host(host.name);
    hosts.push_back(std::move(host));
  }
  MOEYARD_TRY(find_addresses(hosts, addresses));
  MOEYARD_TRY(spread(hosts, ranks));
  std::erase_if(hosts, [](const Host& host) { return host.slots == 0; });
  return hosts;
}

std::string rank_table_of(const std::vector<Host>& hosts) {
  const std::string id = random_text();
  std::string servers;
  int rank = 0;
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    std::string devices;
    for (int device = 0; device < hosts[h].slots; ++device)
      devices += fmt::format(R"({}{{"device_id":"{}","rank_id":"{}","device_ip":"{}"}})",
                             device == 0 ? "" : ",", device, rank++, hosts[h].address);
    servers += fmt::format(R"({}{{"server_id":"launch_{}_{}","host_ip":"{}","device":[{}]}})",
                           h == 0 ? "" : ",", h, id, hosts[h].address, devices);
  }
  return fmt::format(R"({{"version":"1.0","status":"completed","server_count":"{}","server_list":[{}]}})",
                     hosts.size(), servers);
}

}  // namespace moeyard::tool
