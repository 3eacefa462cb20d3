// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/bootstrap/channel.h"
#include "comm/bootstrap/gathering.h"

namespace moeyard::comm {

// Where ranks of other processes come to the gatherings of this one: one thread, which begins with the first
// gathering that is offered and stays.
class Server {
 public:
  static Server& instance();

  struct Offer {
    std::weak_ptr<Gathering> gathering;
    std::string secret;
    std::optional<std::vector<std::string>> addresses;  // that may come; none: all
  };
  // Listens at the address, if it doesn't do so already, and lets ranks in. Returns the port.
  Result<int> offer(std::string_view function, const GatheringId& id, Offer offer, const std::string& address,
                    const std::vector<std::pair<int, int>>& ports);

 private:
  struct Outbox;
  struct Connection;
  Server();
  void run();
  void accept_from(int listener);
  bool serve(Connection& connection, short events);  // false: it has ended
  bool take(Connection& connection, const Unpacked& frame);
  bool greet(Connection& connection, const Unpacked& frame);
  std::optional<Offer> find(const GatheringId& id);

  const int wake_;  // an eventfd
  std::mutex mutex_;
  struct Place {
    std::string address;
    std::vector<std::pair<int, int>> ports;
    Listener listener;
  };
  std::vector<Place> places_;
  std::map<GatheringId, Offer> offers_;
  bool running_ = false;
  std::vector<std::unique_ptr<Connection>> connections_;  // of the thread
};

}  // namespace moeyard::comm
