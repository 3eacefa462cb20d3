// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "base/status.h"
#include "model/world.h"

namespace moeyard::tool {

// What a launcher's variables say: this process is one rank of a run.
struct Launched {
  model::Place place{};
  std::string variables;   // that say so, for messages: "RANK and WORLD_SIZE"
  std::string rank_table;  // of `moeyard launch`; empty: ranks meet at
  std::string host;        // where rank 0 is
  int port = 0;
};

// Reads RANK_ID and RANK_TABLE_FILE, else torchrun's RANK and WORLD_SIZE, else Slurm's SLURM_PROCID and SLURM_NTASKS;
// none: there are none. `meet_at`, HOST:PORT, says where rank 0 is instead of the variables. Ending::bad_input: some are
// missing, or contradict others.
using Variables = std::function<std::optional<std::string>(const char* name)>;
Result<std::optional<Launched>> read_launched(const Variables& variables, const std::string& meet_at);

// The first host of Slurm's list: "node07" for "node[07-09,12],other".
std::string first_host(const std::string& list);

}  // namespace moeyard::tool
