// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/dispatch/split_dispatch.h"

#include <algorithm>
#include <cstring>

#include "base/errors.h"
#include "base/parallel.h"
#include "ops/dispatch/ep_group.h"
#include "ops/dispatch/ep_rules.h"

namespace moeyard::ops {
namespace {

constexpr std::int64_t kBytesPerTask = 256 * 1024;  // of rows: some 20 us of writing
constexpr std::int64_t kStreamedBytes = 8 * 1024 * 1024;
constexpr const char* kTeardown = "MoeDistributeDispatchTeardown";  // where the ranks meet
constexpr std::int64_t kMagic = 0x4D6F4471;

Commands::Stamp stamp_of(const DispatchArgs& a) {
  return {kMagic, a.bs(), a.topk(), a.hidden(), a.quant_mode, a.moe_expert_num, a.ep_rank_id};
}

SplitDispatchSizes sizes_of(const DispatchArgs& a) {
  const EpLayout layout(a);
  const std::int64_t slots = a.bs() * (a.topk() + layout.shared_experts());
  return {dispatch_message(a.quant_mode, a.hidden()).elements, a.bs() * a.topk(), ep_rules::capacity(a) * 128,
          Commands::kWords * (slots + a.ep_world_size * layout.experts_on(a.ep_rank_id))};
}

}  // namespace

Result<SplitDispatchSizes> checked_sizes(const char* function, DispatchArgs args) {
  // Outputs as they should be: what is wrong then are the other parameters.
  const SplitDispatchSizes sizes = ep_rules::can_be_sized(args) ? sizes_of(args) : SplitDispatchSizes{};
  const aclDataType rows = args.quant_mode == 0  ? args.x.dtype
                           : args.quant_mode < 3 ? ACL_INT8
                                                 : ACL_FLOAT8_E4M3FN;
  const std::int64_t slots =
      ep_rules::can_be_sized(args) ? args.bs() * (args.topk() + EpLayout(args).shared_experts()) : 0;
  args.y = assumed_output(args.x.present() ? rows : ACL_FLOAT16, {slots, sizes.message});
  args.expand_idx = assumed_output(ACL_INT32, {sizes.expand_idx});
  args.comm_cmd_info = assumed_output(ACL_INT32, {sizes.commands});
  MOEYARD_TRY(contract::check(DispatchSetup::kContract, function, &args));
  return sizes;
}

Result<DispatchSetup::Plan> DispatchSetup::plan(const char* function, const Args& args) {
  const comm::Limits limits = MOEYARD_TRY(find_ep_group(function, args));
  MOEYARD_TRY(check_window(function, args, limits, args.bs(), args.topk(), args.hidden()));
  Plan plan{EpLayout(args)};
  plan.policy = slot_policy();
  plan.message = dispatch_message(args.quant_mode, args.hidden());
  const std::int64_t slots = args.bs() * (args.topk() + plan.layout.shared_experts());
  Scratch scratch;
  plan.rows = RowMaker(args, slots, scratch);
  plan.y = DenseRows(args.y, slots, scratch);
  plan.targets = scratch.add<Target>(slots);
  plan.counts = scratch.add<std::int32_t>(plan.layout.destinations());
  plan.place_of_slot = scratch.add<std::byte*>(slots);
  plan.workspace_bytes = scratch.bytes();
  return plan;
}

void DispatchSetup::refused(const char* /*function*/, const Args& args, const Status& why) {
  refuse_in_group(kTeardown, args, why);
}

Result<DispatchSetup::Session> DispatchSetup::open(const char* function, const Args& args,
                                                   const Plan& /*plan*/, runtime::Stream& stream) {
  return rank_of_stream(function, args, stream);
}

Status DispatchSetup::run(const executor::Run& run, const Args& args, const Plan& plan, Session& group) {
  const Commands commands(args.comm_cmd_info);
  Slots slots(args.expert_ids, args.active_mask, plan.layout, args.ep_rank_id, plan.policy);
  const auto targets = plan.targets.span_in(run.workspace);
  if (Status wrong = slots.scan(run.function, targets, plan.counts.span_in(run.workspace)); !wrong.ok()) {
    commands.spoil_stamp();  // whatever it holds of an earlier call
    group->post_refusal(group->rank(), kTeardown, wrong.message());
    return wrong;
  }
  const std::int64_t per_token = slots.per_token();
  const auto slot_count = static_cast<std::int64_t>(targets.size());
  const std::int64_t row_work = per_token * bytes_of(args.y.dtype, args.hidden());
  plan.rows.gather(args, run.workspace);
  plan.y.gather(args.y, slot_count, run.workspace);  // rows that nobody gets keep what they hold
  const Rows y = plan.y.rows(args.y, run.workspace);
  std::byte** places = plan.place_of_slot.in(run.workspace);
  parallel_for(args.bs(), pieces_of(args.bs(), row_work, kBytesPerTask, plan.layout.ranks()),
               [&](Range tokens) {
                 for (std::int64_t s = tokens.begin * per_token; s < tokens.end * per_token; ++s)
                   places[s] = targets[static_cast<std::size_t>(s)].destination < 0 ? nullptr : y[s];
                 plan.rows.write(args, slots, plan.layout, places, tokens,
                                 args.bs() * row_work > kStreamedBytes, run.workspace);
                 for (std::int64_t s = tokens.begin * per_token; s < tokens.end * per_token; ++s) {
                   const Target& target = targets[static_cast<std::size_t>(s)];
                   if (places[s] != nullptr && plan.message.scale_bytes > 0)
                     std::memcpy(places[s] + plan.message.scale_offset,
                                 plan.rows.scales_of(args, s / per_token, s, run.workspace),
                                 static_cast<std::size_t>(plan.message.scale_bytes));
                   commands.word(s, 0) = target.destination;
                   commands.word(s, 1) = target.index;
                 }
               });
  plan.y.scatter(args.y, slot_count, run.workspace);
  for (std::int64_t t = 0; t < slots.active_tokens(); ++t)
    for (std::int64_t k = 0; k < slots.topk(); ++k)
      args.expand_idx.at<std::int32_t>(t * slots.topk() + k) =
          targets[static_cast<std::size_t>(t * per_token + k)].index;
  commands.stamp(stamp_of(args));
  return {};
}

Status read_commands(const char* function, const DispatchArgs& args, const EpLayout& layout,
                     std::span<Target> targets, std::span<std::int32_t> counts) {
  const Commands commands(args.comm_cmd_info);
  if (!commands.has_stamp(stamp_of(args)))
    return wrong_data(function,
                      "commCmdInfo is not what aclnnMoeDistributeDispatchSetup has written with the same "
                      "parameters; pass its commCmdInfoOut as it is, after it has succeeded");
  std::fill(counts.begin(), counts.end(), 0);
  const std::int64_t per_token = args.topk() + layout.shared_experts();
  for (std::int64_t s = 0; s < static_cast<std::int64_t>(targets.size()); ++s) {
    const std::int64_t t = s / per_token, j = s % per_token;
    const std::int32_t destination = commands.word(s, 0), index = commands.word(s, 1);
    Target& target = targets[static_cast<std::size_t>(s)];
    target = {-1, 0};
    if (destination == -1) continue;  // off by the mask, or a special expert
    std::int64_t wanted = -1;
    if (j >= args.topk())
      wanted = layout.destination_of_shared(j - args.topk(), args.ep_rank_id, t, args.bs());
    else if (const std::int32_t id = args.expert_ids.at<std::int32_t>(t, j);
             layout.kind_of(id) == ExpertKind::real)
      wanted = layout.destination_of_expert(id);
    if (destination != wanted || index != counts[static_cast<std::size_t>(wanted)])
      return wrong_data(function,
                        "commCmdInfo sends token {}, slot {} elsewhere than expertIds, which has {} there; "
                        "pass what aclnnMoeDistributeDispatchSetup got and wrote",
                        t, j, j < args.topk() ? args.expert_ids.at<std::int32_t>(t, j) : -1);
    target = {destination, counts[static_cast<std::size_t>(wanted)]++};
  }
  return {};
}

void DispatchTeardown::refused(const char* /*function*/, const Args& args, const Status& why) {
  refuse_in_group(kTeardown, args, why);
}

Result<EpSession> DispatchTeardown::open(const char* function, const Args& args, const Plan& /*plan*/,
                                         runtime::Stream& stream) {
  return open_in_groups(function, kTeardown, args, stream);
}

}  // namespace moeyard::ops
