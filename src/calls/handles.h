// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "calls/call.h"

namespace moeyard::calls {

// Where the elements of a tensor lie; null: nowhere, as phase one does not look at them.
using Place = std::function<void*(const Parameter& parameter, const TensorSpec& tensor)>;

// The arguments of a described call, as objects of the C interface.
class Handles {
 public:
  Handles(const Call& call, const Place& place);
  ~Handles();
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  void set_text(std::size_t parameter, std::string text);
  // Phase one.
  aclnnStatus plan(std::uint64_t* workspace_size, aclOpExecutor** executor) const;

 private:
  void set_integers(std::size_t parameter, const std::vector<std::int64_t>& values);

  const Function& function_;
  std::vector<Argument> arguments_;
  std::vector<std::unique_ptr<std::string>> texts_;
};

}  // namespace moeyard::calls
