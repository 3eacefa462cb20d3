// Moeyard. SPDX-License-Identifier: Apache-2.0
#ifndef ATB_COMM_H
#define ATB_COMM_H

#include <cstdint>
#include <vector>

#include "atb/types.h"

namespace atb {

using HcclComm = void*;

// Communicators of HCCL. Each function blocks until all ranks have come; null is a failure. commName, if not null, receives
// the group's name: 128 bytes.
namespace Comm {

// Ranks with the same rankRoot and rankSize meet: threads of this process or, where ATB_SHARE_MEMORY_NAME_SUFFIX is set to the
// same text, processes of this host.
HcclComm CreateHcclComm(int32_t rank, int32_t rankRoot, int32_t rankSize, char* commName);

HcclComm CreateHcclCommByRankTableFile(int32_t rank, int32_t rankSize, const char* rankTableFile,
                                       char* commName);

// Rank rankIds[subCommRankId] of the table joins a communicator of rankIds, where it is subCommRankId. Blocks until all ranks of
// the table have called it. hcclBufferSize in MiB, 0: HCCL_BUFFSIZE.
HcclComm CreateHcclCrossMulitComm(const char* rankTableFile, uint32_t subCommRankId,
                                  std::vector<uint32_t>& rankIds, uint64_t subCommId, uint32_t hcclBufferSize,
                                  char* commName);

Status DestoryHcclComm(HcclComm comm);

}  // namespace Comm
}  // namespace atb
#endif  // ATB_COMM_H
