// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <vector>

#include "atb/context.h"

namespace moeyard::atb_layer {

// Of the calling thread, whichever context it was set through.
atb::ExecuteType execute_type();

class ContextImpl final : public atb::Context {
 public:
  ContextImpl() = default;
  ~ContextImpl() override = default;

  atb::Status SetExecuteStream(aclrtStream stream) override;
  aclrtStream GetExecuteStream() const override { return streams_[0]; }
  atb::Status SetAsyncTilingCopyStatus(bool enable) override;
  bool GetAsyncTilingCopyStatus() const override { return async_copies_; }
  atb::Status SetExecuteStreams(const std::vector<aclrtStream>& streams) override;
  std::vector<aclrtStream> GetExecuteStreams() override { return streams_; }
  atb::Status SetExecuteType(atb::ExecuteType type) override;
  atb::ExecuteType GetExecuteType() override { return execute_type(); }
  atb::Status SetLaunchMode(atb::LaunchMode mode) override;
  atb::LaunchMode GetLaunchMode() override { return launch_mode_; }

  // Null if there is no such stream.
  aclrtStream stream(std::uint32_t id) const { return id < streams_.size() ? streams_[id] : nullptr; }
  std::size_t streams() const { return streams_.size(); }

  // Memory from the program's own allocator, if it gave one.
  void adopt(void* memory, const std::function<void(void*)>& dealloc);
  void close();  // gives it back; no stream is left

 private:
  std::vector<aclrtStream> streams_ = {nullptr};
  atb::LaunchMode launch_mode_ = atb::KERNEL_LAUNCH_MODE;
  bool async_copies_ = false;
  void* memory_ = nullptr;
  std::function<void(void*)> dealloc_;
};

// The context if it is alive, else null.
ContextImpl* find_context(atb::Context* context);

}  // namespace moeyard::atb_layer
