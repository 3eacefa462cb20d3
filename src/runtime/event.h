// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>

#include "acl/acl_rt.h"
#include "base/deadline.h"
#include "base/status.h"
#include "runtime/stream.h"

namespace moeyard::runtime {

// A mark in a stream. Recording captures the work submitted so far; waiting waits for what the latest record
// captured.
class Event : public std::enable_shared_from_this<Event> {
 public:
  static constexpr std::uint8_t kHandleKind = 0x45;

  // re_recordable: made by aclrtCreateEventExWithFlag, which cannot be reset nor asked about its waits.
  Event(std::uint32_t flags, bool re_recordable);

  std::uint32_t id() const { return id_; }
  bool can_synchronize_streams() const { return (flags_ & ACL_EVENT_SYNC) != 0; }
  bool has_times() const { return (flags_ & ACL_EVENT_TIME_LINE) != 0; }
  bool re_recordable() const { return re_recordable_; }

  Status record(const char* function, std::shared_ptr<Stream> stream);
  // Forgets the record, once the stream has come so far.
  Status reset(const char* function, Stream& stream);
  // Later work of the stream waits; past the timeout (0: never) the stream gets 107019 and goes on.
  Status make_wait(const char* function, Stream& stream, std::chrono::milliseconds timeout);
  // Waits for the record and takes its stream's error; 507047 past the deadline. Without a record at once.
  Status synchronize(const char* function, Deadline deadline);

  bool complete() const;  // never recorded, or all captured work has run
  bool waits_complete() const { return pending_waits_.load(std::memory_order_acquire) == 0; }
  // When the record ran. Errors: 107006 not recorded or without times, 507006 not complete.
  Result<std::chrono::nanoseconds> time(const char* function) const;

 private:
  struct Record {
    std::shared_ptr<Stream> stream;
    std::uint64_t position = 0;
    std::atomic<std::int64_t> time_ns{0};
    bool passed() const { return stream->passed(position); }
  };
  class PendingWait;

  std::shared_ptr<Record> latest() const;

  const std::uint32_t flags_;
  const bool re_recordable_;
  const std::uint32_t id_;
  mutable std::mutex mutex_;
  std::shared_ptr<Record> record_;
  std::atomic<int> pending_waits_{0};
};

Result<aclrtEvent> create_event(std::string_view function, std::uint32_t flags, bool re_recordable);
Result<std::shared_ptr<Event>> find_event(std::string_view function, aclrtEvent handle);  // 107017
Status destroy_event(std::string_view function, aclrtEvent handle);                       // 107017
std::size_t live_events();

}  // namespace moeyard::runtime
