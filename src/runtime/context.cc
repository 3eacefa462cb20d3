// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/context.h"

#include "base/boundary.h"
#include "runtime/device.h"
#include "runtime/handle_table.h"
#include "runtime/streams.h"

namespace moeyard::runtime {
namespace {

HandleTable<Context>& contexts() {
  static auto* made = new HandleTable<Context>;
  return *made;
}

std::atomic<int> default_device{-1};

std::shared_ptr<Context>& current() {
  thread_local std::shared_ptr<Context> context;
  return context;
}

std::uint64_t next_context_id() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

Status no_context(std::string_view function) {
  return fail(ACL_ERROR_RT_CONTEXT_NULL, TextCode::runtime_state,
              "{}: this thread has no context, or its context was destroyed; call aclrtSetDevice or "
              "aclrtSetCurrentContext "
              "in this thread",
              function);
}

// The context of this thread without an error message, as some callers only ask.
std::shared_ptr<Context>* find_current() {
  std::shared_ptr<Context>& mine = current();
  if (mine != nullptr) return mine->alive() ? &mine : nullptr;
  const int device = default_device.load(std::memory_order_relaxed);
  if (device < 0) return nullptr;
  Result<std::shared_ptr<Context>> context = use_device("default_device", device, false);
  if (!context) return nullptr;
  mine = *std::move(context);
  return &mine;
}

}  // namespace

Context::Context(int device, bool is_default)
    : device_(device), is_default_(is_default), id_(next_context_id()) {}

Result<std::shared_ptr<Context>> Context::create(std::string_view function, int device, bool is_default) {
  watch_for_fork();
  auto context = std::make_shared<Context>(device, is_default);
  context->default_stream_handle_ = MOEYARD_TRY(create_stream(function, {device, context->id()}));
  context->default_stream_ = *find_stream(context->default_stream_handle_);
  context->handle_ = contexts().add(context);
  if (context->handle_ == nullptr)
    return fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, TextCode::runtime_resource,
                "{}: there are too many contexts; destroy some", function);
  return context;
}

Status Context::close(std::string_view function) {
  alive_.store(false, std::memory_order_release);
  contexts().remove(handle_);
  return close_streams_of(function, id_);
}

Result<std::shared_ptr<Context>> find_context(std::string_view function, aclrtContext handle) {
  if (std::shared_ptr<Context> context = contexts().find(handle)) return context;
  return fail(
      ACL_ERROR_RT_CONTEXT_NULL, TextCode::runtime_parameter,
      "{}: context {} is not alive: it was destroyed or never created; pass one that aclrtCreateContext made",
      function, handle);
}

Status destroy_context(std::string_view function, aclrtContext handle) {
  const std::shared_ptr<Context> context = MOEYARD_TRY(find_context(function, handle));
  if (context->is_default())
    return fail(ACL_ERROR_RT_CONTEXT_NULL, TextCode::runtime_parameter,
                "{}: context {} is the default context of device {}; call aclrtResetDevice instead", function,
                handle, context->device());
  if (contexts().remove(handle) == nullptr)
    return find_context(function, handle).error();  // by another thread
  return context->close(function);
}

Result<std::shared_ptr<Context>> current_context(std::string_view function) {
  if (const auto* mine = find_current()) return *mine;
  return no_context(function);
}

void make_current(std::shared_ptr<Context> context) { current() = std::move(context); }

void set_default_device(int device) { default_device.store(device, std::memory_order_relaxed); }

int current_device() {
  const auto* mine = find_current();
  return mine == nullptr ? -1 : (*mine)->device();
}

Result<std::shared_ptr<Stream>> find_stream(aclrtStream handle, std::string_view function) {
  if (handle == nullptr) {
    if (const auto* mine = find_current()) return (*mine)->default_stream();
    return no_context(function);
  }
  if (std::shared_ptr<Stream> stream = find_live_stream(handle)) return stream;
  return fail(ACL_ERROR_RT_INVALID_HANDLE, TextCode::runtime_parameter,
              "{}: stream {} is not alive: it was destroyed or never created; pass a stream that "
              "aclrtCreateStream made",
              function, handle);
}

}  // namespace moeyard::runtime
