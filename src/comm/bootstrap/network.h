// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace moeyard::comm {

// Where ranks of other processes are to be found, as the HCCL_* variables say.
struct Network {
  std::string address;                          // HCCL_IF_IP; empty: of an interface
  std::string interfaces;                       // HCCL_SOCKET_IFNAME
  bool ipv6 = false;                            // HCCL_SOCKET_FAMILY
  std::vector<std::pair<int, int>> ports;       // from, to; empty: any that is free
  std::vector<std::pair<int, int>> data_ports;  // HCCL_NPU_SOCKET_PORT_RANGE: of connections between hosts
  std::optional<std::vector<std::string>> whitelist;  // addresses that may join; none: all
};

// An address of this host that others can reach. HCCL_E_NETWORK: no interface fits HCCL_SOCKET_IFNAME.
Result<std::string> own_address(std::string_view function, const Network& network);
struct Interface {
  std::string name, address;
};
// The one that HCCL_SOCKET_IFNAME's value chooses: the first that matches, else one that is neither docker* nor lo,
// then docker*, then lo.
std::optional<Interface> choose_interface(std::vector<Interface> all, std::string_view rule);

// The same text on all processes that can share memory and find each other by local sockets.
const std::string& this_host();

// A file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// A socket that listens at the address on the first free port; and that port.
struct Listener {
  Descriptor socket;
  int port = 0;
};
// HCCL_E_NETWORK: no port is free, or it is no address of this host.
Result<Listener> listen_at(std::string_view function, const std::string& address,
                           const std::vector<std::pair<int, int>>& ports);

// Connects, for as long as go_on() says. The error: errno.
struct Connected {
  Descriptor socket;
  int error = 0;
};
Connected connect_to(const std::string& address, int port, const std::function<bool()>& go_on);
// The address at the other end of a connection, without a mask for IPv4 in IPv6.
std::string peer_address(int socket);

}  // namespace moeyard::comm
