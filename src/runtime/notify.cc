// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/notify.h"

#include <algorithm>
#include <atomic>

#include "base/deadline.h"
#include "base/errors.h"
#include "runtime/handle_table.h"

namespace moeyard::runtime {
namespace {

HandleTable<Notify>& notifies() {
  static auto* made = new HandleTable<Notify>;
  return *made;
}

std::uint32_t next_notify_id() {
  static std::atomic<std::uint32_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed);
}

Status not_alive(std::string_view function, aclrtNotify handle) {
  return fail(
      ACL_ERROR_RT_INVALID_HANDLE, TextCode::runtime_parameter,
      "{}: notify {} is not alive: it was destroyed or never created; pass one that aclrtCreateNotify made",
      function, handle);
}

}  // namespace

Notify::Notify() : id_(next_notify_id()) {}

Status Notify::record(const char* function, Stream& stream) {
  return stream.submit_or_run({function,
                               [self = shared_from_this()]() -> Status {
                                 {
                                   const std::lock_guard lock(self->mutex_);
                                   self->set_ = true;
                                 }
                                 self->recorded_.notify_one();
                                 return {};
                               },
                               false});
}

// Looks at `stop` at times that double, as hundreds of streams may wait.
bool Notify::take(const std::function<bool()>& stop) {
  std::chrono::milliseconds slice{1};
  constexpr std::chrono::milliseconds kLongest{64};
  std::unique_lock lock(mutex_);
  while (!recorded_.wait_for(lock, slice, [this] { return set_; })) {
    slice = std::min(2 * slice, kLongest);
    lock.unlock();
    const bool give_up = stop();
    lock.lock();
    if (give_up && !set_) return false;
  }
  set_ = false;
  return true;
}

Status Notify::wait_and_reset(const char* function, Stream& stream, std::chrono::seconds timeout) {
  const std::uint32_t stop_requests = stream.stop_requests();
  return stream.submit(
      {function,
       [self = shared_from_this(), &stream, stop_requests, timeout, function]() -> Status {
         const Deadline deadline = Deadline::after(timeout);
         const auto stop = [&] { return deadline.expired() || stream.stop_requests() != stop_requests; };
         if (self->take(stop) || stream.stop_requests() != stop_requests) return {};
         return fail(ACL_ERROR_RT_WAIT_TIMEOUT, TextCode::runtime_state,
                     "{}: stream {} waited {} s for notify {} and went on without it; allow more time or "
                     "record the notify earlier",
                     function, stream.id(), timeout.count(), self->id_);
       },
       false});
}

Result<aclrtNotify> create_notify(std::string_view function) {
  if (aclrtNotify handle = notifies().add(std::make_shared<Notify>())) return handle;
  return fail(ACL_ERROR_RT_NO_NOTIFY_RESOURCE, TextCode::runtime_resource,
              "{}: there are too many notifies; destroy some", function);
}

Result<std::shared_ptr<Notify>> find_notify(std::string_view function, aclrtNotify handle) {
  if (std::shared_ptr<Notify> notify = notifies().find(handle)) return notify;
  return not_alive(function, handle);
}

Status destroy_notify(std::string_view function, aclrtNotify handle) {
  return notifies().remove(handle) != nullptr ? Status() : not_alive(function, handle);
}

}  // namespace moeyard::runtime
