// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>

#include "acl/acl_rt.h"
#include "base/deadline.h"
#include "base/status.h"
#include "runtime/stream.h"

namespace moeyard::runtime {

// Callbacks of streams that run in threads of the program. A thread subscribes to streams and then runs, one
// by one, what they hand it.

// Errors: 107011 the stream has a subscriber already.
Status subscribe(const char* function, std::uint64_t thread, const std::shared_ptr<Stream>& stream);
// Errors: 107011 the stream has none, 107012 it has another one.
Status unsubscribe(const char* function, std::uint64_t thread, const std::shared_ptr<Stream>& stream);
// Queues the callback on the stream; block: its later work waits. Errors: 107015 nobody is subscribed.
Status launch_callback(const char* function, Stream& stream, aclrtCallback callback, void* data, bool block);
// Runs the next callback of the thread. Errors: 107012 not subscribed, 507012 none came in time.
Status process_report(const char* function, std::uint64_t thread, Deadline deadline);

}  // namespace moeyard::runtime
