// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// Combine in two halves. The first one is work of this rank alone: it takes down which slot each of its rows belongs to
// (commCmdInfoOut). The second one is combine; how many rows a rank holds is told by those whose tokens they come from.
#pragma once
#include <memory>

#include "ops/dispatch/combine.h"
#include "ops/dispatch/split_messages.h"

namespace moeyard::ops {

// aclnnMoeDistributeCombineSetup, see its header. expand_x, expert_ids, assist_info; quant_expand_x, comm_cmd_info.
struct CombineSetup {
  using Args = CombineArgs;
  using Session = std::shared_ptr<comm::Group>;
  struct Plan : executor::PlanBase {};
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static void refused(const char* function, const Args& args, const Status& why);
  static Result<Session> open(const char* function, const Args& args, const Plan& plan,
                              runtime::Stream& stream);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan, Session& group);
};

// aclnnMoeDistributeCombineTeardown, see its header. expand_x, expert_ids, expand_idx, expert_scales, comm_cmd_info, active_mask,
// shared_expert_x; x_out.
struct CombineTeardown : Combine {
  static const contract::Contract kContract;
  static void refused(const char* function, const Args& args, const Status& why);
  static Result<Session> open(const char* function, const Args& args, const Plan& plan,
                              runtime::Stream& stream);
};

// Sizes of the outputs of Setup, in elements, for parameters that it would accept; else what it says of them.
struct SplitCombineSizes {
  std::int64_t message = 0, commands = 0;
};
Result<SplitCombineSizes> checked_sizes(const char* function, CombineArgs args);

// For Combine::run: 507015 where commCmdInfo does not come from a Setup of the same call, or expandIdx not from the dispatch whose
// slots go to `targets` [BS * slots per token].
Status check_commands(const char* function, const CombineArgs& args, std::span<const Target> targets);

}  // namespace moeyard::ops
