// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// What the ranks of a group do when some of them may have gone: probe who reaches whom, and clear what is left of earlier
// calls, before dispatch and combine go on with elasticInfo. The words that probes leave lie at the end of each rank's window.
#pragma once
#include <optional>

#include "comm/group.h"
#include "executor/call.h"
#include "ops/scratch.h"

namespace moeyard::ops {

// The name and size of a group, first base of the argument structs below.
struct LinkAttributes {
  bool has_group = false;  // null is another error than a wrong length
  std::string group;
  std::int64_t world_size = 0;
};

// aclnnMoeDistributeBufferReset, see its header.
struct BufferResetArgs : LinkAttributes {
  TensorView elastic_info;
  std::int64_t need_sync = 0;
};
struct BufferReset {
  using Args = BufferResetArgs;
  struct Session {
    std::shared_ptr<comm::Group> group;
    std::optional<comm::Exchange> sync;
  };
  struct Plan : executor::PlanBase {
    Part<std::int32_t> members;  // [W] ranks to meet
  };
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static void refused(const char* function, const Args& args, const Status& why);
  static Result<Session> open(const char* function, const Args& args, const Plan& plan,
                              runtime::Stream& stream);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan, Session& session);
};

// What needs the windows of a group but meets nobody.
struct OnOneRank {
  using Session = std::shared_ptr<comm::Group>;
  struct Plan : executor::PlanBase {};
  static Result<Plan> plan(const char* function, const LinkAttributes& args);
  static Result<Session> open(const char* function, const LinkAttributes& args, const Plan& plan,
                              runtime::Stream& stream);
};

// aclnnElasticReceivableTest, see its header.
struct ReceivableTestArgs : LinkAttributes {
  TensorView dst_rank;
  std::int64_t rank_num = 0;
};
struct ReceivableTest : OnOneRank {
  using Args = ReceivableTestArgs;
  static const contract::Contract kContract;
  static Status run(const executor::Run& run, const Args& args, const Plan& plan, Session& group);
};

// aclnnElasticReceivableInfoCollect, see its header.
struct ReceivableInfoArgs : LinkAttributes {
  TensorView y;
};
struct ReceivableInfo : OnOneRank {
  using Args = ReceivableInfoArgs;
  static const contract::Contract kContract;
  static Status run(const executor::Run& run, const Args& args, const Plan& plan, Session& group);
};

}  // namespace moeyard::ops
