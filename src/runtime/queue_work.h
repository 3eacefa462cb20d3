// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <utility>

#include "runtime/streams.h"

namespace moeyard::runtime {

constexpr std::uint64_t kTinyBytes = 16 << 10;  // about what waking a stream's thread costs

// Queues work of the library itself, which does not fail, on a stream of the current context; tiny work runs
// here if the stream is idle. `function` is static.
template <class Work>
Status queue_work(const char* function, aclrtStream handle, std::uint64_t bytes, Work&& work) {
  const std::shared_ptr<Stream> stream = MOEYARD_TRY(find_own_stream(function, handle));
  Task task{function,
            [work = std::forward<Work>(work)]() -> Status {
              work();
              return {};
            },
            false};
  return bytes <= kTinyBytes ? stream->submit_or_run(std::move(task)) : stream->submit(std::move(task));
}

}  // namespace moeyard::runtime
