// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "base/status.h"
#include "runtime/stream.h"

namespace moeyard::runtime {

// A condition on a word that other streams, or the host, write.
struct ValueCondition {
  const std::uint64_t* word;
  std::uint64_t value;
  std::uint32_t compare;  // ACL_STREAM_WAIT_VALUE_*

  bool holds() const;
};

// Later work of the stream waits for the condition; an abort of the stream ends the wait.
Status submit_value_wait(const char* function, Stream& stream, const ValueCondition& condition);

}  // namespace moeyard::runtime
