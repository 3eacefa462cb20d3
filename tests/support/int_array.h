// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "aclnn/aclnn_base.h"

namespace oracle {

// An aclIntArray for the time of a call; none: null.
class IntArray {
 public:
  explicit IntArray(const std::optional<std::vector<std::int64_t>>& values)
      : array_(values ? aclCreateIntArray(values->data(), values->size()) : nullptr) {}
  ~IntArray() {
    if (array_ != nullptr) aclDestroyIntArray(array_);
  }
  IntArray(const IntArray&) = delete;
  operator const aclIntArray*() const { return array_; }

 private:
  aclIntArray* array_;
};

}  // namespace oracle
