// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "atb/context_impl.h"

#include <deque>
#include <memory>
#include <mutex>
#include <unordered_set>

#include "atb/failure.h"

namespace moeyard::atb_layer {
namespace {

using atb::Status;

thread_local atb::ExecuteType thread_type = atb::EXECUTE_NORMAL;

constexpr std::size_t kRemembered = 64;

// Contexts that are alive, and the last ones that were destroyed: they have no streams any more, but a program's own operation
// may ask them for one.
struct Registry {
  std::mutex mutex;
  std::unordered_set<atb::Context*> alive;
  std::deque<std::unique_ptr<ContextImpl>> destroyed;
};
Registry& registry() {
  static auto* made = new Registry;  // contexts may outlive static objects
  return *made;
}

constexpr std::size_t kAllocation = 512;  // bytes, see docs/choices.md

Status create(atb::Context** context, const std::function<void*(std::size_t)>& alloc,
              const std::function<void(void*)>& dealloc) {
  auto made = std::make_unique<ContextImpl>();
  if (alloc) {
    void* memory = alloc(kAllocation);
    if (memory == nullptr)
      return fail(atb::ERROR_OUT_OF_DEVICE_MEMORY, "CreateContext: alloc returned null for %zu bytes",
                  kAllocation);
    made->adopt(memory, dealloc);
  }
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.alive.insert(made.get());
  *context = made.release();
  return atb::NO_ERROR;
}

Status check_pointer(atb::Context** context) {
  if (context != nullptr) return atb::NO_ERROR;
  return fail(atb::ERROR_INVALID_PARAM, "CreateContext: context is null; pass the address of a variable");
}

}  // namespace

atb::ExecuteType execute_type() { return thread_type; }

ContextImpl* find_context(atb::Context* context) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  return all.alive.count(context) != 0 ? static_cast<ContextImpl*>(context) : nullptr;
}

Status ContextImpl::SetExecuteStream(aclrtStream stream) {
  streams_[0] = stream;
  return atb::NO_ERROR;
}

Status ContextImpl::SetExecuteStreams(const std::vector<aclrtStream>& streams) {
  if (streams.empty())
    return fail(atb::ERROR_INVALID_PARAM,
                "SetExecuteStreams: streams has no member; pass one stream or more");
  streams_ = streams;
  return atb::NO_ERROR;
}

Status ContextImpl::SetAsyncTilingCopyStatus(bool enable) {
  async_copies_ = enable;
  return atb::NO_ERROR;
}

Status ContextImpl::SetExecuteType(atb::ExecuteType type) {
  if (type < atb::EXECUTE_NORMAL || type > atb::EXECUTE_LAUNCH)
    return fail(atb::ERROR_INVALID_PARAM,
                "SetExecuteType: type is %d but must be EXECUTE_NORMAL, EXECUTE_PRELAUNCH or EXECUTE_LAUNCH",
                static_cast<int>(type));
  thread_type = type;
  return atb::NO_ERROR;
}

Status ContextImpl::SetLaunchMode(atb::LaunchMode mode) {
  if (mode != atb::KERNEL_LAUNCH_MODE && mode != atb::GRAPH_LAUNCH_MODE)
    return fail(atb::ERROR_INVALID_PARAM,
                "SetLaunchMode: mode is %d but must be KERNEL_LAUNCH_MODE or GRAPH_LAUNCH_MODE",
                static_cast<int>(mode));
  launch_mode_ = mode;
  return atb::NO_ERROR;
}

void ContextImpl::adopt(void* memory, const std::function<void(void*)>& dealloc) {
  memory_ = memory;
  dealloc_ = dealloc;
}

void ContextImpl::close() {
  streams_.assign(1, nullptr);
  if (memory_ != nullptr) dealloc_(memory_);
  memory_ = nullptr;
  dealloc_ = nullptr;
}

}  // namespace moeyard::atb_layer

namespace atb {

using namespace moeyard::atb_layer;

Status CreateContext(Context** context) {
  try {
    MOEYARD_ATB_TRY(check_pointer(context));
    return create(context, {}, {});
  } catch (...) {
    return caught(ERROR_OUT_OF_HOST_MEMORY, "Context", "CreateContext");
  }
}

Status CreateContext(Context** context, const std::function<void*(size_t)>& alloc,
                     const std::function<void(void*)>& dealloc) {
  try {
    MOEYARD_ATB_TRY(check_pointer(context));
    if (!alloc != !dealloc)
      return fail(ERROR_INVALID_PARAM, "CreateContext: %s is empty; pass both functions, or neither",
                  alloc ? "dealloc" : "alloc");
    return create(context, alloc, dealloc);
  } catch (...) {
    return caught(ERROR_OUT_OF_HOST_MEMORY, "Context", "CreateContext");
  }
}

Status CreateContext(Context** context, uint32_t hostTilingBlockNum, uint32_t deviceTilingBlockNum) {
  MOEYARD_ATB_TRY(check_pointer(context));
  if (hostTilingBlockNum < 128 || hostTilingBlockNum > 1024)
    return fail(ERROR_INVALID_PARAM, "CreateContext: hostTilingBlockNum is %u but must be in [128, 1024]",
                hostTilingBlockNum);
  if (deviceTilingBlockNum < 32 || deviceTilingBlockNum > 1024)
    return fail(ERROR_INVALID_PARAM, "CreateContext: deviceTilingBlockNum is %u but must be in [32, 1024]",
                deviceTilingBlockNum);
  return CreateContext(context);
}

Status DestroyContext(Context* context) {
  if (context == nullptr) return NO_ERROR;
  try {
    Registry& all = registry();
    std::unique_ptr<ContextImpl> dying;
    {
      const std::lock_guard lock(all.mutex);
      if (all.alive.erase(context) == 0)
        return fail(ERROR_INVALID_CONTEXT_ADDR,
                    "DestroyContext: %p is no context that is alive; CreateContext makes one, and it is "
                    "destroyed once",
                    static_cast<void*>(context));
      dying.reset(static_cast<ContextImpl*>(context));
    }
    dying->close();
    const std::lock_guard lock(all.mutex);
    all.destroyed.push_back(std::move(dying));
    if (all.destroyed.size() > kRemembered) all.destroyed.pop_front();
    return NO_ERROR;
  } catch (...) {
    return caught(ERROR_OUT_OF_HOST_MEMORY, "Context", "DestroyContext");
  }
}

}  // namespace atb
