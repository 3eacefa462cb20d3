// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/status.h"
#include "runtime/stream.h"

namespace moeyard::ops {

// How long a waiting operator waits: until a deadline, or until its stream is aborted. Made in phase two, used on
// the stream's thread. The limit is aclrtSetOpExecuteTimeOut's, else that of decisions about peers (settings.h).
class Patience {
 public:
  explicit Patience(const runtime::Stream& stream,
                    std::optional<std::chrono::milliseconds> of_communicator = std::nullopt);

  // Calls `done` until it is true: eagerly at first, then ever more rarely, at least every half millisecond.
  // When the time is over or the stream is aborted, fails with `code`; `missing` tells what did not come: "flag of
  // session 3, micro-batch 0 (2 of 8 came)". While it waits the log hears that once per second.
  Status wait(const char* function, std::int32_t code, const std::function<bool()>& done,
              const std::function<std::string()>& missing) const;

 private:
  const runtime::Stream* stream_;  // outlives its tasks
  std::uint32_t stop_requests_;
  std::chrono::microseconds limit_;  // 0: none
};

}  // namespace moeyard::ops
