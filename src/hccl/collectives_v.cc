// Moeyard. SPDX-License-Identifier: Apache-2.0
// Collectives that move data of different sizes. The receiver copies, after it has compared what it expects
// of each sender with what the sender says.
#include <algorithm>
#include <limits>

#include "base/errors.h"
#include "hccl/checks.h"
#include "hccl/collectives.h"
#include "hccl/group_calls.h"
#include "hccl/handles.h"
#include "hccl/moves.h"

namespace moeyard::hccl {
namespace {

// Counts and displacements by rank as pieces in bytes, and the bytes from the buffer's begin to the last
// one's end.
struct Layout {
  std::vector<Piece> pieces;
  std::int64_t extent = 0;

  void add(std::int64_t offset, std::int64_t bytes) {
    pieces.push_back({offset, bytes});
    if (bytes > 0) extent = std::max(extent, offset + bytes);
  }
};

struct ArrayNames {
  const char* counts;
  const char* displs;
};

Result<Layout> read_layout(const char* function, ArrayNames names, const void* counts, const void* displs,
                           int size, const TypeInfo& type) {
  MOEYARD_TRY(check_pointer(function, names.counts, counts));
  MOEYARD_TRY(check_pointer(function, names.displs, displs));
  Layout layout;
  for (int rank = 0; rank < size; ++rank) {
    const std::uint64_t count = static_cast<const std::uint64_t*>(counts)[rank];
    const std::uint64_t displ = static_cast<const std::uint64_t*>(displs)[rank];
    const std::int64_t bytes = MOEYARD_TRY(bytes_of(function, names.counts, count, type));
    layout.add(count == 0 ? 0 : MOEYARD_TRY(bytes_of(function, names.displs, displ, type)), bytes);
  }
  return layout;
}

// What the body of one of these collectives does.
struct Exchanges {
  const TypeInfo* type;
  comm::Exposed source;
  std::vector<Piece> sends;  // by peer: where its piece lies in source; one entry: the same for all
  std::byte* into;
  std::vector<Piece> recvs;  // by peer
  std::int64_t same_on_all;  // a checksum of what all must have been given alike
  const char* what;          // its name
};

Status compare(const char* function, const comm::Group& group, int peer, Piece theirs, Piece mine,
               std::int64_t bytes) {
  if (theirs.bytes == mine.bytes) return {};
  return fail(
      stream_error::kWrongData, TextCode::hccl_parameter,
      "{}: group {}: expects {} elements from rank {}, which sends {}; counts of both sides must agree",
      function, group.name(), mine.bytes / bytes, peer, theirs.bytes / bytes);
}

Status run(comm::Exchange& exchange, const char* function, const Exchanges& plan) {
  const comm::Group& group = exchange.group();
  const comm::Fact facts[] = {{"dataType", plan.type->type}, {plan.what, plan.same_on_all}};
  const comm::Exposed blocks[] = {plan.source};
  const std::int64_t piece_bytes = sizeof(Piece);
  const bool one_for_all = plan.sends.size() == 1 && group.size() > 1;
  comm::Round round = MOEYARD_TRY(exchange.round({.facts = facts,
                                                  .message = std::as_bytes(std::span(plan.sends)),
                                                  .bytes_per_peer = one_for_all ? 0 : piece_bytes,
                                                  .blocks = blocks}));
  Status wrong;
  for (int peer = 0; peer < group.size() && wrong.ok(); ++peer) {
    const Piece theirs = reinterpret_cast<const Piece*>(round.message(peer).data())[0];
    wrong = compare(function, group, peer, theirs, plan.recvs[peer], plan.type->bytes);
  }
  Puller puller(round);
  for (int step = 0; step < group.size() && wrong.ok(); ++step) {
    const int peer = (group.rank() + step) % group.size();  // everybody begins with itself
    const Piece theirs = reinterpret_cast<const Piece*>(round.message(peer).data())[0];
    wrong = puller.add(peer, 0, theirs, plan.into + plan.recvs[peer].offset);
  }
  if (wrong.ok()) wrong = puller.finish();
  return exchange.finish({.error = wrong});
}

Status submit(const Arguments& a, std::shared_ptr<comm::Group> group, Exchanges plan) {
  const Place place = MOEYARD_TRY(find_place(a.function, std::move(group), a.stream));
  return submit_collective(place, [function = a.function, plan = std::move(plan)](comm::Exchange& exchange) {
    return run(exchange, function, plan);
  });
}

}  // namespace

Status all_gather_v(const Arguments& a) {
  auto group = MOEYARD_TRY(find_working_comm(a.function, a.comm));
  const TypeInfo* type = MOEYARD_TRY(check_move(a.function, a.type));
  const std::int64_t bytes = MOEYARD_TRY(bytes_of(a.function, "sendCount", a.count, *type));
  Layout recvs = MOEYARD_TRY(read_layout(a.function, {"recvCounts", "recvDispls"}, a.recv_counts,
                                         a.recv_displs, group->size(), *type));
  MOEYARD_TRY(check_buffer(a.function, "sendBuf", a.send, bytes));
  MOEYARD_TRY(check_buffer(a.function, "recvBuf", a.recv, recvs.extent));
  MOEYARD_TRY(check_apart(a.function, a.send, bytes, a.recv, recvs.extent, nullptr));
  return submit(
      a, std::move(group),
      {type, source_of(a.send, bytes), {{0, bytes}}, bytes_at(a.recv), std::move(recvs.pieces), 0, "ranks"});
}

Status all_to_all_v(const Arguments& a) {
  auto group = MOEYARD_TRY(find_working_comm(a.function, a.comm));
  const TypeInfo* type = MOEYARD_TRY(check_move(a.function, a.type));
  MOEYARD_TRY(check_equal_sides(a.function, a.count, a.recv_count, a.type, a.recv_type));
  Layout sends = MOEYARD_TRY(
      read_layout(a.function, {"sendCounts", "sdispls"}, a.send_counts, a.send_displs, group->size(), *type));
  Layout recvs = MOEYARD_TRY(
      read_layout(a.function, {"recvCounts", "rdispls"}, a.recv_counts, a.recv_displs, group->size(), *type));
  MOEYARD_TRY(check_buffer(a.function, "sendBuf", a.send, sends.extent));
  MOEYARD_TRY(check_buffer(a.function, "recvBuf", a.recv, recvs.extent));
  MOEYARD_TRY(check_apart(a.function, a.send, sends.extent, a.recv, recvs.extent, nullptr));
  return submit(a, std::move(group),
                {type, source_of(a.send, sends.extent), std::move(sends.pieces), bytes_at(a.recv),
                 std::move(recvs.pieces), 0, "ranks"});
}

Status all_to_all_vc(const Arguments& a) {
  auto group = MOEYARD_TRY(find_working_comm(a.function, a.comm));
  const TypeInfo* type = MOEYARD_TRY(check_move(a.function, a.type));
  MOEYARD_TRY(check_equal_sides(a.function, a.count, a.recv_count, a.type, a.recv_type));
  MOEYARD_TRY(check_pointer(a.function, "sendCountMatrix", a.send_counts));
  const int size = group->size(), me = group->rank();
  const auto* matrix = static_cast<const std::uint64_t*>(a.send_counts);
  // Blocks follow each other without gaps, in rank order, on both sides.
  Layout sends, recvs;
  for (int peer = 0; peer < size; ++peer) {
    sends.add(sends.extent,
              MOEYARD_TRY(bytes_of(a.function, "sendCountMatrix", matrix[me * size + peer], *type)));
    recvs.add(recvs.extent,
              MOEYARD_TRY(bytes_of(a.function, "sendCountMatrix", matrix[peer * size + me], *type)));
  }
  MOEYARD_TRY(check_buffer(a.function, "sendBuf", a.send, sends.extent));
  MOEYARD_TRY(check_buffer(a.function, "recvBuf", a.recv, recvs.extent));
  MOEYARD_TRY(check_apart(a.function, a.send, sends.extent, a.recv, recvs.extent, nullptr));
  const std::int64_t sum = checksum({matrix, static_cast<std::size_t>(size) * size});
  return submit(a, std::move(group),
                {type, source_of(a.send, sends.extent), std::move(sends.pieces), bytes_at(a.recv),
                 std::move(recvs.pieces), sum, "the checksum of sendCountMatrix"});
}

}  // namespace moeyard::hccl
