// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace moeyard::tool {

// Where rank 0 hands out what all ranks have to know to find each other, to those who know the secret (an empty one:
// to whoever comes). Both sides prove it, over numbers that the other one made up, and what is handed out is
// unreadable without it.
struct MeetingPlace {
  std::string host;
  int port;
  std::string secret;
  int ranks;
};

// Rank 0's end: hands out from a thread of its own, as often as it is asked for, until it is destroyed.
class Handout {
 public:
  // Ending::failed: the port is taken.
  static Result<std::unique_ptr<Handout>> begin(const MeetingPlace& place, std::span<const char> bytes);
  virtual ~Handout() = default;
};

// The others' end: waits until it gets them. Ending::failed: not within the timeout, or the other side refuses.
Status receive_handout(const MeetingPlace& place, int rank, std::chrono::milliseconds timeout,
                       std::span<char> bytes);

}  // namespace moeyard::tool
