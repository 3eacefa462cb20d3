// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// Dispatch in two halves. The first one is work of this rank alone: it makes the rows of all slots (yOut) and decides where they
// go (commCmdInfoOut). The second one is dispatch, with rows and places that are known.
#pragma once
#include <memory>

#include "ops/dispatch/dispatch.h"
#include "ops/dispatch/split_messages.h"

namespace moeyard::ops {

// aclnnMoeDistributeDispatchSetup, see its header. x, expert_ids, scales, active_mask; y, expand_idx, comm_cmd_info.
struct DispatchSetup {
  using Args = DispatchArgs;
  using Session = std::shared_ptr<comm::Group>;
  struct Plan : executor::PlanBase {
    explicit Plan(const EpLayout& layout) : layout(layout) {}
    EpLayout layout;
    SlotPolicy policy{};
    DispatchMessage message{};
    RowMaker rows;
    DenseRows y;
    Part<Target> targets;            // [BS * slots per token]
    Part<std::int32_t> counts;       // [destinations]
    Part<std::byte*> place_of_slot;  // [BS * slots per token]
  };
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static void refused(const char* function, const Args& args, const Status& why);
  static Result<Session> open(const char* function, const Args& args, const Plan& plan,
                              runtime::Stream& stream);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan, Session& group);
};

// aclnnMoeDistributeDispatchTeardown, see its header. x, y, expert_ids, comm_cmd_info; expand_x, dynamic_scales, assist_info,
// expert_token_nums.
struct DispatchTeardown : Dispatch {
  static const contract::Contract kContract;
  static void refused(const char* function, const Args& args, const Status& why);
  static Result<Session> open(const char* function, const Args& args, const Plan& plan,
                              runtime::Stream& stream);
};

// Sizes of the outputs of both, in elements, for parameters that Setup would accept; else what it says of them.
struct SplitDispatchSizes {
  std::int64_t message = 0, expand_idx = 0, assist_info = 0, commands = 0;
};
Result<SplitDispatchSizes> checked_sizes(const char* function, DispatchArgs args);

// For Dispatch::run: reads where the slots go, targets [BS * slots per token] and counts [destinations]. Fails with 507015 where
// commCmdInfo does not come from a Setup of the same call.
Status read_commands(const char* function, const DispatchArgs& args, const EpLayout& layout,
                     std::span<Target> targets, std::span<std::int32_t> counts);

}  // namespace moeyard::ops
