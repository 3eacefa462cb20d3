// Moeyard. SPDX-License-Identifier: Apache-2.0
// Collectives that reduce. Each rank reduces its share in rank order, so all ranks get the same bits.
#include <algorithm>

#include "base/errors.h"
#include "hccl/checks.h"
#include "hccl/collectives.h"
#include "hccl/group_calls.h"
#include "hccl/handles.h"
#include "hccl/moves.h"
#include "hccl/reduce.h"

namespace moeyard::hccl {
namespace {

// Below this a second thread costs more than it reduces.
constexpr std::int64_t kParallelElements = 1 << 16;
// Chunks of ranks begin on cache lines of every type, so that ranks don't write to one line.
constexpr std::int64_t kChunkElements = 64;

enum class Target { all, root, self };

// What the body of one of these collectives does: rank r reduces the elements `share` of all ranks' sources
// and writes them where they belong: to the same place of the results of all ranks or of the root, or to the
// begin of its own.
struct Reduce {
  const TypeInfo* type;
  HcclReduceOp op;
  std::uint64_t count;
  std::int64_t root;    // -1: none
  std::int64_t arrays;  // a checksum of the arrays that must be equal on all ranks
  comm::Exposed source;
  comm::Exposed result;
  Target target;
  Range share;
};

Range chunk_of(std::int64_t count, int rank, int size) {
  const std::int64_t each = (count + size - 1) / size;
  const std::int64_t chunk = (each + kChunkElements - 1) / kChunkElements * kChunkElements;
  return {std::min(count, rank * chunk), std::min(count, (rank + 1) * chunk)};
}

Result<std::byte*> address(const comm::Round& round, int peer, int block) {
  if (std::byte* memory = round.address(peer, block)) return memory;
  return fail(stream_error::kInternal, TextCode::internal,
              "the memory of rank {} cannot be addressed; please report it", peer);
}

Status reduce_share(const comm::Round& round, const comm::Group& group, const Reduce& plan) {
  const std::int64_t begin = plan.share.begin * plan.type->bytes;
  // Kept by the worker, so that nothing is allocated after its first calls.
  thread_local std::vector<const std::byte*> inputs;
  thread_local std::vector<std::byte*> outputs;
  thread_local std::vector<comm::Piece> far;
  inputs.clear();
  outputs.clear();
  inputs.reserve(group.size());
  outputs.reserve(group.size());
  const std::int64_t bytes = plan.share.size() * plan.type->bytes;
  far.clear();
  for (int peer = 0; peer < group.size(); ++peer) {
    inputs.push_back(MOEYARD_TRY(address(round, peer, 0)) + begin);
    if (round.is_far(peer)) far.push_back({peer, 0, begin, bytes});
  }
  if (!far.empty()) MOEYARD_TRY(round.fetch(far));
  far.clear();
  switch (plan.target) {
    case Target::all:
      for (int peer = 0; peer < group.size(); ++peer) {
        outputs.push_back(MOEYARD_TRY(address(round, peer, 1)) + begin);
        // All get the same, so it crosses to each other host once.
        if (round.is_far(peer)) far.push_back({peer, 1, begin, bytes, round.same_host(far, peer)});
      }
      break;
    case Target::root:
      outputs.push_back(MOEYARD_TRY(address(round, static_cast<int>(plan.root), 1)) + begin);
      if (round.is_far(static_cast<int>(plan.root)))
        far.push_back({static_cast<int>(plan.root), 1, begin, bytes});
      break;
    case Target::self:
      outputs.push_back(plan.result.data);
      break;
  }
  const ReduceFn reduce = find_reduction(plan.type->type, plan.op);
  const std::span<const std::byte* const> in(inputs);  // other threads have vectors of their own
  const std::span<std::byte* const> out(outputs);
  parallel_for(plan.share.size(), kParallelElements, [&](Range part) { reduce(in, out, part); });
  return far.empty() ? Status() : round.send(far);
}

Status run(comm::Exchange& exchange, const Reduce& plan) {
  const comm::Fact facts[] = {{"count", static_cast<std::int64_t>(plan.count)},
                              {"dataType", plan.type->type},
                              {"op", plan.op},
                              {"root", plan.root},
                              {"the checksum of sendCounts and sendDispls", plan.arrays}};
  // A result of its own each rank writes itself.
  const comm::Exposed blocks[] = {plan.source, plan.target == Target::self ? comm::Exposed{} : plan.result};
  const comm::Round round = MOEYARD_TRY(exchange.round({.facts = facts, .blocks = blocks}));
  Status wrong;
  if (plan.share.size() > 0) wrong = reduce_share(round, exchange.group(), plan);
  return exchange.finish({.error = wrong});
}

Status submit(const Arguments& a, std::shared_ptr<comm::Group> group, Reduce plan) {
  const Place place = MOEYARD_TRY(find_place(a.function, std::move(group), a.stream));
  return submit_collective(place, [plan](comm::Exchange& exchange) { return run(exchange, plan); });
}

}  // namespace

Status all_reduce(const Arguments& a) {
  auto group = MOEYARD_TRY(find_working_comm(a.function, a.comm));
  const TypeInfo* type = MOEYARD_TRY(check_reduction(a.function, a.type, a.op));
  const std::int64_t bytes = MOEYARD_TRY(bytes_of(a.function, "count", a.count, *type));
  MOEYARD_TRY(check_buffer(a.function, "sendBuf", a.send, bytes, type->bytes));
  MOEYARD_TRY(check_buffer(a.function, "recvBuf", a.recv, bytes, type->bytes));
  MOEYARD_TRY(check_apart(a.function, a.send, bytes, a.recv, bytes, a.send));
  if (a.count == 0) return {};
  const Range share = chunk_of(static_cast<std::int64_t>(a.count), group->rank(), group->size());
  return submit(
      a, std::move(group),
      {type, a.op, a.count, -1, 0, source_of(a.send, bytes), {bytes_at(a.recv), bytes}, Target::all, share});
}

Status reduce(const Arguments& a) {
  auto group = MOEYARD_TRY(find_working_comm(a.function, a.comm));
  const TypeInfo* type = MOEYARD_TRY(check_reduction(a.function, a.type, a.op));
  MOEYARD_TRY(check_below(a.function, "root", a.root, group->size()));
  const int root = static_cast<int>(a.root);
  const std::int64_t bytes = MOEYARD_TRY(bytes_of(a.function, "count", a.count, *type));
  MOEYARD_TRY(check_buffer(a.function, "sendBuf", a.send, bytes, type->bytes));
  comm::Exposed result;
  if (group->rank() == root) {
    MOEYARD_TRY(check_buffer(a.function, "recvBuf", a.recv, bytes, type->bytes));
    MOEYARD_TRY(check_apart(a.function, a.send, bytes, a.recv, bytes, a.send));
    result = {bytes_at(a.recv), bytes};
  }
  if (a.count == 0) return {};
  const Range share = chunk_of(static_cast<std::int64_t>(a.count), group->rank(), group->size());
  return submit(a, std::move(group),
                {type, a.op, a.count, root, 0, source_of(a.send, bytes), result, Target::root, share});
}

Status reduce_scatter(const Arguments& a) {
  auto group = MOEYARD_TRY(find_working_comm(a.function, a.comm));
  const TypeInfo* type = MOEYARD_TRY(check_reduction(a.function, a.type, a.op));
  const std::int64_t bytes = MOEYARD_TRY(bytes_of(a.function, "recvCount", a.count, *type));
  const std::int64_t all = MOEYARD_TRY(bytes_of(a.function, "recvCount", a.count, *type, group->size()));
  MOEYARD_TRY(check_buffer(a.function, "sendBuf", a.send, all, type->bytes));
  MOEYARD_TRY(check_buffer(a.function, "recvBuf", a.recv, bytes, type->bytes));
  // In place the result is the own block, which no other rank reads.
  MOEYARD_TRY(check_apart(a.function, a.send, all, a.recv, bytes, bytes_at(a.send) + group->rank() * bytes));
  if (a.count == 0) return {};
  const auto count = static_cast<std::int64_t>(a.count);
  const Range share{group->rank() * count, (group->rank() + 1) * count};
  return submit(
      a, std::move(group),
      {type, a.op, a.count, -1, 0, source_of(a.send, all), {bytes_at(a.recv), bytes}, Target::self, share});
}

Status reduce_scatter_v(const Arguments& a) {
  auto group = MOEYARD_TRY(find_working_comm(a.function, a.comm));
  const TypeInfo* type = MOEYARD_TRY(check_reduction(a.function, a.type, a.op, Reduction::reduce_scatter_v));
  MOEYARD_TRY(check_pointer(a.function, "sendCounts", a.send_counts));
  MOEYARD_TRY(check_pointer(a.function, "sendDispls", a.send_displs));
  const auto ranks = static_cast<std::size_t>(group->size());
  const std::span counts(static_cast<const std::uint64_t*>(a.send_counts), ranks);
  const std::span displs(static_cast<const std::uint64_t*>(a.send_displs), ranks);
  std::int64_t extent = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::int64_t bytes = MOEYARD_TRY(bytes_of(a.function, "sendCounts", counts[rank], *type));
    if (bytes > 0)
      extent = std::max(extent, MOEYARD_TRY(bytes_of(a.function, "sendDispls", displs[rank], *type)) + bytes);
  }
  const int me = group->rank();
  if (counts[me] != a.count)
    return fail(HCCL_E_PARA, TextCode::hccl_parameter,
                "{}: recvCount is {} but sendCounts[{}] is {}; they must be equal", a.function, a.count, me,
                counts[me]);
  const std::int64_t bytes = static_cast<std::int64_t>(a.count) * type->bytes;
  MOEYARD_TRY(check_buffer(a.function, "sendBuf", a.send, extent, type->bytes));
  MOEYARD_TRY(check_buffer(a.function, "recvBuf", a.recv, bytes, type->bytes));
  MOEYARD_TRY(check_apart(a.function, a.send, extent, a.recv, bytes, nullptr));
  const auto begin = static_cast<std::int64_t>(displs[me]);
  const Range share = a.count == 0 ? Range{0, 0} : Range{begin, begin + static_cast<std::int64_t>(a.count)};
  const std::int64_t arrays = checksum(counts) ^ (checksum(displs) << 1);
  return submit(
      a, std::move(group),
      {type, a.op, 0, -1, arrays, source_of(a.send, extent), {bytes_at(a.recv), bytes}, Target::self, share});
}

}  // namespace moeyard::hccl
