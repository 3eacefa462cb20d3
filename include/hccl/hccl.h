// Moeyard. SPDX-License-Identifier: Apache-2.0
// Collectives of HCCL. Compiles as C11 and as C++11.
//
// Every function checks its parameters and submits the work to `stream`, then returns; the work runs in
// stream order and its errors are returned when the stream is synchronised. All ranks of a communicator
// submit the same sequence. Counts and displacements are elements, R is the number of ranks, r the own rank;
// buffers are device memory, arrays of counts and displacements are uint64_t host arrays that may be freed
// when the function has returned.
#ifndef HCCL_H_
#define HCCL_H_

#include "acl/acl.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// recvBuf[i] = op over all ranks' sendBuf[i], in rank order. sendBuf == recvBuf is allowed.
HcclResult HcclAllReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType, HcclReduceOp op,
                         HcclComm comm, aclrtStream stream);

// All ranks' buf becomes the root's.
HcclResult HcclBroadcast(void* buf, uint64_t count, HcclDataType dataType, uint32_t root, HcclComm comm,
                         aclrtStream stream);

// recvBuf = block r of the reduction of the ranks' sendBuf [recvCount * R].
HcclResult HcclReduceScatter(void* sendBuf, void* recvBuf, uint64_t recvCount, HcclDataType dataType,
                             HcclReduceOp op, HcclComm comm, aclrtStream stream);

// recvBuf = the reduction at sendDispls[r]; sendCounts[r] = recvCount; the arrays are equal on all ranks.
HcclResult HcclReduceScatterV(void* sendBuf, const void* sendCounts, const void* sendDispls, void* recvBuf,
                              uint64_t recvCount, HcclDataType dataType, HcclReduceOp op, HcclComm comm,
                              aclrtStream stream);

// recvBuf = block r of the root's sendBuf [recvCount * R].
HcclResult HcclScatter(void* sendBuf, void* recvBuf, uint64_t recvCount, HcclDataType dataType, uint32_t root,
                       HcclComm comm, aclrtStream stream);

// recvBuf [R, sendCount]: row k is rank k's sendBuf. sendBuf may be row r of recvBuf.
HcclResult HcclAllGather(void* sendBuf, void* recvBuf, uint64_t sendCount, HcclDataType dataType,
                         HcclComm comm, aclrtStream stream);

// Rank k's recvCounts[k] elements at recvDispls[k] of recvBuf.
HcclResult HcclAllGatherV(void* sendBuf, uint64_t sendCount, void* recvBuf, const void* recvCounts,
                          const void* recvDispls, HcclDataType dataType, HcclComm comm, aclrtStream stream);

// Pairs of sends and receives: the stream goes on when the partner has come.
HcclResult HcclSend(void* sendBuf, uint64_t count, HcclDataType dataType, uint32_t destRank, HcclComm comm,
                    aclrtStream stream);
HcclResult HcclRecv(void* recvBuf, uint64_t count, HcclDataType dataType, uint32_t srcRank, HcclComm comm,
                    aclrtStream stream);

// Block k of recvBuf = block r of rank k's sendBuf. sendCount = recvCount per block, equal types.
HcclResult HcclAlltoAll(const void* sendBuf, uint64_t sendCount, HcclDataType sendType, const void* recvBuf,
                        uint64_t recvCount, HcclDataType recvType, HcclComm comm, aclrtStream stream);

// recvCounts[k] elements from rank k go to rdispls[k]; rank k's sendCounts[r] = recvCounts[k].
HcclResult HcclAlltoAllV(const void* sendBuf, const void* sendCounts, const void* sdispls,
                         HcclDataType sendType, const void* recvBuf, const void* recvCounts,
                         const void* rdispls, HcclDataType recvType, HcclComm comm, aclrtStream stream);

// sendCountMatrix [R, R]: elements from rank i to rank j, equal on all ranks; blocks follow each other
// without gaps.
HcclResult HcclAlltoAllVC(const void* sendBuf, const void* sendCountMatrix, HcclDataType sendType,
                          const void* recvBuf, HcclDataType recvType, HcclComm comm, aclrtStream stream);

// As HcclAllReduce, on the root only; other ranks' recvBuf is untouched.
HcclResult HcclReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType, HcclReduceOp op,
                      uint32_t root, HcclComm comm, aclrtStream stream);

// Sends and receives that do not block each other; matched per pair of ranks in order.
HcclResult HcclBatchSendRecv(HcclSendRecvItem* sendRecvInfo, uint32_t itemNum, HcclComm comm,
                             aclrtStream stream);

#ifdef __cplusplus
}
#endif
#endif  // HCCL_H_
