// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/hosts/courier.h"

#include <algorithm>
#include <cstring>

#include "base/errors.h"
#include "base/parallel.h"

namespace moeyard::comm {
namespace {

constexpr std::int64_t kBytesPerTask = 256 * 1024;

}  // namespace

Courier::Load& Courier::load_for(std::vector<Load>& loads, int host) const {
  const auto found = std::ranges::find(loads, host, &Load::host);
  return found != loads.end() ? *found : loads.emplace_back(Load{host, {}});
}

Result<std::vector<Courier::Load>> Courier::sort(std::span<const Piece> pieces) {
  std::vector<Load> loads;
  std::vector<std::int64_t> place(pieces.size(), -1);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    if (world_.is_here(piece.peer) || piece.bytes == 0) continue;
    std::byte* const memory = stand_ins_.of(piece.peer, piece.block, piece.offset + piece.bytes);
    if (memory == nullptr)
      return fail(stream_error::kInternal, TextCode::runtime_resource,
                  "there is no address space to stand for memory of rank {}", piece.peer);
    touched_.emplace(piece.peer, piece.block);
    auto& items = load_for(loads, world_.host_of(piece.peer)).items;
    place[i] = static_cast<std::int64_t>(items.size());
    const std::int64_t same = piece.same < 0 ? -1 : place[static_cast<std::size_t>(piece.same)];
    items.push_back({{piece.peer, piece.block, piece.offset, piece.bytes, 0}, memory + piece.offset, same});
  }
  return loads;
}

// Packs and tells the bridge. What it takes in order, it gives in order.
Status Courier::dispatch(std::uint64_t number, std::vector<Load>& loads) {
  for (Load& load : loads) {
    std::int64_t bytes = 0;
    for (Item& item : load.items) {
      if (item.same >= 0) {
        item.part.at = load.items[static_cast<std::size_t>(item.same)].part.at;
        continue;
      }
      item.part.at = bytes;
      bytes += item.part.bytes;
    }
    const auto count = static_cast<std::int64_t>(load.items.size());
    Parcel* const parcel = MOEYARD_TRY(parcels_.make(Parcel::Kind::put, rank_, load.host, count, bytes));
    parcel->number = number;
    Parcel::Part* const parts = parcel->parts();
    std::byte* const body = parcel->body();
    const std::span<const Item> items(load.items);
    parallel_for(count, std::max<std::int64_t>(kBytesPerTask * count / std::max<std::int64_t>(bytes, 1), 1),
                 [&](Range range) {
                   for (std::int64_t i = range.begin; i < range.end; ++i) {
                     const Item& item = items[static_cast<std::size_t>(i)];
                     parts[i] = item.part;
                     if (item.same < 0)
                       std::memcpy(body + item.part.at, item.memory,
                                   static_cast<std::size_t>(item.part.bytes));
                   }
                 });
    world_.post(*parcel);
    parcels_.give_back(parcel);
  }
  return {};
}

Status Courier::collect(const Met& met, std::vector<Load>& loads) {
  std::vector<Parcel*> parcels;
  Status wrong;
  for (Load& load : loads) {
    std::int64_t bytes = 0;
    for (Item& item : load.items) {
      item.part.at = bytes;
      bytes += item.part.bytes;
    }
    auto made = parcels_.make(Parcel::Kind::get, rank_, load.host,
                              static_cast<std::int64_t>(load.items.size()), bytes);
    if (!made) {
      wrong = made.error();
      break;
    }
    (*made)->number = met.number;
    std::ranges::transform(load.items, (*made)->parts(), &Item::part);
    parcels.push_back(*made);
  }
  if (wrong.ok()) wrong = world_.exchange(rank_, met.operator_name, parcels, met.timeout);
  if (wrong.ok())
    for (std::size_t l = 0; l < loads.size(); ++l) {
      const std::span<const Item> items(loads[l].items);
      const std::byte* const body = parcels[l]->body();
      const auto count = static_cast<std::int64_t>(items.size());
      parallel_for(count,
                   std::max<std::int64_t>(
                       kBytesPerTask * count / std::max<std::int64_t>(parcels[l]->body_bytes, 1), 1),
                   [&](Range range) {
                     for (std::int64_t i = range.begin; i < range.end; ++i) {
                       const Item& item = items[static_cast<std::size_t>(i)];
                       std::memcpy(item.memory, body + item.part.at,
                                   static_cast<std::size_t>(item.part.bytes));
                     }
                   });
    }
  for (Parcel* parcel : parcels) parcels_.give_back(parcel);
  return wrong;
}

Status Courier::send(const Met& met, std::span<const Piece> pieces) {
  auto loads = MOEYARD_TRY(sort(pieces));
  return dispatch(met.number, loads);
}

Status Courier::fetch(const Met& met, std::span<const Piece> pieces) {
  auto loads = MOEYARD_TRY(sort(pieces));
  return collect(met, loads);
}

void Courier::settle() {
  for (const auto& [peer, block] : touched_) stand_ins_.forget(peer, block);
  touched_.clear();
}

Status Courier::put(const Met& met, const Piece& piece, const std::byte* from) {
  std::vector<Load> loads{
      {world_.host_of(piece.peer),
       {{{piece.peer, piece.block, piece.offset, piece.bytes, 0}, const_cast<std::byte*>(from)}}}};
  return dispatch(met.number, loads);
}

Status Courier::get(const Met& met, std::span<const Get> gets) {
  std::vector<Load> loads;
  for (const auto& [piece, into] : gets)
    if (!world_.is_here(piece.peer) && piece.bytes > 0)
      load_for(loads, world_.host_of(piece.peer))
          .items.push_back({{piece.peer, piece.block, piece.offset, piece.bytes, 0}, into});
  return collect(met, loads);
}

Result<std::byte*> Courier::window(int peer, std::int64_t bytes) {
  const std::lock_guard lock(windows_mutex_);
  if (std::byte* const made = windows_.of(peer, 0, bytes)) return made;
  return fail(stream_error::kInternal, TextCode::runtime_resource,
              "there is no address space to stand for the window of rank {} ({} bytes)", peer, bytes);
}

Status Courier::write_window(OperatorName operator_name, std::span<const WindowPiece> pieces,
                             std::chrono::milliseconds timeout) {
  std::vector<Load> loads;
  for (const WindowPiece& piece : pieces)
    load_for(loads, world_.host_of(piece.rank))
        .items.push_back(
            {{piece.rank, Parcel::kWindow, piece.offset, static_cast<std::int64_t>(piece.bytes.size()), 0},
             piece.bytes.data()});
  MOEYARD_TRY(dispatch(0, loads));
  for (Load& load : loads) load.items.clear();  // asking for nothing is answered when all before it is there
  return collect({0, operator_name, timeout}, loads);
}

Status Courier::read_window(OperatorName operator_name, std::span<const WindowPiece> pieces,
                            std::chrono::milliseconds timeout) {
  std::vector<Load> loads;
  for (const WindowPiece& piece : pieces)
    load_for(loads, world_.host_of(piece.rank))
        .items.push_back(
            {{piece.rank, Parcel::kWindow, piece.offset, static_cast<std::int64_t>(piece.bytes.size()), 0},
             piece.bytes.data()});
  return collect({0, operator_name, timeout}, loads);
}

Result<Parcel*> Courier::pack(const Transfer& transfer) {
  Parcel* const parcel =
      MOEYARD_TRY(parcels_.make(Parcel::Kind::send, rank_, world_.host_of(transfer.peer), 1, transfer.bytes));
  parcel->parts()[0] = {transfer.peer, 0, 0, transfer.bytes, 0};
  parcel->sent = {{}, transfer.bytes, {}};
  transfer.type.copy(parcel->sent.type, sizeof parcel->sent.type - 1);
  parcel->received = parcel->sent;
  if (transfer.bytes > 0)
    std::memcpy(parcel->body(), transfer.data, static_cast<std::size_t>(transfer.bytes));
  return parcel;
}

}  // namespace moeyard::comm
