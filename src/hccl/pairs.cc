// Moeyard. SPDX-License-Identifier: Apache-2.0
// Sends and receives of pairs of ranks.
#include "base/errors.h"
#include "hccl/checks.h"
#include "hccl/collectives.h"
#include "hccl/group_calls.h"
#include "hccl/handles.h"

namespace moeyard::hccl {
namespace {

using comm::Transfer;

struct PairNames {
  const char* buffer;
  const char* peer;
};

// The checked transfer; of 0 bytes if there is nothing to do.
Result<Transfer> make_transfer(const char* function, PairNames names, const comm::Group& group,
                               Transfer::Kind kind, const void* buffer, std::uint64_t count,
                               HcclDataType data_type, std::uint32_t peer) {
  const TypeInfo* type = MOEYARD_TRY(check_move(function, data_type));
  MOEYARD_TRY(check_below(function, names.peer, peer, group.size()));
  const std::int64_t bytes = MOEYARD_TRY(bytes_of(function, "count", count, *type));
  MOEYARD_TRY(check_buffer(function, names.buffer, buffer, bytes));
  return Transfer{kind, static_cast<int>(peer), const_cast<std::byte*>(static_cast<const std::byte*>(buffer)),
                  bytes, type->name};
}

Status submit(const Arguments& a, std::shared_ptr<comm::Group> group, std::vector<Transfer> items) {
  std::erase_if(items, [](const Transfer& item) { return item.bytes == 0; });
  if (items.empty()) return {};
  const Place place = MOEYARD_TRY(find_place(a.function, std::move(group), a.stream));
  return submit_transfers(place, std::move(items));
}

}  // namespace

Status send(const Arguments& a) {
  auto group = MOEYARD_TRY(find_working_comm(a.function, a.comm));
  const Transfer item = MOEYARD_TRY(make_transfer(a.function, {"sendBuf", "destRank"}, *group,
                                                  Transfer::Kind::send, a.send, a.count, a.type, a.root));
  return submit(a, std::move(group), {item});
}

Status receive(const Arguments& a) {
  auto group = MOEYARD_TRY(find_working_comm(a.function, a.comm));
  const Transfer item = MOEYARD_TRY(make_transfer(a.function, {"recvBuf", "srcRank"}, *group,
                                                  Transfer::Kind::receive, a.recv, a.count, a.type, a.root));
  return submit(a, std::move(group), {item});
}

Status batch(const Arguments& a, const HcclSendRecvItem* items, std::uint32_t count) {
  auto group = MOEYARD_TRY(find_working_comm(a.function, a.comm));
  if (count > 0) MOEYARD_TRY(check_pointer(a.function, "sendRecvInfo", items));
  std::vector<Transfer> transfers;
  transfers.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const HcclSendRecvItem& item = items[i];
    if (item.sendRecvType != HCCL_SEND && item.sendRecvType != HCCL_RECV)
      return fail(HCCL_E_PARA, TextCode::hccl_parameter,
                  "{}: sendRecvType of item {} is {}, it must be HCCL_SEND (0) or HCCL_RECV (1)", a.function,
                  i, static_cast<int>(item.sendRecvType));
    const auto kind = item.sendRecvType == HCCL_SEND ? Transfer::Kind::send : Transfer::Kind::receive;
    transfers.push_back(
        MOEYARD_TRY(make_transfer(a.function, {"buf of an item", "remoteRank of an item"}, *group, kind,
                                  item.buf, item.count, item.dataType, item.remoteRank)));
  }
  return submit(a, std::move(group), std::move(transfers));
}

}  // namespace moeyard::hccl
