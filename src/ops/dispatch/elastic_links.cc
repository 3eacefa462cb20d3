// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/dispatch/elastic_links.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <vector>

#include "base/errors.h"
#include "comm/registry.h"
#include "ops/dispatch/ep_rules.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using ep_rules::in_range;
using ep_rules::join;

constexpr const char* kReset = "MoeDistributeBufferReset";

template <class A>
constexpr auto group_rules(std::string_view group, std::string_view size) {
  return std::to_array<Rule>({
      rule<A>(
          Stage::nulls, kEverywhere, group, "not be null", [](const A& a) { return a.has_group; },
          "pass what HcclGetCommName gives", ACLNN_ERR_PARAM_NULLPTR),
      rule<A>(
          Stage::strings, kEverywhere, group, "have 1 to 127 characters",
          [](const A& a) { return in_range(static_cast<std::int64_t>(a.group.size()), 1, 127); },
          "pass what HcclGetCommName gives"),
      rule<A>(Stage::attributes, kEverywhere, size, "be in [1, 2^31 - 1]",
              [](const A& a) { return in_range(a.world_size, 1, ep_rules::kMaxInt32); }),
      rule<A>(
          Stage::attributes, kEverywhere, size, "be the number of ranks of the group",
          [](const A& a) {
            const auto found = comm::find_group(a.group);
            return !found || found->size == a.world_size;
          },
          "pass what HcclGetRankSize gives"),
  });
}

Status check_group(const char* function, const LinkAttributes& a) {
  if (comm::find_group(a.group)) return {};
  return fail(
      ACLNN_ERR_PARAM_INVALID, TextCode::operator_parameter,
      "{}: group not found: \"{}\" must be the name of a live communicator of this process; pass what "
      "HcclGetCommName gives and keep the communicator until the work is done",
      function, a.group);
}

Result<std::shared_ptr<comm::Group>> group_of(const char* function, const LinkAttributes& a,
                                              const runtime::Stream& stream) {
  if (auto group = comm::find_rank(a.group, stream.device())) return group;
  return fail(
      ACLNN_ERR_PARAM_INVALID, TextCode::operator_parameter,
      "{}: stream belongs to device {} but must belong to the device of a rank of group \"{}\"; use a "
      "stream of such a device",
      function, stream.device(), a.group);
}

// The words of a rank, one per rank that may probe it: at the end of its window. Null: it cannot be reached from here.
std::int32_t* words_of(const comm::Exposed& window, std::int64_t ranks) {
  const std::int64_t bytes = ranks * static_cast<std::int64_t>(sizeof(std::int32_t));
  if (window.data == nullptr || window.bytes < bytes) return nullptr;
  return reinterpret_cast<std::int32_t*>(window.data + (window.bytes - bytes) / 64 * 64);
}

// Gives pages back where it can, so that a window which nobody has used stays as small as it is.
void clear(const comm::Exposed& window) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto size = static_cast<std::size_t>(window.bytes);
  if (reinterpret_cast<std::uintptr_t>(window.data) % page == 0 && size % page == 0 &&
      (madvise(window.data, size, MADV_REMOVE) == 0 || madvise(window.data, size, MADV_DONTNEED) == 0))
    return;
  std::memset(window.data, 0, size);
}

}  // namespace

// --- BufferReset -------------------------------------------------------------------------------------------------------

namespace {
using R = BufferResetArgs;
constexpr Param kResetParams[] = {
    in<&R::elastic_info>("elasticInfo", kINT32, "W", "1 for ranks that can be reached, 0 for the others"),
    attribute<&R::group>("groupEp", "name of the expert-parallel group"),
    attribute<&R::world_size>("epWorldSize", "ranks of the group"),
    attribute<&R::need_sync>("needSync", "1: wait until all that can be reached have cleared theirs"),
};
constexpr Dim kResetDims[] = {dim<R>("W", "ranks of the group", [](const R& a) { return a.world_size; })};
constexpr auto kResetRules =
    join(group_rules<R>("groupEp", "epWorldSize"),
         std::to_array<Rule>({
             rule<R>(Stage::attributes, kA3, "epWorldSize", "be a multiple of 16 in [16, 128]",
                     [](const R& a) { return in_range(a.world_size, 16, 128) && a.world_size % 16 == 0; }),
             rule<R>(Stage::attributes, kEverywhere, "needSync", "be 0 or 1",
                     [](const R& a) { return in_range(a.need_sync, 0, 1); }),
         }));
}  // namespace

const Contract BufferReset::kContract{{
    .name = "MoeDistributeBufferReset",
    .family = "dispatch",
    .summary = "Clears what earlier calls have left in a rank's window.",
    .source = "aclnnMoeDistributeBufferReset",
    .products = kHost | kA3,
    .params = kResetParams,
    .dims = kResetDims,
    .rules = kResetRules,
}};

Result<BufferReset::Plan> BufferReset::plan(const char* function, const Args& args) {
  MOEYARD_TRY(check_group(function, args));
  Plan plan;
  Scratch scratch;
  plan.members = scratch.add<std::int32_t>(args.world_size);
  plan.workspace_bytes = scratch.bytes();
  return plan;
}

void BufferReset::refused(const char* /*function*/, const Args& args, const Status& why) {
  if (const auto group = comm::find_rank(args.group, runtime::current_device()))
    group->post_refusal(group->rank(), kReset, why.message());
}

Result<BufferReset::Session> BufferReset::open(const char* function, const Args& args, const Plan& /*plan*/,
                                               runtime::Stream& stream) {
  Session session{MOEYARD_TRY(group_of(function, args, stream)), std::nullopt};
  if (args.need_sync == 1) session.sync.emplace(session.group, kReset);
  return session;
}

Status BufferReset::run(const executor::Run& run, const Args& args, const Plan& plan, Session& session) {
  const auto members = plan.members.span_in(run.workspace);
  const int me = session.group->rank();
  std::size_t count = 0;
  const auto wrong = [&](std::int64_t rank, const char* must) {
    Status status = wrong_data(run.function, "elasticInfo[{}] is {} but must be {}; correct it", rank,
                               args.elastic_info.at<std::int32_t>(rank), must);
    session.group->post_refusal(me, kReset, status.message());
    return status;
  };
  for (std::int64_t rank = 0; rank < args.world_size; ++rank) {
    const std::int32_t reached = args.elastic_info.at<std::int32_t>(rank);
    if (reached != 0 && reached != 1) return wrong(rank, "0 or 1");
    if (reached == 1) members[count++] = static_cast<std::int32_t>(rank);
    if (reached == 0 && rank == me && session.sync) return wrong(rank, "1, as that rank makes this call");
  }
  clear(MOEYARD_TRY(session.group->window(me)));
  if (!session.sync) return {};
  if (count < members.size()) MOEYARD_TRY(session.sync->among(members.first(count)));
  return session.sync->finish();
}

Result<OnOneRank::Plan> OnOneRank::plan(const char* function, const LinkAttributes& args) {
  MOEYARD_TRY(check_group(function, args));
  return Plan{};
}

Result<OnOneRank::Session> OnOneRank::open(const char* function, const LinkAttributes& args,
                                           const Plan& /*plan*/, runtime::Stream& stream) {
  return group_of(function, args, stream);
}

// --- ElasticReceivableTest ---------------------------------------------------------------------------------------------

namespace {
using T = ReceivableTestArgs;
constexpr Param kTestParams[] = {
    in<&T::dst_rank>("dstRank", kINT32, "rankNum", "ranks to send a word to"),
    attribute<&T::group>("group", "name of the communicator"),
    attribute<&T::world_size>("worldSize", "ranks of the group"),
    attribute<&T::rank_num>("rankNum", "elements of dstRank"),
};
constexpr auto kTestRules =
    join(group_rules<T>("group", "worldSize"),
         std::to_array<Rule>({
             rule<T>(Stage::attributes, kA3, "rankNum", "be 16", [](const T& a) { return a.rank_num == 16; }),
             rule<T>(Stage::attributes, kHost, "rankNum", "be at least 0",
                     [](const T& a) { return a.rank_num >= 0; }),
         }));
}  // namespace

const Contract ReceivableTest::kContract{{
    .name = "ElasticReceivableTest",
    .family = "dispatch",
    .summary = "Sends a word to some ranks, to show them that this one reaches them.",
    .source = "aclnnElasticReceivableTest",
    .products = kHost | kA3,
    .params = kTestParams,
    .rules = kTestRules,
}};

namespace {
comm::WindowPiece piece_of(const comm::Exposed& window, std::int64_t rank, std::int32_t* words,
                           std::int64_t count) {
  auto* const begin = reinterpret_cast<std::byte*>(words);
  return {static_cast<std::int32_t>(rank),
          begin - window.data,
          {begin, static_cast<std::size_t>(count) * sizeof(std::int32_t)}};
}
}  // namespace

Status ReceivableTest::run(const executor::Run& run, const Args& args, const Plan& /*plan*/, Session& group) {
  std::vector<comm::WindowPiece> far;  // on other hosts
  for (std::int64_t i = 0; i < args.rank_num; ++i) {
    const std::int64_t rank = args.dst_rank.at<std::int32_t>(i);
    if (!in_range(rank, 0, args.world_size - 1))
      return wrong_data(run.function,
                        "dstRank[{}] is {} but must be in [0, {}), a rank of the group; correct it", i, rank,
                        args.world_size);
  }
  for (std::int64_t i = 0; i < args.rank_num; ++i) {
    const std::int32_t rank = args.dst_rank.at<std::int32_t>(i);
    const auto window = group->window(rank);
    std::int32_t* words = window ? words_of(*window, args.world_size) : nullptr;
    if (words == nullptr) continue;  // not reached, which is what its absence will say
    std::atomic_ref<std::int32_t>(words[group->rank()]).store(group->rank() + 1, std::memory_order_release);
    if (group->is_far(rank)) far.push_back(piece_of(*window, rank, words + group->rank(), 1));
  }
  return far.empty() ? Status() : group->write_window(run.function, far);
}

// --- ElasticReceivableInfoCollect --------------------------------------------------------------------------------------

namespace {
using I = ReceivableInfoArgs;
constexpr Param kInfoParams[] = {
    attribute<&I::group>("group", "name of the communicator"),
    attribute<&I::world_size>("worldSize", "ranks of the group"),
    out<&I::y>("y", kINT32, "W, W", "row i: whose words rank i has, if its own came here, else zeros"),
};
constexpr Dim kInfoDims[] = {dim<I>("W", "ranks of the group", [](const I& a) { return a.world_size; })};
constexpr auto kInfoRules = group_rules<I>("group", "worldSize");
}  // namespace

const Contract ReceivableInfo::kContract{{
    .name = "ElasticReceivableInfoCollect",
    .family = "dispatch",
    .summary = "Collects which ranks have received words of which.",
    .source = "aclnnElasticReceivableInfoCollect",
    .products = kHost | kA3,
    .params = kInfoParams,
    .dims = kInfoDims,
    .rules = kInfoRules,
}};

Status ReceivableInfo::run(const executor::Run& run, const Args& args, const Plan& /*plan*/, Session& group) {
  const auto load = [](std::int32_t& word) {
    return std::atomic_ref<std::int32_t>(word).load(std::memory_order_acquire);
  };
  const comm::Exposed window = MOEYARD_TRY(group->window(group->rank()));
  std::int32_t* mine = words_of(window, args.world_size);
  for (std::int64_t i = 0; i < args.world_size; ++i) {
    std::int32_t* theirs = nullptr;
    if (mine != nullptr && load(mine[i]) != 0) {
      const auto peer = group->window(static_cast<int>(i));
      theirs = peer ? words_of(*peer, args.world_size) : nullptr;
      if (theirs != nullptr && group->is_far(static_cast<int>(i)))
        MOEYARD_TRY(
            group->read_window(run.function, std::array{piece_of(*peer, i, theirs, args.world_size)}));
    }
    for (std::int64_t j = 0; j < args.world_size; ++j)
      args.y.at<std::int32_t>(i, j) = theirs == nullptr ? 0 : load(theirs[j]);
  }
  return {};
}

}  // namespace moeyard::ops
