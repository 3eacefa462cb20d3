// Moeyard. SPDX-License-Identifier: Apache-2.0
// Collectives that move data of one size per rank. The receiver copies.
#include "hccl/collectives.h"

#include "hccl/checks.h"
#include "hccl/group_calls.h"
#include "hccl/handles.h"
#include "hccl/moves.h"

namespace moeyard::hccl {
namespace {

// What the body of one of these collectives does: from each peer of [first_peer, last_peer) one piece of its
// block.
struct Pulls {
  const TypeInfo* type;
  std::uint64_t count;
  std::int64_t root;  // -1: none
  comm::Exposed source;
  std::byte* into;
  int first_peer, last_peer;
  std::int64_t from_offset;  // of the piece in a peer's block
  std::int64_t bytes;        // of a piece
};

// Compares, copies the pieces one after the other to `into`, and waits until everybody has done so.
Status run(comm::Exchange& exchange, const Pulls& pulls) {
  const comm::Fact facts[] = {{"count", static_cast<std::int64_t>(pulls.count)},
                              {"dataType", pulls.type->type},
                              {"root", pulls.root}};
  const comm::Exposed blocks[] = {pulls.source};
  const comm::Round round = MOEYARD_TRY(exchange.round({.facts = facts, .blocks = blocks}));
  const int me = exchange.group().rank();
  const int peers = pulls.last_peer - pulls.first_peer;
  Puller puller(round);
  for (int step = 0; step < peers; ++step) {
    const int index =
        (me + step) % peers;  // everybody begins elsewhere, so that no rank's memory is read by all at once
    MOEYARD_TRY(puller.add(pulls.first_peer + index, 0, {pulls.from_offset, pulls.bytes},
                           pulls.into + index * pulls.bytes));
  }
  MOEYARD_TRY(puller.finish());
  return exchange.finish();
}

Status submit(const Arguments& a, std::shared_ptr<comm::Group> group, Pulls pulls) {
  const Place place = MOEYARD_TRY(find_place(a.function, std::move(group), a.stream));
  return submit_collective(place, [pulls](comm::Exchange& exchange) { return run(exchange, pulls); });
}

}  // namespace

Status barrier(const Arguments& a) {
  auto group = MOEYARD_TRY(find_working_comm(a.function, a.comm));
  const Place place = MOEYARD_TRY(find_place(a.function, std::move(group), a.stream));
  return submit_collective(place, [](comm::Exchange& exchange) { return exchange.finish(); });
}

Status broadcast(const Arguments& a) {
  auto group = MOEYARD_TRY(find_working_comm(a.function, a.comm));
  const TypeInfo* type = MOEYARD_TRY(check_move(a.function, a.type));
  MOEYARD_TRY(check_below(a.function, "root", a.root, group->size()));
  const std::int64_t bytes = MOEYARD_TRY(bytes_of(a.function, "count", a.count, *type));
  MOEYARD_TRY(check_buffer(a.function, "buf", a.recv, bytes));
  if (a.count == 0) return {};
  const int root = static_cast<int>(a.root);
  const bool is_root = group->rank() == root;
  return submit(a, std::move(group),
                {type, a.count, root, is_root ? source_of(a.recv, bytes) : comm::Exposed{}, bytes_at(a.recv),
                 root, is_root ? root : root + 1, 0, bytes});
}

Status scatter(const Arguments& a) {
  auto group = MOEYARD_TRY(find_working_comm(a.function, a.comm));
  const TypeInfo* type = MOEYARD_TRY(check_move(a.function, a.type));
  MOEYARD_TRY(check_below(a.function, "root", a.root, group->size()));
  const int root = static_cast<int>(a.root), me = group->rank();
  const std::int64_t bytes = MOEYARD_TRY(bytes_of(a.function, "recvCount", a.count, *type));
  const std::int64_t all = MOEYARD_TRY(bytes_of(a.function, "recvCount", a.count, *type, group->size()));
  MOEYARD_TRY(check_buffer(a.function, "recvBuf", a.recv, bytes));
  if (me == root) {
    MOEYARD_TRY(check_buffer(a.function, "sendBuf", a.send, all));
    MOEYARD_TRY(check_apart(a.function, a.send, all, a.recv, bytes, bytes_at(a.send) + me * bytes));
  }
  if (a.count == 0) return {};
  const comm::Exposed source = me == root ? source_of(a.send, all) : comm::Exposed{};
  return submit(a, std::move(group),
                {type, a.count, root, source, bytes_at(a.recv), root, root + 1, me * bytes, bytes});
}

Status all_gather(const Arguments& a) {
  auto group = MOEYARD_TRY(find_working_comm(a.function, a.comm));
  const TypeInfo* type = MOEYARD_TRY(check_move(a.function, a.type));
  const std::int64_t bytes = MOEYARD_TRY(bytes_of(a.function, "sendCount", a.count, *type));
  const std::int64_t all = MOEYARD_TRY(bytes_of(a.function, "sendCount", a.count, *type, group->size()));
  MOEYARD_TRY(check_buffer(a.function, "sendBuf", a.send, bytes));
  MOEYARD_TRY(check_buffer(a.function, "recvBuf", a.recv, all));
  if (a.count == 0) return {};
  // In place the own row is the send buffer.
  const bool in_place = a.send == bytes_at(a.recv) + group->rank() * bytes;
  if (!in_place) MOEYARD_TRY(check_apart(a.function, a.send, bytes, a.recv, all, nullptr));
  const int size = group->size();
  return submit(a, std::move(group),
                {type, a.count, -1, source_of(a.send, bytes), bytes_at(a.recv), 0, size, 0, bytes});
}

Status all_to_all(const Arguments& a) {
  auto group = MOEYARD_TRY(find_working_comm(a.function, a.comm));
  const TypeInfo* type = MOEYARD_TRY(check_move(a.function, a.type));
  MOEYARD_TRY(check_equal_sides(a.function, a.count, a.recv_count, a.type, a.recv_type));
  const std::int64_t bytes = MOEYARD_TRY(bytes_of(a.function, "sendCount", a.count, *type));
  const std::int64_t all = MOEYARD_TRY(bytes_of(a.function, "sendCount", a.count, *type, group->size()));
  MOEYARD_TRY(check_buffer(a.function, "sendBuf", a.send, all));
  MOEYARD_TRY(check_buffer(a.function, "recvBuf", a.recv, all));
  MOEYARD_TRY(check_apart(a.function, a.send, all, a.recv, all, nullptr));
  if (a.count == 0) return {};
  const int size = group->size(), me = group->rank();
  return submit(a, std::move(group),
                {type, a.count, -1, source_of(a.send, all), bytes_at(a.recv), 0, size, me * bytes, bytes});
}

}  // namespace moeyard::hccl
