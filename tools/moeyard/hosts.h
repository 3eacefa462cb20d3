// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "base/status.h"

namespace moeyard::tool {

// A host of a launch, in the order of ranks.
struct Host {
  std::string name;      // as ssh takes it: "node7", "me@node7"
  std::string address;   // where its ranks are found
  int slots = 0;         // ranks there; 0: not said
  bool is_here = false;  // needs no ssh
};

inline constexpr int kMostSlots = 1024;  // of a host, as many as it can have devices

// "a,b" in parts.
std::vector<std::string> split_list(const std::string& list);

// Reads "a,b:4,[::1]:2", spreads `ranks` over them (0: as many as there are slots, one for a host that has none), and finds
// their addresses, unless `addresses` gives them. Hosts without ranks are left out. Ending::bad_input.
Result<std::vector<Host>> read_hosts(const std::string& list, int ranks, const std::string& addresses);

// The rank table of ranks on these hosts, whose devices are numbered from 0 on each.
std::string rank_table_of(const std::vector<Host>& hosts);

}  // namespace moeyard::tool
