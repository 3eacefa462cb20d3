// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <algorithm>

#include "base/settings.h"

#ifdef MOEYARD_PLAIN_THREADS
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>
#else
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#endif

namespace moeyard {

int parallel_threads() { return settings().threads; }

#ifdef MOEYARD_PLAIN_THREADS

// Every synchronisation here is visible to the thread sanitizer.
void parallel_for(std::int64_t n, std::int64_t grain, RangeBody body) {
  grain = std::max<std::int64_t>(grain, 1);
  const std::int64_t pieces = (n + grain - 1) / grain;
  const int threads = static_cast<int>(std::min<std::int64_t>(pieces, parallel_threads()));
  if (n <= 0) return;
  if (threads <= 1) return body({0, n});
  std::atomic<std::int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  auto work = [&] {
    for (std::int64_t piece = next.fetch_add(1); piece < pieces; piece = next.fetch_add(1)) {
      try {
        body({piece * grain, std::min(n, (piece + 1) * grain)});
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

#else

namespace {
// Never destroyed: a stream's worker may still run when static objects go.
tbb::task_arena& arena() {
  static auto* made = new tbb::task_arena(parallel_threads());
  return *made;
}
}  // namespace

void parallel_for(std::int64_t n, std::int64_t grain, RangeBody body) {
  if (n <= 0) return;
  grain = std::max<std::int64_t>(grain, 1);
  if (n <= grain || parallel_threads() == 1) return body({0, n});
  arena().execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<std::int64_t>(0, n, static_cast<std::size_t>(grain)),
        [&](const tbb::blocked_range<std::int64_t>& range) {
          body({range.begin(), range.end()});
        },
        tbb::auto_partitioner());
  });
}

#endif

}  // namespace moeyard
