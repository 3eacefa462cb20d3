// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>

#include "acl/acl_rt.h"
#include "base/status.h"
#include "runtime/stream.h"

namespace moeyard::runtime {

// A flag between streams: one records it, another waits for it and takes it back.
class Notify : public std::enable_shared_from_this<Notify> {
 public:
  static constexpr std::uint8_t kHandleKind = 0x4E;

  Notify();
  std::uint32_t id() const { return id_; }

  Status record(const char* function, Stream& stream);
  // timeout 0: never; past it the stream gets 107019 and goes on.
  Status wait_and_reset(const char* function, Stream& stream, std::chrono::seconds timeout);

 private:
  bool take(const std::function<bool()>& stop);

  const std::uint32_t id_;
  std::mutex mutex_;
  std::condition_variable recorded_;
  bool set_ = false;
};

Result<aclrtNotify> create_notify(std::string_view function);
Result<std::shared_ptr<Notify>> find_notify(std::string_view function, aclrtNotify handle);  // 107017
Status destroy_notify(std::string_view function, aclrtNotify handle);                        // 107017

}  // namespace moeyard::runtime
