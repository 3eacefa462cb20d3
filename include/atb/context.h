// Moeyard. SPDX-License-Identifier: Apache-2.0
#ifndef ATB_CONTEXT_H
#define ATB_CONTEXT_H

#include <acl/acl.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "atb/types.h"

namespace atb {

enum ExecuteType : int {
  EXECUTE_NORMAL = 0,
  EXECUTE_PRELAUNCH,  // Execute checks and takes the addresses, and queues nothing
  EXECUTE_LAUNCH,     // Execute queues what was prepared
};

enum LaunchMode : int {
  KERNEL_LAUNCH_MODE = 0,
  GRAPH_LAUNCH_MODE,  // after the first Execute the shapes of an operation must not change
};

// The streams that operations run on. Not to be shared by threads.
class Context {
 public:
  Context() = default;
  virtual ~Context() = default;

  // Stream 0. Null until set, and then Execute fails.
  virtual Status SetExecuteStream(aclrtStream stream) = 0;
  virtual aclrtStream GetExecuteStream() const = 0;

  // Only kept: nothing is copied to a device here.
  virtual Status SetAsyncTilingCopyStatus(bool enable) = 0;
  virtual bool GetAsyncTilingCopyStatus() const = 0;

  // All streams, at least one.
  virtual Status SetExecuteStreams(const std::vector<aclrtStream>& streams) = 0;
  virtual std::vector<aclrtStream> GetExecuteStreams() = 0;

  // Of the calling thread, for all contexts.
  virtual Status SetExecuteType(ExecuteType type) = 0;
  virtual ExecuteType GetExecuteType() = 0;

  virtual Status SetLaunchMode(LaunchMode mode) = 0;
  virtual LaunchMode GetLaunchMode() = 0;
};

Status CreateContext(Context** context);

// alloc and dealloc: both or none.
Status CreateContext(Context** context, const std::function<void*(size_t)>& alloc,
                     const std::function<void(void*)>& dealloc);

// hostTilingBlockNum in [128, 1024], deviceTilingBlockNum in [32, 1024]; no such blocks are needed here.
Status CreateContext(Context** context, uint32_t hostTilingBlockNum, uint32_t deviceTilingBlockNum);

// Null is fine. Streams are left alone; they may be destroyed before or after.
Status DestroyContext(Context* context);

}  // namespace atb
#endif  // ATB_CONTEXT_H
