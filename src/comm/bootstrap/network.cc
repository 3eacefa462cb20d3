// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap/network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/errors.h"
#include "hccl/hccl_types.h"

namespace moeyard::comm {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

std::optional<Address> parse(const std::string& text, int port) {
  Address address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  if (inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<std::uint16_t>(port));
    address.bytes = sizeof(sockaddr_in);
    return address;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  // An address of one link only names the link: fe80::1%eth0.
  const std::string bare = text.substr(0, text.find('%'));
  if (inet_pton(AF_INET6, bare.c_str(), &v6->sin6_addr) != 1) return std::nullopt;
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(static_cast<std::uint16_t>(port));
  if (bare.size() < text.size()) v6->sin6_scope_id = if_nametoindex(text.c_str() + bare.size() + 1);
  address.bytes = sizeof(sockaddr_in6);
  return address;
}

std::string text_of(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address->sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text.data(), text.size());
    return text.data();
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
  inet_ntop(AF_INET6, &v6->sin6_addr, text.data(), text.size());
  std::string result = text.data();
  if (result.starts_with("::ffff:") && result.find('.') != std::string::npos) return result.substr(7);
  std::array<char, IF_NAMESIZE> name{};
  if (v6->sin6_scope_id != 0 && if_indextoname(v6->sin6_scope_id, name.data()) != nullptr)
    result.append("%").append(name.data());
  return result;
}

std::vector<Interface> interfaces(int family) {
  std::vector<Interface> found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next)
    if (entry->ifa_addr != nullptr && entry->ifa_addr->sa_family == family &&
        (entry->ifa_flags & IFF_UP) != 0)
      found.push_back({entry->ifa_name, text_of(entry->ifa_addr)});
  freeifaddrs(list);
  return found;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

}  // namespace

std::optional<Interface> choose_interface(std::vector<Interface> all, std::string_view rule) {
  const auto rank = [](const Interface& one) {
    return one.name == "lo" ? 2 : one.name.starts_with("docker") ? 1 : 0;
  };
  std::ranges::stable_sort(all, [&](const Interface& a, const Interface& b) {
    return std::pair(rank(a), std::string_view(a.name)) < std::pair(rank(b), std::string_view(b.name));
  });
  if (rule.empty()) return all.empty() ? std::nullopt : std::optional(all.front());
  const bool excludes = rule.starts_with('^');
  if (excludes) rule.remove_prefix(1);
  const bool exact = rule.starts_with('=');
  if (exact) rule.remove_prefix(1);
  const auto matches = [&](const Interface& one, std::string_view name) {
    return exact ? one.name == name : one.name.starts_with(name);
  };
  const std::vector<std::string_view> names = split(rule);
  if (excludes) {
    for (const Interface& one : all)
      if (std::ranges::none_of(names, [&](std::string_view name) { return matches(one, name); })) return one;
    return std::nullopt;
  }
  for (const std::string_view name : names)  // the first that is named wins
    for (const Interface& one : all)
      if (matches(one, name)) return one;
  return std::nullopt;
}

Result<std::string> own_address(std::string_view function, const Network& network) {
  if (!network.address.empty()) return network.address;
  if (auto chosen = choose_interface(interfaces(network.ipv6 ? AF_INET6 : AF_INET), network.interfaces))
    return std::move(chosen->address);
  return fail(
      HCCL_E_NETWORK, TextCode::hccl_environment,
      "{}: no network interface with an {} address is up{}; set HCCL_SOCKET_IFNAME, HCCL_SOCKET_FAMILY or "
      "HCCL_IF_IP",
      function, network.ipv6 ? "IPv6" : "IPv4",
      network.interfaces.empty() ? "" : fmt::format(" and fits HCCL_SOCKET_IFNAME={}", network.interfaces));
}

const std::string& this_host() {
  static const std::string host = [] {
    std::string boot;
    std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
    // Local sockets reach as far as the network namespace.
    std::array<char, 64> space{};
    const ssize_t size = readlink("/proc/self/ns/net", space.data(), space.size() - 1);
    return boot + " " + std::string(space.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  }();
  return host;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

Result<Listener> listen_at(std::string_view function, const std::string& address,
                           const std::vector<std::pair<int, int>>& ports) {
  const auto try_port = [&](int port) -> int {
    const auto at = parse(address, port);
    if (!at) return -EINVAL;
    Descriptor socket(::socket(at->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (socket.get() < 0) return -errno;
    const int yes = 1;  // a port of a process that has just ended may be used
    setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(socket.get(), at->get(), at->bytes) != 0 || listen(socket.get(), SOMAXCONN) != 0) return -errno;
    return socket.release();
  };
  const std::vector<std::pair<int, int>> any{{0, 0}};
  int error = EADDRINUSE;
  for (const auto& [first, last] : ports.empty() ? any : ports)
    for (int port = first; port <= last; ++port) {
      const int socket = try_port(port);
      if (socket >= 0) {
        Address bound;
        bound.bytes = sizeof bound.storage;
        getsockname(socket, reinterpret_cast<sockaddr*>(&bound.storage), &bound.bytes);
        const auto* v4 = reinterpret_cast<const sockaddr_in*>(&bound.storage);  // the port lies alike in both
        return Listener{Descriptor(socket), ntohs(v4->sin_port)};
      }
      error = -socket;
      if (error != EADDRINUSE && error != EACCES) break;  // another port would not help
    }
  return fail(HCCL_E_NETWORK, TextCode::hccl_connection,
              "{}: no port to wait for ranks of other processes at {} ({}); set HCCL_IF_IP or "
              "HCCL_SOCKET_IFNAME to an "
              "address of this host, and HCCL_IF_BASE_PORT or HCCL_HOST_SOCKET_PORT_RANGE to free ports",
              function, address, std::strerror(error));
}

Connected connect_to(const std::string& address, int port, const std::function<bool()>& go_on) {
  const auto at = parse(address, port);
  if (!at) return {Descriptor(), EINVAL};
  Descriptor socket(::socket(at->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.get() < 0) return {Descriptor(), errno};
  const int yes = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (connect(socket.get(), at->get(), at->bytes) == 0) return {std::move(socket)};
  if (errno != EINPROGRESS) return {Descriptor(), errno};
  for (;;) {
    pollfd waiting{socket.get(), POLLOUT, 0};
    constexpr int kSliceMs = 20;
    if (poll(&waiting, 1, kSliceMs) > 0) {
      int error = 0;
      socklen_t bytes = sizeof error;
      getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
      if (error != 0) return {Descriptor(), error};
      return {std::move(socket)};
    }
    if (!go_on()) return {Descriptor(), ETIMEDOUT};
  }
}

std::string peer_address(int socket) {
  Address peer;
  peer.bytes = sizeof peer.storage;
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&peer.storage), &peer.bytes) != 0) return {};
  return text_of(peer.get());
}

}  // namespace moeyard::comm
