// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/dispatch/split_combine.h"

#include <algorithm>

#include "base/errors.h"
#include "ops/dispatch/ep_group.h"
#include "ops/dispatch/ep_rules.h"

namespace moeyard::ops {
namespace {

constexpr const char* kTeardown = "MoeDistributeCombineTeardown";  // where the ranks meet
constexpr std::int64_t kMagic = 0x4D6F4363;

Commands::Stamp stamp_of(const CombineArgs& a) {
  return {kMagic, a.bs(), a.topk(), a.hidden(), a.comm_quant_mode, a.moe_expert_num, a.ep_rank_id};
}

}  // namespace

Result<SplitCombineSizes> checked_sizes(const char* function, CombineArgs args) {
  // Outputs as they should be: what is wrong then are the other parameters.
  SplitCombineSizes sizes;
  std::int64_t rows = 0;
  if (ep_rules::can_be_sized(args)) {
    rows = ep_rules::capacity(args);
    sizes = {combine_message_elements(args.hidden()), Commands::kWords * (rows + args.ep_world_size)};
  }
  args.quant_expand_x = assumed_output(ACL_INT8, {rows, sizes.message});
  args.comm_cmd_info = assumed_output(ACL_INT32, {sizes.commands});
  MOEYARD_TRY(contract::check(CombineSetup::kContract, function, &args));
  return sizes;
}

Result<CombineSetup::Plan> CombineSetup::plan(const char* function, const Args& args) {
  const comm::Limits limits = MOEYARD_TRY(find_ep_group(function, args));
  MOEYARD_TRY(check_window(function, args, limits, args.bs(), args.topk(), args.hidden()));
  return Plan{};
}

void CombineSetup::refused(const char* /*function*/, const Args& args, const Status& why) {
  refuse_in_group(kTeardown, args, why);
}

Result<CombineSetup::Session> CombineSetup::open(const char* function, const Args& args, const Plan& /*plan*/,
                                                 runtime::Stream& stream) {
  return rank_of_stream(function, args, stream);
}

Status CombineSetup::run(const executor::Run& /*run*/, const Args& args, const Plan& /*plan*/,
                         Session& /*group*/) {
  const Commands commands(args.comm_cmd_info);
  const std::int64_t rows = std::min({commands.count(), args.expand_x.dim(0), args.assist_info.dim(0) / 3});
  // Rows behind those that dispatch has received have no slot: nobody asks for them.
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t i = 0; i < 3; ++i)
      commands.word(row, i) = args.assist_info.at<std::int32_t>(3 * row + i);
  commands.stamp(stamp_of(args));
  return {};
}

Status check_commands(const char* function, const CombineArgs& args, std::span<const Target> targets) {
  if (!Commands(args.comm_cmd_info).has_stamp(stamp_of(args)))
    return wrong_data(function,
                      "commCmdInfo is not what aclnnMoeDistributeCombineSetup has written with the same "
                      "parameters; pass its commCmdInfoOut as it is, after it has succeeded");
  const std::int64_t per_token = args.bs() == 0 ? 0 : static_cast<std::int64_t>(targets.size()) / args.bs();
  for (std::int64_t t = 0; t < args.bs(); ++t)
    for (std::int64_t k = 0; k < args.topk(); ++k) {
      const Target& target = targets[static_cast<std::size_t>(t * per_token + k)];
      const std::int32_t index = args.expand_idx.at<std::int32_t>(t * args.topk() + k);
      if (target.destination >= 0 && index != target.index)
        return wrong_data(
            function,
            "expandIdx[{}], of token {}, slot {}, is {} but must be {}, the slots before it that "
            "go to the same expert; pass expandIdxOut, expertIds and mask of one "
            "aclnnMoeDistributeDispatchSetup",
            t * args.topk() + k, t, k, index, target.index);
    }
  return {};
}

void CombineTeardown::refused(const char* /*function*/, const Args& args, const Status& why) {
  refuse_in_group(kTeardown, args, why);
}

Result<EpSession> CombineTeardown::open(const char* function, const Args& args, const Plan& /*plan*/,
                                        runtime::Stream& stream) {
  return open_in_groups(function, kTeardown, args, stream);
}

}  // namespace moeyard::ops
