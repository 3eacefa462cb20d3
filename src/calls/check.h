// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "calls/call.h"
#include "contract/survey.h"

namespace moeyard::calls {

// What phase one says of a described call, all of it.
struct Verdict {
  struct Broken {
    std::string subject;
    std::int32_t code;
    std::string sentence;
  };
  struct Output {
    std::string name, size;  // "INT8[>= 4096, 7168]"
    bool assumed = false;    // it was left out of the description
  };
  struct Value {
    std::string name, meaning;
    std::int64_t value;
  };

  std::int64_t rank = 0;       // of the caller in its group
  std::vector<Broken> broken;  // none: the call would pass
  std::vector<Output> outputs;
  std::vector<Value> dims, needs, facts;
  std::uint64_t workspace_bytes = 0;
  bool passes() const { return broken.empty(); }
};

// Checks the calls of one function, one per rank that makes it, as the product that MOEYARD_SOC names; with several of
// them also whether they fit together. The process needs as many devices as the largest group has ranks. Outputs that a
// call leaves out are assumed as the operator wants them.
Result<std::vector<Verdict>> check_calls(const std::vector<Call>& calls);

}  // namespace moeyard::calls
