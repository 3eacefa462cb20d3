// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/afd/patience.h"

#include <algorithm>
#include <thread>

#include "base/errors.h"
#include "base/log.h"
#include "base/settings.h"
#include "runtime/options.h"

namespace moeyard::ops {
namespace {

using Clock = std::chrono::steady_clock;

// Flags in memory that anybody may write ring no bell. Some 10 us of eager looking, as what is about to come comes
// within a few; then the core belongs to those that work.
class Pause {
 public:
  void operator()() {
    if (++looks_ <= kEager) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    } else if (looks_ <= kEager + kYields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(sleep_);
      sleep_ = std::min(2 * sleep_, kLongest);
    }
  }
  bool is_eager() const { return looks_ < kEager; }

 private:
  static constexpr int kEager = 300, kYields = 50;
  static constexpr std::chrono::microseconds kLongest{500};
  int looks_ = 0;
  std::chrono::microseconds sleep_{10};
};

}  // namespace

Patience::Patience(const runtime::Stream& stream, std::optional<std::chrono::milliseconds> of_communicator)
    : stream_(&stream), stop_requests_(stream.stop_requests()), limit_(runtime::operator_timeout()) {
  if (limit_.count() == 0) limit_ = of_communicator ? *of_communicator : peer_timeout(std::nullopt);
}

Status Patience::wait(const char* function, std::int32_t code, const std::function<bool()>& done,
                      const std::function<std::string()>& missing) const {
  Pause pause;
  const auto begin = Clock::now();
  auto next_report = begin + std::chrono::seconds(1);
  while (!done()) {
    pause();
    if (pause.is_eager()) continue;
    if (stream_->stop_requests() != stop_requests_)
      return fail(code, TextCode::runtime_state,
                  "{}: the stream was aborted while waiting for {}; nothing was taken, call it again",
                  function, missing());
    const auto now = Clock::now();
    if (limit_.count() > 0 && now - begin >= limit_)
      return fail(
          code, TextCode::hccl_timeout,
          "{}: waited {} ms for {}; nothing was taken, so call it again, or raise MOEYARD_TIMEOUT_MS if that "
          "is too short",
          function, std::chrono::duration_cast<std::chrono::milliseconds>(limit_).count(), missing());
    if (now >= next_report) {
      next_report += std::chrono::seconds(1);
      log_at(LogLevel::info, "{}: waiting for {}", function, missing());
    }
  }
  return {};
}

}  // namespace moeyard::ops
