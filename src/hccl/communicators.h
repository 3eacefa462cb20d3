// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"
#include "hccl/hccl_types.h"

namespace moeyard::hccl {

// Making and ending communicators, as the functions of hccl/hccl_comm.h say.

Status init_all(std::string_view function, std::uint32_t ranks, const std::int32_t* devices, HcclComm* comms);

struct ConfigArgument {
  bool taken = false;  // whether the function has that parameter
  const HcclCommConfig* config = nullptr;
};
Status get_root_info(std::string_view function, HcclRootInfo* root_info);
Status init_root_info(std::string_view function, std::uint32_t ranks, const HcclRootInfo* root_info,
                      std::uint32_t rank, ConfigArgument config, HcclComm* comm);
Status init_cluster_info(std::string_view function, const char* path, std::uint32_t rank,
                         ConfigArgument config, HcclComm* comm);
Status create_sub(std::string_view function, const HcclComm* parent, std::span<const std::uint32_t> rank_ids,
                  bool outside, std::uint64_t sub_id, std::uint32_t sub_rank, const HcclCommConfig* config,
                  HcclComm* sub);
Status destroy(std::string_view function, HcclComm comm);

}  // namespace moeyard::hccl
