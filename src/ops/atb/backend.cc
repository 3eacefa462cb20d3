// Moeyard. SPDX-License-Identifier: Apache-2.0
// The C functions of moeyard/atb_backend.h.
#include "moeyard/atb_backend.h"

#include <algorithm>
#include <memory>

#include "base/boundary.h"
#include "base/log.h"
#include "base/settings.h"
#include "ops/atb/operation.h"
#include "runtime/memory.h"
#include "runtime/stream.h"

namespace moeyard::ops::atb {
namespace {

// Codes of libatb (atb/types.h, which only libatb includes).
struct AtbApi {
  static constexpr std::int32_t kOutOfMemory = 27;  // ERROR_OUT_OF_HOST_MEMORY
  static constexpr std::int32_t kInternal = 3;      // ERROR_INTERNAL_ERROR
  static constexpr std::int32_t kForked = 4;        // ERROR_RT_FAIL
};
constexpr std::int32_t kBadAddress = 14;  // ERROR_INVALID_TENSOR_ADDR
constexpr std::int32_t kRuntime = 4;      // ERROR_RT_FAIL

// Below that, waking the stream's thread costs more than the work.
constexpr std::int64_t kTinyElements = 4096;

const Entry& entry_of(MoeyardAtbOperation operation) {
  static const auto* table = [] {
    auto* made = new std::array<Entry, MOEYARD_ATB_OPERATIONS>();
    for (const auto& part : {elementwise(), moves(), norms(), linear(), gating(), indexing(), reductions(),
                             quantising(), grouped()})
      for (const Entry& entry : part) (*made)[static_cast<std::size_t>(entry.operation)] = entry;
    return made;
  }();
  return (*table)[static_cast<std::size_t>(operation)];
}

TensorView view_of(const MoeyardAtbTensor& tensor) {
  TensorView view;
  view.data = static_cast<std::byte*>(tensor.data);
  view.dtype = static_cast<aclDataType>(tensor.dtype);
  view.format = ACL_FORMAT_ND;
  view.rank = tensor.rank;
  std::int64_t stride = 1;
  for (int axis = tensor.rank - 1; axis >= 0; --axis) {
    view.shape[axis] = tensor.dims[axis];
    view.strides[axis] = stride;
    stride *= tensor.dims[axis];
  }
  return view;
}

Call copy_of(const MoeyardAtbCall& call) {
  Call copy{call.name, call.operation, {}, {}, {}, {call.list, call.list + call.list_size}};
  std::copy(std::begin(call.integers), std::end(call.integers), copy.integers.begin());
  std::copy(std::begin(call.numbers), std::end(call.numbers), copy.numbers.begin());
  copy.tensors.reserve(static_cast<std::size_t>(call.tensor_count));
  for (std::int32_t i = 0; i < call.tensor_count; ++i) copy.tensors.push_back(view_of(call.tensors[i]));
  return copy;
}

Status check_addresses(const Call& call) {
  for (std::size_t i = 0; i < call.tensors.size(); ++i) {
    const TensorView& view = call.tensors[i];
    if (!view.present()) continue;
    const std::int64_t bytes = bytes_of(view.dtype, view.numel());
    std::string why;
    if (view.data == nullptr)
      why = "is null";
    else if (settings().strict_memory != 0)
      why = runtime::why_not_device_memory(view.data, static_cast<std::uint64_t>(bytes));
    if (why.empty()) continue;
    return fail(
        kBadAddress, TextCode::operator_parameter,
        "{}: deviceData of tensor {} ({}, at {}) must be device memory of {} bytes but {}; allocate it with "
        "aclrtMalloc",
        call.name, i, view.describe(), static_cast<const void*>(view.data), bytes, why);
  }
  return {};
}

}  // namespace
}  // namespace moeyard::ops::atb

using namespace moeyard;
using namespace moeyard::ops::atb;

extern "C" {

int64_t moeyardAtbWorkspace(const MoeyardAtbCall* call) {
  const auto workspace = entry_of(call->operation).workspace;
  return workspace == nullptr ? 0 : workspace(copy_of(*call));
}

int32_t moeyardAtbRun(const MoeyardAtbCall* call, void* workspace, aclrtStream stream) {
  return c_boundary<AtbApi>(call->name, [&]() -> Status {
    auto copy = std::make_unique<Call>(copy_of(*call));
    MOEYARD_TRY(check_addresses(*copy));
    auto found = runtime::find_stream(stream, call->name);
    if (!found) return Status(kRuntime, found.error().message());
    std::int64_t elements = 0;
    for (const TensorView& view : copy->tensors) elements += view.present() ? view.numel() : 0;
    const Run run = entry_of(call->operation).run;
    auto* scratch = static_cast<std::byte*>(workspace);
    runtime::Task task{call->name, [copy = std::move(copy), run, scratch]() { return run(*copy, scratch); }};
    runtime::Stream& queue = **found;
    Status queued =
        elements <= kTinyElements ? queue.submit_or_run(std::move(task)) : queue.submit(std::move(task));
    return queued.ok() ? queued : Status(kRuntime, queued.message());
  });
}

void moeyardAtbFail(int32_t code, const char* message) {
  c_boundary<AtbApi>("libatb", [&]() -> Status { return {code, message}; });
}

void moeyardAtbWarn(const char* message) {
  c_boundary<AtbApi>("libatb", [&]() -> Status {
    log_warning("{}", message);
    return {};
  });
}

void moeyardAtbSetLogLevel(int32_t level) {
  constexpr LogLevel kLevels[] = {LogLevel::debug, LogLevel::info, LogLevel::warning, LogLevel::error,
                                  LogLevel::off};
  if (level < 0)
    reset_log_level();
  else
    set_log_level(kLevels[level]);
}

const char* moeyardAtbNameOf(int32_t dtype) {
  const DtypeInfo* info = find_dtype(static_cast<aclDataType>(dtype));
  return info == nullptr ? "an unknown type" : info->name.data();
}

}  // extern "C"
