// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "comm/bootstrap/door.h"
#include "comm/create.h"
#include "comm/host/peer_process.h"

namespace moeyard::comm {

// One rank that wants to join.
struct Candidate {
  int rank;
  int size;  // of the communicator, as this rank says
  std::int32_t device;
  Spec spec;
  ProcessId process = this_process();
  std::string host;  // this_host()
  Door door = {};    // of the process
};

// Who is in a communicator whose ranks are in several processes: what every rank is told when all have come.
struct Membership {
  Spec spec;    // the name is given
  Token token;  // nobody else knows it
  struct Process {
    ProcessId id;
    Door door;
    int host;  // hosts and processes are numbered in the order of their lowest ranks
  };
  std::vector<Process> processes;
  int hosts = 0;
  struct Rank {
    std::int32_t process;
    std::int32_t device;
  };
  std::vector<Rank> ranks;

  int size() const { return static_cast<int>(ranks.size()); }
  // The processes of a host, in order; the first makes what they share.
  std::vector<int> processes_of(int host) const;
};

// What ranks send each other while they connect: a kind and a body.
enum class Frame : std::uint8_t { challenge, hello, unknown, failure, table, ready, go };

std::string encode(const Candidate& candidate, std::string_view function, std::chrono::milliseconds timeout);
struct Greeting {
  std::string function;  // that the rank called
  Candidate candidate;
  std::chrono::milliseconds timeout;
};
std::optional<Greeting> decode_greeting(std::string_view bytes);

std::string encode(const Membership& membership);
std::optional<Membership> decode_membership(std::string_view bytes);

std::string encode(const Status& status);
std::optional<Status> decode_status(std::string_view bytes);

}  // namespace moeyard::comm
