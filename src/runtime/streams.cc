// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/streams.h"

#include "base/errors.h"
#include "runtime/context.h"
#include "runtime/handle_table.h"

namespace moeyard::runtime {
namespace {

HandleTable<Stream>& streams() {
  static auto* made = new HandleTable<Stream>;
  return *made;
}

}  // namespace

Result<aclrtStream> create_stream(std::string_view function, const Stream::Options& options) {
  if (aclrtStream handle = streams().add(std::make_shared<Stream>(options))) return handle;
  return fail(ACL_ERROR_RT_NO_STREAM_RESOURCE, TextCode::runtime_resource,
              "{}: there are too many streams; destroy some", function);
}

std::shared_ptr<Stream> find_live_stream(aclrtStream handle) { return streams().find(handle); }

std::vector<std::shared_ptr<Stream>> all_streams() { return streams().all(); }

Status destroy_stream(std::string_view function, aclrtStream handle, bool force) {
  // Asked before the handle goes: a stream cannot end its own thread.
  const std::shared_ptr<Stream> alive = streams().find(handle);
  if (alive != nullptr && alive->runs_this_thread()) return alive->close(function, force);
  const std::shared_ptr<Stream> stream = streams().remove(handle);
  if (stream != nullptr) return stream->close(function, force);
  return fail(ACL_ERROR_RT_INVALID_HANDLE, TextCode::runtime_parameter,
              "{}: stream {} is not alive: it was destroyed before; destroy a stream once", function, handle);
}

Status synchronize_device(std::string_view function, int device, Deadline deadline) {
  Status first;
  for (const std::shared_ptr<Stream>& stream : all_streams()) {
    if (stream->device() != device) continue;
    Status status = stream->synchronize(function, deadline, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    if (first.ok()) first = std::move(status);
  }
  return first;
}

Status close_streams_of(std::string_view function, std::uint64_t context) {
  Status first;
  const auto of_context = [&](const Stream& stream) { return stream.options().context == context; };
  for (const std::shared_ptr<Stream>& stream : streams().remove_if(of_context)) {
    Status status = stream->close(function, false);
    if (first.ok()) first = std::move(status);
  }
  return first;
}

Result<std::shared_ptr<Stream>> find_own_stream(std::string_view function, aclrtStream handle) {
  const std::shared_ptr<Context> context = MOEYARD_TRY(current_context(function));
  if (handle == nullptr) return context->default_stream();
  std::shared_ptr<Stream> stream = MOEYARD_TRY(find_stream(handle, function));
  if (stream->options().context == context->id()) return stream;
  return fail(ACL_ERROR_RT_STREAM_CONTEXT, TextCode::runtime_parameter,
              "{}: stream {} belongs to another context than the current one of this thread; make the "
              "stream's context "
              "current or use a stream of this one",
              function, stream->id());
}

}  // namespace moeyard::runtime
