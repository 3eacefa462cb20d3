// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "model/errors.h"
#include "model/job.h"
#include "model/progress.h"
#include "model/rank.h"

namespace moeyard::model {

using Clock = std::chrono::steady_clock;

inline double ms_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double, std::milli>(end - begin).count();
}

// One pass of the layer over all ranks. Each rank times its phases on its own stream.
struct Pass {
  std::vector<PhaseTimes> ms_of_rank;
  double ms;  // from the first rank's begin to the last one's end
};

// What the ranks came up with.
struct LayerRun {
  std::vector<std::uint16_t> output;  // [T, H], bits of BF16 or F16
  std::vector<std::int32_t> experts;  // [T, K]
  std::vector<float> weights;         // [T, K]
  std::vector<float> scores;          // [T, E] of routers with a bias, else empty
  std::vector<std::int64_t> rows;     // [ranks with tokens, instances]: rows that a rank sent to an instance
  std::vector<Pass> passes;
  double load_ms;  // putting weights and tokens on the devices
  // How often a pass reads the weights of an instance, and of a shared expert.
  std::int64_t instance_reads, shared_reads;

  // With room for the results of this job.
  static LayerRun of(const Job& job);
};

// Calls body(r) on a thread for each rank, and returns the failure that came first, if any.
template <class Body>
Status each_rank(int ranks, Body body) {
  std::mutex mutex;
  Status first;
  const auto guarded = [&](int r) {
    Status status;
    try {
      status = body(r);
    } catch (const std::bad_alloc&) {
      status = run_failed("out of memory");
    }
    const std::lock_guard lock(mutex);
    if (!first.ok() || status.ok()) return;
    const bool of_rank = status.code() == static_cast<int>(Ending::failed);
    first = of_rank ? run_failed("rank {}: {}", r, status.message()) : status;
  };
  {
    std::vector<std::jthread> threads;
    for (int r = 0; r < ranks; ++r) threads.emplace_back(guarded, r);
  }
  return first;
}

// A communicator over the devices 0 to ranks - 1.
Result<std::vector<Communicator>> make_communicators(int ranks);

// Copies rank r's rows of a [T, width] result to their place.
template <class T>
Status collect_rows_of(const Job& job, int r, const DeviceTensor& tensor, std::vector<T>& all) {
  if (all.empty()) return {};
  const auto width = static_cast<std::int64_t>(all.size()) / job.tokens.count;
  return tensor.download(
      std::as_writable_bytes(std::span(all).subspan(job.first_token(r) * width, job.tokens_of(r) * width)));
}

// Tells how many of all instances are loaded; called by any thread.
class LoadProgress {
 public:
  LoadProgress(const Job& job, const Progress& progress)
      : all_(job.placement.instances()), progress_(progress) {}
  void operator()() {
    const std::lock_guard lock(mutex_);
    progress_("loading expert instances", ++done_, all_);
  }

 private:
  std::mutex mutex_;
  std::int64_t done_ = 0;
  const std::int64_t all_;
  const Progress& progress_;
};

}  // namespace moeyard::model
