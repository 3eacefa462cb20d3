// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>

#include "base/status.h"
#include "comm/host/board.h"

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
struct Posted {  // in one meeting
  const std::string& group;
  int size;
  std::function<const SharedVisit&(int rank)> visit_of;
  std::function<const std::string&(int index)> name_of;  // operators
  std::function<int(int rank)> number_of;                // what messages call a rank
};
Verdict judge(const Posted& posted);

// "HcclAllReduce" or, after its first round, "HcclAllReduce (round 2)".
std::string describe_call(const std::string& name, int round);
// "rank 0 is in HcclAllReduce and rank 1 in HcclBroadcast"
std::string describe_mismatch(int rank, const std::string& call, int other, const std::string& other_call);

}  // namespace moeyard::comm
