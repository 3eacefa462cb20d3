// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// A connection between a rank that joins and the process where its communicator gathers. Both prove with every
// frame that they know the key (of the root info, or MOEYARD_SECRET), each over a number that the other made up, so
// that nothing can be recorded and sent again.
//
//   server    challenge {its number, its process}
//   rank      hello     {gathering, its number, candidate}        proof
//   server    table, or failure {status}                          proof
//   rank      ready     {status}                                  proof
//   server    go, or failure {status}                             proof
//   server    unknown   {why}: it does not serve this rank        no proof, as there is no key that both know
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "comm/bootstrap/membership.h"
#include "comm/bootstrap/network.h"

namespace moeyard::comm {

using GatheringId = std::array<std::uint64_t, 2>;

struct Challenge {
  std::array<char, 8> magic{'M', 'O', 'E', 'Y', 'A', 'R', 'D', '1'};
  Token number{};
  ProcessId process{};
};

// A frame as it travels: its size, its kind, the body, and the proof, if there is a key.
struct Key {
  std::string secret;
  Token number;  // of the receiver
};
std::string pack(Frame frame, std::string_view body, const std::optional<Key>& key);
// Takes the first whole frame out of `bytes`. None: not all there yet; broken: it is none, or its proof is wrong.
struct Unpacked {
  Frame frame;
  std::string body;
  std::string proof;  // not checked
};
std::optional<Unpacked> unpack(std::string& bytes, bool& broken);
bool proves(const Unpacked& frame, const Key& key);

// The joining rank's end, used by one thread.
class Channel {
 public:
  explicit Channel(Descriptor socket) : socket_(std::move(socket)) {}
  // Waits for a frame, for as long as go_on() says; none: the connection has ended or go_on() was false.
  std::optional<Unpacked> receive(const std::function<bool()>& go_on);
  bool send(const std::string& frame);

 private:
  Descriptor socket_;
  std::string bytes_;
};

}  // namespace moeyard::comm
