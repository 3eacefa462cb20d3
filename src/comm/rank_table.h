// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace moeyard::comm {

// A rank table file: which ranks there are, and where.
struct RankTable {
  struct Rank {
    std::string server_id;
    std::string host_ip;  // empty: not given
    int device_id;        // on its server
    int host_port = 0;    // 0: not given
    std::string device_ip;
  };
  std::vector<Rank> ranks;  // by rank
  std::string text;         // canonical: equal for files that say the same
};

// Errors: HCCL_E_OPEN_FILE_FAILURE, HCCL_E_UNAVAIL (status "initializing"), HCCL_E_PARA with what is wrong
// where.
Result<RankTable> read_rank_table(std::string_view function, const std::string& path);
Result<RankTable> parse_rank_table(std::string_view function, const std::string& path,
                                   const std::string& text);

}  // namespace moeyard::comm
