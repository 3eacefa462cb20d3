// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/dispatch/barrier.h"

#include "base/errors.h"
#include "comm/registry.h"
#include "ops/dispatch/ep_members.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using A = BarrierArgs;

constexpr const char* kOperator = "DistributeBarrier";
constexpr Dtypes kIntegers =
    kINT8 | kUINT8 | only(ACL_INT16) | only(ACL_UINT16) | kINT32 | only(ACL_UINT32) | kINT64 | kUINT64;
constexpr Dtypes kSmall = kHIF8 | kE5M2 | kE4M3 | kE2M1 | kE1M2 | kINT4;

constexpr Param kParams[] = {
    in<&A::x_ref>("xRef", kHalves | kFP32 | kBOOL | kIntegers | kSmall, "",
                  "ties the call to others; neither read nor written")
        .any_format(),
    in<&A::time_out>("timeOut", kINT32, "1", "microseconds; null: the communicator's limit").optional(),
    in<&A::elastic_info>("elasticInfo", kINT32, "4 + 2*W", "ranks that are left of the group").optional(),
    attribute<&A::group>("group", "name of the communicator"),
    attribute<&A::world_size>("worldSize", "ranks of the group"),
};

constexpr Dim kDims[] = {
    dim<A>("W", "ranks of the group", [](const A& a) { return a.world_size; }),
};

constexpr auto kRules = std::to_array<Rule>({
    rule<A>(
        Stage::nulls, kEverywhere, "group", "not be null", [](const A& a) { return a.has_group; },
        "pass what HcclGetCommName gives", ACLNN_ERR_PARAM_NULLPTR),
    rule<A>(
        Stage::strings, kEverywhere, "group", "have 1 to 127 characters",
        [](const A& a) { return !a.group.empty() && a.group.size() < 128; },
        "pass what HcclGetCommName gives", ACLNN_ERR_PARAM_INVALID),
    rule<A>(
        Stage::attributes, kA3, "xRef", "not be of FP8, HIFLOAT8, FP4 or INT4 on this product",
        [](const A& a) { return !kSmall.has(a.x_ref.dtype); }, {}, ACLNN_ERR_PARAM_INVALID),
    rule<A>(Stage::attributes, kHost, "worldSize", "be in [1, 2^31 - 1]",
            [](const A& a) { return 1 <= a.world_size && a.world_size <= INT32_MAX; }),
    rule<A>(Stage::attributes, kA3, "worldSize", "be in [2, 384]",
            [](const A& a) { return 2 <= a.world_size && a.world_size <= 384; }),
    rule<A>(Stage::attributes, k950, "worldSize", "be in [2, 1024]",
            [](const A& a) { return 2 <= a.world_size && a.world_size <= 1024; }),
    rule<A>(
        Stage::attributes, kEverywhere, "worldSize", "be the number of ranks of group",
        [](const A& a) {
          const auto group = comm::find_group(a.group);
          return !group || group->size == a.world_size;
        },
        "pass what HcclGetRankSize gives"),
});

// Waits of this call end when timeOut says, in whole milliseconds, the unit of waits.
Status limit_waits(const char* function, const A& args, comm::Exchange& exchange) {
  if (!args.time_out.present()) return {};
  const std::int64_t microseconds = args.time_out.at<std::int32_t>(0);
  if (microseconds <= 0)
    return wrong_data(function,
                      "timeOut[0] is {} but must be above 0, microseconds; pass null for the communicator's "
                      "limit",
                      microseconds);
  exchange.limit_waits(std::chrono::milliseconds((microseconds + 999) / 1000));
  return {};
}

}  // namespace

const Contract Barrier::kContract{{
    .name = "DistributeBarrier",
    .family = "dispatch",
    .summary = "Waits until all ranks of a group have come.",
    .source = "aclnnDistributeBarrierV2",
    .products = kHost | kA3 | k950,
    .codes = {.shape = ACLNN_ERR_INNER_TILING_ERROR, .rule = ACLNN_ERR_INNER_TILING_ERROR},
    .params = kParams,
    .dims = kDims,
    .rules = kRules,
}};

Result<Barrier::Plan> Barrier::plan(const char* function, const Args& args) {
  if (!comm::find_group(args.group))
    return fail(
        ACLNN_ERR_PARAM_INVALID, TextCode::operator_parameter,
        "{}: group not found: group is \"{}\" but must name a live communicator of this process; pass what "
        "HcclGetCommName gives and keep the communicator until the work is done",
        function, args.group);
  Plan plan;
  Scratch scratch;
  if (args.elastic_info.present()) plan.members = scratch.add<std::int32_t>(args.world_size);
  plan.workspace_bytes = scratch.bytes();
  return plan;
}

void Barrier::refused(const char* /*function*/, const Args& args, const Status& why) {
  if (const auto group = comm::find_rank(args.group, runtime::current_device()))
    group->post_refusal(group->rank(), kOperator, why.message());
}

Result<comm::Exchange> Barrier::open(const char* function, const Args& args, const Plan& /*plan*/,
                                     runtime::Stream& stream) {
  auto group = comm::find_rank(args.group, stream.device());
  if (group == nullptr)
    return fail(
        ACLNN_ERR_PARAM_INVALID, TextCode::operator_parameter,
        "{}: stream belongs to device {} but must belong to the device of a rank of group \"{}\"; use a "
        "stream of such a device",
        function, stream.device(), args.group);
  return comm::Exchange(std::move(group), kOperator);
}

Status Barrier::run(const executor::Run& run, const Args& args, const Plan& plan, Session& exchange) {
  if (Status wrong = limit_waits(run.function, args, exchange); !wrong.ok()) {
    exchange.group().post_refusal(exchange.group().rank(), kOperator, wrong.message());
    return wrong;
  }
  MOEYARD_TRY(meet_those_left(run.function, kOperator, args.elastic_info, plan.members.span_in(run.workspace),
                              exchange));
  return leave_members(kOperator, args.group, run.device, args.elastic_info, exchange.finish());
}

}  // namespace moeyard::ops
