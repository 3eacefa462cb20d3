// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "planning/traffic.h"

namespace moeyard::planning {

// What a cluster can do; 0: not known, and left out of the estimate. Rates are of one rank in one direction, in 10^9 bytes.
struct Cluster {
  double intra_gb_per_s = 0;   // to and from ranks of its own host
  double inter_gb_per_s = 0;   // to and from other hosts
  double host_gb_per_s = 0;    // of all ranks of a host together, to and from other hosts
  double memory_gb_per_s = 0;  // reading and writing its memory
  double tflops = 0;           // of the products of experts
  double latency_us = 0;       // of a dispatch or combine without rows
};

// {"intra_gb_per_s": ..., ...}, with the names above.
Result<Cluster> read_cluster(const std::string& path);
// What the machine of a run did, from the file of moeyard run --json.
Result<Cluster> cluster_of_run(const std::string& path);

// Bytes of one row of the hidden state on its way.
struct RowBytes {
  std::int64_t dispatch = 0, combine = 0;
};

// Sizes of what the busiest has to do; docs/plan.md has the model.
struct Load {
  std::int64_t intra_out = 0, intra_in = 0, inter_out = 0, inter_in = 0,
               local = 0;                  // of the busiest rank, each
  std::int64_t host_out = 0, host_in = 0;  // of the busiest host, without `once`
  std::int64_t once_out = 0,
               once_in = 0;  // of the busiest rank and host if each token crosses to a host once
  std::int64_t once_host_out = 0, once_host_in = 0;
  std::int64_t all_intra = 0, all_inter = 0, all_once = 0;
};
// Dispatch; in combine rows go the other way.
Load load_of(const Traffic& traffic, const Deployment& deployment, std::int64_t row_bytes);

struct Estimate {
  double dispatch_us = 0, experts_us = 0, combine_us = 0;
  std::string dispatch_limit, experts_limit,
      combine_limit;  // what takes longest: "intra", "inter", "host", "memory", "tflops"
};
// `once`: as commAlg "hierarchy", a token crosses to each host once.
Estimate estimate(const Traffic& traffic, const LayerShape& shape, const Deployment& deployment,
                  const Cluster& cluster, const RowBytes& bytes, bool once);

}  // namespace moeyard::planning
