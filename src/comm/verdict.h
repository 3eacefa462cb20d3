// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>

#include "comm/transport.h"

namespace moeyard::comm {

// What a meeting ends with once every rank has come, from what they posted; the same on every rank:
//   different operators or rounds        507048
//   errors that ranks found              the lowest rank's, with the rank in front
//   facts that differ from rank 0's      507015
// out_of_step is set in the first case, as the ranks are then out of step for good.
struct Verdict {
  Status status;
  bool out_of_step = false;
};
// Messages say number_of(rank).
Verdict judge(const std::string& group, int size, const std::function<const Visit&(int rank)>& visit_of,
              const std::function<int(int rank)>& number_of);

// "HcclAllReduce" or, after its first round, "HcclAllReduce (round 2)".
std::string describe_call(OperatorName name, int round);
// "rank 0 is in HcclAllReduce and rank 1 in HcclBroadcast"
std::string describe_mismatch(int rank, OperatorName name, int round, int other, OperatorName other_name,
                              int other_round);

// EI0003 for HCCL's functions, EZ1001 for operators.
bool is_hccl_function(std::string_view name);

}  // namespace moeyard::comm
