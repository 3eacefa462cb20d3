// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <mutex>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "comm/host/world.h"
#include "comm/hosts/parcels.h"
#include "comm/hosts/stand_ins.h"

namespace moeyard::comm {

// How one rank reaches the memory of ranks of other hosts: what it writes goes into stand-ins and from there, in one
// parcel for each host, to the bridge; what it reads comes the same way back.
class Courier {
 public:
  Courier(World& world, int rank) : world_(world), rank_(rank), parcels_(world.spaces()) {}

  // What a peer posted in the last meeting.
  struct Met {
    std::uint64_t number;
    OperatorName operator_name;
    std::chrono::milliseconds timeout;
  };
  std::byte* stand_in(int peer, int block, std::int64_t bytes) { return stand_ins_.of(peer, block, bytes); }
  Status send(const Met& met, std::span<const Piece> pieces);
  Status fetch(const Met& met, std::span<const Piece> pieces);
  // What was sent and fetched has been used.
  void settle();

  // Straight from and to other memory.
  Status put(const Met& met, const Piece& piece, const std::byte* from);
  Status get(const Met& met, std::span<const Get> gets);
  // Stands for the window of a rank of another host. Any thread.
  Result<std::byte*> window(int peer, std::int64_t bytes);
  // When it returns, the pieces are there.
  Status write_window(OperatorName operator_name, std::span<const WindowPiece> pieces,
                      std::chrono::milliseconds timeout);
  Status read_window(OperatorName operator_name, std::span<const WindowPiece> pieces,
                     std::chrono::milliseconds timeout);

  // What a rank sends in a pair; give it back when the pair is over.
  Result<Parcel*> pack(const Transfer& transfer);
  void give_back(Parcel* parcel) { parcels_.give_back(parcel); }

 private:
  // One part of a parcel and where its bytes are in this process.
  struct Item {
    Parcel::Part part;
    std::byte* memory;
    std::int64_t same = -1;  // the place of an earlier item with the same bytes
  };
  struct Load {
    int host;
    std::vector<Item> items;
  };
  Load& load_for(std::vector<Load>& loads, int host) const;
  Result<std::vector<Load>> sort(std::span<const Piece> pieces);
  Status dispatch(std::uint64_t number, std::vector<Load>& loads);
  Status collect(const Met& met, std::vector<Load>& loads);

  World& world_;
  const int rank_;
  Parcels parcels_;
  StandIns stand_ins_;
  std::set<std::pair<int, int>> touched_;
  std::mutex windows_mutex_;
  StandIns windows_;
};

}  // namespace moeyard::comm
