// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "contract/contract.h"

namespace moeyard::contract {

// While one lives, check() tells it everything about the calls of this thread and does not stop at the first broken
// rule: all of a stage are looked at, but for rules that name a parameter which has broken one before, as their answer
// would mean nothing. Later stages presume earlier ones, so a stage with broken rules is the last.
class Survey {
 public:
  Survey();
  ~Survey();
  Survey(const Survey&) = delete;
  Survey& operator=(const Survey&) = delete;
  static Survey* current();  // of this thread; null without one

  struct Broken {
    std::string_view subject;  // the parameter or dimension
    Status status;
  };
  struct Size {
    std::optional<std::int64_t> value;  // none: anything, or not known
    bool at_least = false;
  };
  struct Output {
    const Param* param;
    std::vector<Size>
        shape;  // of the tensor's number of dimensions where the contract has that, else of the first shape
  };
  struct Value {
    std::string_view name, meaning;
    std::int64_t value;
  };

  // Of the last call.
  const Contract* contract = nullptr;
  std::vector<Broken> broken;
  std::vector<Output> outputs;      // those with a shape in the contract, once the attributes are in order
  std::vector<Value> dims;          // that have a value, with the outputs
  std::vector<Value> needs, facts;  // of an intact call
};

}  // namespace moeyard::contract
