// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// How ranks that were started on their own find each other: by a root info or a rank table.
#pragma once
#include <memory>
#include <span>
#include <string_view>

#include "comm/bootstrap/gathering.h"
#include "comm/bootstrap/network.h"
#include "comm/rank_table.h"

namespace moeyard::comm {

// The bytes of an HcclRootInfo: where its communicator gathers, and the secret that lets a rank in.
inline constexpr std::size_t kRootInfoBytes = 4108;
// HCCL_E_NETWORK: there is no address or port for ranks of other processes.
Status make_root_info(std::string_view function, const Network& network,
                      std::span<char, kRootInfoBytes> bytes);
// HCCL_E_PARA: no root info, or one of this process that has served.
Result<std::shared_ptr<Rendezvous>> find_rendezvous(std::string_view function,
                                                    std::span<const char, kRootInfoBytes> bytes);

// Where the ranks of the rank table gather; begins anew when the last communicator of it is over. HCCL_E_PARA: `rank`
// of that table lives in this process already.
Result<std::shared_ptr<Rendezvous>> find_table_rendezvous(std::string_view function, const Network& network,
                                                          const RankTable& table, int rank);

}  // namespace moeyard::comm
