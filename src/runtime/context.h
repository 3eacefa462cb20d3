// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "runtime/options.h"
#include "runtime/stream.h"

namespace moeyard::runtime {

// A context: a device, a default stream, and the streams that are created while it is current.
class Context {
 public:
  static constexpr std::uint8_t kHandleKind = 0x43;

  // With its handle and its default stream.
  static Result<std::shared_ptr<Context>> create(std::string_view function, int device, bool is_default);

  int device() const { return device_; }
  std::uint64_t id() const { return id_; }
  bool is_default() const { return is_default_; }
  bool alive() const { return alive_.load(std::memory_order_acquire); }
  aclrtContext handle() const { return handle_; }
  const std::shared_ptr<Stream>& default_stream() const { return default_stream_; }
  aclrtStream default_stream_handle() const { return default_stream_handle_; }
  SystemOptions& options() { return options_; }

  // Ends the context: takes its handle away, waits for the work of all its streams and ends them.
  Status close(std::string_view function);

  Context(int device, bool is_default);

 private:
  const int device_;
  const bool is_default_;
  const std::uint64_t id_;
  std::atomic<bool> alive_{true};
  aclrtContext handle_ = nullptr;
  std::shared_ptr<Stream> default_stream_;
  aclrtStream default_stream_handle_ = nullptr;
  SystemOptions options_;
};

// Errors: 107002 not alive; destroy also for the default context of a device.
Result<std::shared_ptr<Context>> find_context(std::string_view function, aclrtContext handle);
Status destroy_context(std::string_view function, aclrtContext handle);

// The context that is current in this thread, or that a configured default device gives it. Error: 107002.
Result<std::shared_ptr<Context>> current_context(std::string_view function);
void make_current(std::shared_ptr<Context> context);

// The device that threads without a context get; -1: none.
void set_default_device(int device);

}  // namespace moeyard::runtime
