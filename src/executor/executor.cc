// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "executor/executor.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <vector>

#include "base/settings.h"
#include "base/trace.h"
#include "executor/dump.h"
#include "runtime/block_map.h"
#include "runtime/memory.h"

namespace moeyard::executor {

namespace {
// A phase one begins with check_outputs and ends with make_executor, in one thread.
thread_local std::int64_t phase_one_began_ns = 0;
}  // namespace

Status check_outputs(const char* function, const std::uint64_t* workspace_size, aclOpExecutor** executor) {
  if (tracing()) [[unlikely]]
    phase_one_began_ns = trace_now();
  if (workspace_size != nullptr && executor != nullptr) return {};
  return fail(ACLNN_ERR_PARAM_NULLPTR, TextCode::operator_parameter,
              "{}GetWorkspaceSize: {} is null but is required; pass the address of a variable", function,
              workspace_size == nullptr ? "workspaceSize" : "executor");
}

namespace {

// Bytes that an element's address must be a multiple of; parts of a byte and bytes may lie anywhere.
std::uintptr_t alignment_of(aclDataType dtype) {
  return static_cast<std::uintptr_t>(std::clamp<std::int64_t>(find_dtype(dtype)->bits / 8, 1, 8));
}

bool is_aligned(const void* address, std::uintptr_t alignment) {
  return reinterpret_cast<std::uintptr_t>(address) % alignment == 0;
}

}  // namespace

Status check_addresses(const char* function, const contract::Contract& contract, void* args,
                       bool null_is_wrong) {
  const bool strict = settings().strict_memory != 0;
  if (!strict && !null_is_wrong) return {};
  Status status;
  contract::for_each_tensor(contract, args, [&](const contract::Param& param, const TensorView& view) {
    if (!status.ok() || !view.present() || view.numel() == 0) return;
    std::string why;
    if (view.data == nullptr) {
      if (!null_is_wrong) return;
      why = "is null";
    } else if (strict && !is_aligned(view.data, alignment_of(view.dtype))) {
      why = fmt::format("is not aligned to its elements of {} bytes", bytes_of(view.dtype, 1));
    } else if (strict) {
      const TensorView::Extent reach = view.extent();
      const std::byte* first =
          view.data + (reach.low < 0 ? -bytes_of(view.dtype, -reach.low) : bytes_of(view.dtype, reach.low));
      const std::byte* end = view.data + bytes_of(view.dtype, reach.high + 1);
      why = runtime::why_not_device_memory(first, static_cast<std::uint64_t>(end - first));
    }
    if (why.empty()) return;
    status = fail(ACLNN_ERR_PARAM_INVALID, TextCode::operator_parameter,
                  "{}: the data of {} ({}, at {}) must be device memory but {}; allocate it with aclrtMalloc",
                  function, param.name, view.describe(), static_cast<const void*>(view.data), why);
  });
  return status;
}

namespace {

struct Reach {
  const contract::Param* param;
  const TensorView* view;
  const std::byte* begin;
  const std::byte* end;
};

bool is_same_tensor(const TensorView& a, const TensorView& b) {
  return a.begin() == b.begin() && bytes_of(a.dtype, 1) == bytes_of(b.dtype, 1) &&
         std::ranges::equal(a.dims(), b.dims());
}

}  // namespace

Status check_overlaps(const char* function, const contract::Contract& contract, void* args) {
  struct Reaches {
    std::vector<Reach> inputs, outputs;
  };
  thread_local Reaches kept;  // with their memory
  auto& [inputs, outputs] = kept;
  inputs.clear();
  outputs.clear();
  contract::for_each_tensor(
      contract, args,
      [&inputs = inputs, &outputs = outputs](const contract::Param& param, const TensorView& view) {
        if (!view.present() || view.data == nullptr || view.numel() == 0 || !view.contiguous()) return;
        const std::byte* begin = view.begin();
        const Reach reach{&param, &view, begin, begin + bytes_of(view.dtype, view.numel())};
        if (param.direction == contract::Direction::in) inputs.push_back(reach);
        if (param.direction == contract::Direction::out) outputs.push_back(reach);
      });
  for (const Reach& out : outputs)
    for (const Reach& in : inputs) {
      if (in.end <= out.begin || out.end <= in.begin) continue;
      if (out.param->in_place && is_same_tensor(*in.view, *out.view)) continue;
      return fail(ACLNN_ERR_PARAM_INVALID, TextCode::operator_parameter,
                  "{}: {} ({}, at {}) overlaps {} ({}, at {}) but an output must not lie where an input "
                  "does; give it "
                  "memory of its own",
                  function, out.param->name, out.view->describe(), static_cast<const void*>(out.begin),
                  in.param->name, in.view->describe(), static_cast<const void*>(in.begin));
    }
  return {};
}

namespace {

bool has_null_address(const contract::Contract& contract, void* args) {
  bool found = false;
  contract::for_each_tensor(contract, args, [&](const contract::Param&, const TensorView& view) {
    found = found || (view.present() && view.data == nullptr && view.numel() != 0);
  });
  return found;
}

// Phase one has checked them; since then they were replaced, or some block was freed.
bool must_check_addresses(const aclOpExecutor& executor) {
  return executor.addresses_changed || executor.removals != runtime::block_map().removals();
}

Status check_workspace(const PlannedCall& call, const void* workspace, std::uint64_t workspace_size) {
  const auto needed = static_cast<std::uint64_t>(call.plan().workspace_bytes);
  if (needed == 0) return {};
  if (workspace_size < needed)
    return fail(
        ACLNN_ERR_PARAM_INVALID, TextCode::operator_parameter,
        "{}: workspaceSize is {} but must be at least {}, what the first phase returned; allocate that much",
        call.function, workspace_size, needed);
  if (workspace == nullptr)
    return fail(ACLNN_ERR_PARAM_INVALID, TextCode::operator_parameter,
                "{}: workspace is null but must hold {} bytes; allocate it with aclrtMalloc", call.function,
                needed);
  if (settings().strict_memory == 0) return {};
  constexpr std::uintptr_t kWorkspaceAlignment = 8;  // pointers and 64-bit numbers lie in it
  const std::string why = is_aligned(workspace, kWorkspaceAlignment)
                              ? runtime::why_not_device_memory(workspace, needed)
                              : "is not aligned to 8 bytes";
  if (why.empty()) return {};
  return fail(ACLNN_ERR_PARAM_INVALID, TextCode::operator_parameter,
              "{}: workspace must be device memory of {} bytes but {}; allocate it with aclrtMalloc",
              call.function, needed, why);
}

// Takes the call when the stream is to run it.
Status submit(std::unique_ptr<PlannedCall>& call, void* workspace, aclrtStream handle) {
  auto found = runtime::find_stream(handle);
  if (!found) {
    if (handle != nullptr) return std::move(found).error();
    return fail(ACLNN_ERR_RUNTIME_ERROR, TextCode::runtime_state,
                "{}: stream is null and no device is set in this thread, so there is no default stream; call "
                "aclrtSetDevice",
                call->function);
  }
  runtime::Stream& stream = **found;
  MOEYARD_TRY(call->open(stream));
  const bool tiny = call->plan().tiny;
  const Run run{call->function, static_cast<std::byte*>(workspace), stream.device()};
  runtime::Task task{call->function, [call = std::move(call), run]() {
                       return dumping() ? run_dumped(*call, run) : call->run(run);
                     }};
  return tiny ? stream.submit_or_run(std::move(task)) : stream.submit(std::move(task));
}

// `check_again`: addresses may not be those that phase one saw.
Status check_and_submit(std::unique_ptr<PlannedCall>& call, bool check_again, void* workspace,
                        std::uint64_t workspace_size, aclrtStream stream) {
  MOEYARD_TRY(check_workspace(*call, workspace, workspace_size));
  if (check_again) {
    MOEYARD_TRY(check_addresses(call->function, call->contract, call->args(), true));
    MOEYARD_TRY(check_overlaps(call->function, call->contract, call->args()));
  }
  return submit(call, workspace, stream);
}

// The executors that a thread made last. One that was never run, as happens to those of plugins that are set up again and
// again, is freed when 1024 newer ones exist, which were not run at once: the program cannot know of it any more, and memory must not grow for ever.
class Recent {
 public:
  void add(aclOpExecutor* executor) {
    if (ring_.empty()) ring_.resize(kKept);
    executor->number = thread_ + count_;
    Entry& oldest = ring_[count_ % kKept];
    if (oldest.executor != nullptr) reclaim(oldest);
    oldest = {executor, executor->number};
    ++count_;
  }

  // Of an executor that is used up, so that the next one takes its place. Other threads' executors are left alone.
  void remove(const aclOpExecutor& executor) {
    const std::uint64_t age = thread_ + count_ - executor.number;
    if (age == 0 || age > kKept) return;
    Entry& entry = ring_[(executor.number - thread_) % kKept];
    if (entry.executor != &executor) return;
    entry = {};
    if (age == 1) --count_;
  }

 private:
  static constexpr std::size_t kKept = 1024;
  struct Entry {
    aclOpExecutor* executor = nullptr;
    std::uint64_t number = 0;
  };

  // Unless it was run or freed since; its address may then be that of another one.
  static void reclaim(const Entry& entry) {
    const std::lock_guard lock(mutex_of(entry.executor));
    if (!is_live_handle(entry.executor) || entry.executor->number != entry.number ||
        entry.executor->repeatable)
      return;
    log_debug("{}: an executor that was not run is freed, as {} newer ones exist",
              entry.executor->call->function, kKept);
    free_executor(entry.executor);
  }

  static std::uint64_t next_thread() {
    static std::atomic<std::uint64_t> threads{0};
    return threads.fetch_add(1, std::memory_order_relaxed) << 40;
  }

  const std::uint64_t thread_ = next_thread();
  std::uint64_t count_ = 0;
  std::vector<Entry> ring_;
};

Recent& recent() {
  thread_local Recent of_thread;
  return of_thread;
}

}  // namespace

aclOpExecutor* make_executor(std::unique_ptr<PlannedCall> call) {
  auto executor = std::make_unique<aclOpExecutor>();
  executor->removals = runtime::block_map().removals();
  executor->addresses_changed = has_null_address(call->contract, call->args());
  executor->call = std::move(call);
  remember_handle(executor.get());
  recent().add(executor.get());
  if (tracing()) [[unlikely]]
    trace_bar("phase one", executor->call->function, phase_one_began_ns);
  return executor.release();
}

std::mutex& mutex_of(const aclOpExecutor* executor) {
  struct alignas(64) Shard {
    std::mutex mutex;
  };
  static auto* shards = new std::array<Shard, 64>;  // executors outlive static objects of the program
  return (*shards)[(reinterpret_cast<std::uintptr_t>(executor) >> 6) % shards->size()].mutex;
}

Status check_executor(const char* function, const aclOpExecutor* executor, std::int32_t not_live) {
  if (executor == nullptr)
    return fail(ACLNN_ERR_INNER_NULLPTR, TextCode::operator_parameter,
                "{}: executor is null; pass what the first phase returned", function);
  if (is_live_handle(executor)) return {};
  return fail(not_live, TextCode::operator_parameter,
              "{}: executor {} is not a live executor; an executor is used up by its second phase unless "
              "aclSetAclOpExecutorRepeatable was called, so run the first phase again",
              function, static_cast<const void*>(executor));
}

void free_executor(aclOpExecutor* executor) {
  forget_handle(executor);
  delete executor;
}

aclnnStatus run_call(const char* function, void* workspace, std::uint64_t workspace_size,
                     aclOpExecutor* executor, aclrtStream stream) noexcept {
  const TraceSpan span("phase two", function);
  return c_boundary<AclnnApi, aclnnStatus>(function, [&]() -> Status {
    if (executor == nullptr)
      return fail(ACLNN_ERR_PARAM_NULLPTR, TextCode::operator_parameter,
                  "{}: executor is null; pass what {}GetWorkspaceSize returned", function, function);
    std::unique_lock lock(mutex_of(executor));
    MOEYARD_TRY(check_executor(function, executor, ACLNN_ERR_INNER_NULLPTR));
    if (std::strcmp(executor->call->function, function) != 0)
      return fail(ACLNN_ERR_PARAM_INVALID, TextCode::operator_parameter,
                  "{}: executor was made by {}GetWorkspaceSize but must come from {}GetWorkspaceSize",
                  function, executor->call->function, function);
    const bool check_again = must_check_addresses(*executor);
    std::unique_ptr<PlannedCall> call =
        executor->repeatable ? executor->call->clone() : std::move(executor->call);
    if (!executor->repeatable) {
      recent().remove(*executor);
      free_executor(executor);
    }
    lock.unlock();
    Status submitted = check_and_submit(call, check_again, workspace, workspace_size, stream);
    if (call && !submitted.ok()) call->refused(submitted);
    return submitted;
  });
}

}  // namespace moeyard::executor
