// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace moeyard::tool {

// `moeyard launch` of several hosts has an agent on each: it reads its orders from standard input, as nobody else sees those,
// runs the ranks of its host, and tells of them on standard output. When its input ends, so do its ranks: whoever gave
// the orders is gone.
int run_agent();

// What the two send each other: a kind, the size of the body, the body.
enum class Message : char {
  // to the agent
  orders = 'O',  // JSON, first of all
  signal = 'S',  // int32: for all ranks
  input = 'I',   // for rank 0
  input_ends = 'D',
  // from the agent
  line = 'L',         // int32 rank, text
  error_line = 'E',   // the same, of standard error
  ended = 'X',        // int32 rank, int32 status as of waitpid
  input_taken = 'T',  // int32: bytes that rank 0 has got
  refused = 'R',      // int32 code, message: the ranks cannot be started
};
inline constexpr std::string_view kAgentGreeting =
    "moeyard launch: agent 1\n";                     // what shells say comes before it
inline constexpr std::size_t kInputAhead = 1 << 18;  // bytes of input that may be under way

std::string pack(Message kind, std::string_view body);

// Takes messages out of the bytes that have come.
class Inbox {
 public:
  struct Letter {
    Message kind;
    std::string body;
    // The number at the beginning of the body, which is taken off.
    std::int32_t take_number() {
      std::int32_t value = 0;
      if (body.size() >= sizeof value) std::memcpy(&value, body.data(), sizeof value);
      body.erase(0, sizeof value);
      return value;
    }
  };
  void add(std::string_view bytes) { bytes_.append(bytes); }
  std::optional<Letter> next();
  // Everything up to this text and itself is dropped; false: it has not come yet.
  bool skip_past(std::string_view text);

 private:
  std::string bytes_;
};
std::string number_bytes(std::int32_t value);

// What is to be written to a descriptor that does not block.
class Outgoing {
 public:
  explicit Outgoing(int to) : to_(to) {}
  void add(std::string_view bytes) { bytes_.append(bytes); }
  bool empty() const { return bytes_.empty(); }
  // Writes what fits; the number of bytes, or none if nobody reads any more.
  std::optional<std::size_t> flush();
  int to() const { return to_; }

 private:
  int to_;
  std::string bytes_;
};

}  // namespace moeyard::tool
