// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "calls/call.h"
#include "calls/compare.h"

namespace moeyard::calls {

// The calls below a folder that MOEYARD_DUMP named, in the order of devices and of their numbers.
Result<std::vector<Recorded>> read_dump(const std::filesystem::path& folder);

// Calls that run together: one, or those of all ranks that met. By place in the list.
std::vector<std::vector<std::size_t>> sets_of(const std::vector<Recorded>& calls);

struct OutputDifference {
  std::string name;  // of the parameter, with the number of the member for a list
  TensorSpec tensor;
  Difference difference;
};

// What came out when a call ran again, or stands in another dump.
struct Comparison {
  const Recorded* call = nullptr;
  std::string skipped;  // why it was not compared; empty: it was
  std::int32_t code = 0;
  std::string message;
  std::vector<OutputDifference> outputs;
  bool same_code() const { return call->outcome.code == code; }
};

// Runs a set again on devices 0, 1, ... of this process and compares outputs with those that were recorded. Bad input where
// files do not fit their description.
Result<std::vector<Comparison>> replay(const std::vector<Recorded>& calls,
                                       const std::vector<std::size_t>& set);

// Compares what two dumps have recorded, without running anything. `other` null: the call is not in the other dump.
Result<Comparison> compare_recorded(const Recorded& call, const Recorded* other);

}  // namespace moeyard::calls
