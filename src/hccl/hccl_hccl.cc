// Moeyard. SPDX-License-Identifier: Apache-2.0
// The C boundary of hccl/hccl.h.
#include "hccl/hccl.h"

#include "base/boundary.h"
#include "hccl/collectives.h"

namespace {

using moeyard::Status;
using moeyard::hccl::Arguments;

HcclResult call(Status (*collective)(const Arguments&), const Arguments& arguments) noexcept {
  return moeyard::c_boundary<moeyard::HcclApi, HcclResult>(arguments.function,
                                                           [&] { return collective(arguments); });
}

}  // namespace

HcclResult HcclAllReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType, HcclReduceOp op,
                         HcclComm comm, aclrtStream stream) {
  return call(moeyard::hccl::all_reduce, {.function = "HcclAllReduce",
                                          .comm = comm,
                                          .stream = stream,
                                          .send = sendBuf,
                                          .recv = recvBuf,
                                          .count = count,
                                          .type = dataType,
                                          .op = op});
}

HcclResult HcclReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType, HcclReduceOp op,
                      uint32_t root, HcclComm comm, aclrtStream stream) {
  return call(moeyard::hccl::reduce, {.function = "HcclReduce",
                                      .comm = comm,
                                      .stream = stream,
                                      .send = sendBuf,
                                      .recv = recvBuf,
                                      .count = count,
                                      .type = dataType,
                                      .op = op,
                                      .root = root});
}

HcclResult HcclReduceScatter(void* sendBuf, void* recvBuf, uint64_t recvCount, HcclDataType dataType,
                             HcclReduceOp op, HcclComm comm, aclrtStream stream) {
  return call(moeyard::hccl::reduce_scatter, {.function = "HcclReduceScatter",
                                              .comm = comm,
                                              .stream = stream,
                                              .send = sendBuf,
                                              .recv = recvBuf,
                                              .count = recvCount,
                                              .type = dataType,
                                              .op = op});
}

HcclResult HcclReduceScatterV(void* sendBuf, const void* sendCounts, const void* sendDispls, void* recvBuf,
                              uint64_t recvCount, HcclDataType dataType, HcclReduceOp op, HcclComm comm,
                              aclrtStream stream) {
  return call(moeyard::hccl::reduce_scatter_v, {.function = "HcclReduceScatterV",
                                                .comm = comm,
                                                .stream = stream,
                                                .send = sendBuf,
                                                .recv = recvBuf,
                                                .count = recvCount,
                                                .type = dataType,
                                                .op = op,
                                                .send_counts = sendCounts,
                                                .send_displs = sendDispls});
}

HcclResult HcclBroadcast(void* buf, uint64_t count, HcclDataType dataType, uint32_t root, HcclComm comm,
                         aclrtStream stream) {
  return call(moeyard::hccl::broadcast, {.function = "HcclBroadcast",
                                         .comm = comm,
                                         .stream = stream,
                                         .recv = buf,
                                         .count = count,
                                         .type = dataType,
                                         .root = root});
}

HcclResult HcclScatter(void* sendBuf, void* recvBuf, uint64_t recvCount, HcclDataType dataType, uint32_t root,
                       HcclComm comm, aclrtStream stream) {
  return call(moeyard::hccl::scatter, {.function = "HcclScatter",
                                       .comm = comm,
                                       .stream = stream,
                                       .send = sendBuf,
                                       .recv = recvBuf,
                                       .count = recvCount,
                                       .type = dataType,
                                       .root = root});
}

HcclResult HcclAllGather(void* sendBuf, void* recvBuf, uint64_t sendCount, HcclDataType dataType,
                         HcclComm comm, aclrtStream stream) {
  return call(moeyard::hccl::all_gather, {.function = "HcclAllGather",
                                          .comm = comm,
                                          .stream = stream,
                                          .send = sendBuf,
                                          .recv = recvBuf,
                                          .count = sendCount,
                                          .type = dataType});
}

HcclResult HcclAllGatherV(void* sendBuf, uint64_t sendCount, void* recvBuf, const void* recvCounts,
                          const void* recvDispls, HcclDataType dataType, HcclComm comm, aclrtStream stream) {
  return call(moeyard::hccl::all_gather_v, {.function = "HcclAllGatherV",
                                            .comm = comm,
                                            .stream = stream,
                                            .send = sendBuf,
                                            .recv = recvBuf,
                                            .count = sendCount,
                                            .type = dataType,
                                            .recv_counts = recvCounts,
                                            .recv_displs = recvDispls});
}

HcclResult HcclAlltoAll(const void* sendBuf, uint64_t sendCount, HcclDataType sendType, const void* recvBuf,
                        uint64_t recvCount, HcclDataType recvType, HcclComm comm, aclrtStream stream) {
  return call(moeyard::hccl::all_to_all, {.function = "HcclAlltoAll",
                                          .comm = comm,
                                          .stream = stream,
                                          .send = sendBuf,
                                          .recv = const_cast<void*>(recvBuf),
                                          .count = sendCount,
                                          .type = sendType,
                                          .recv_count = recvCount,
                                          .recv_type = recvType});
}

HcclResult HcclAlltoAllV(const void* sendBuf, const void* sendCounts, const void* sdispls,
                         HcclDataType sendType, const void* recvBuf, const void* recvCounts,
                         const void* rdispls, HcclDataType recvType, HcclComm comm, aclrtStream stream) {
  return call(moeyard::hccl::all_to_all_v, {.function = "HcclAlltoAllV",
                                            .comm = comm,
                                            .stream = stream,
                                            .send = sendBuf,
                                            .recv = const_cast<void*>(recvBuf),
                                            .type = sendType,
                                            .send_counts = sendCounts,
                                            .send_displs = sdispls,
                                            .recv_counts = recvCounts,
                                            .recv_displs = rdispls,
                                            .recv_type = recvType});
}

HcclResult HcclAlltoAllVC(const void* sendBuf, const void* sendCountMatrix, HcclDataType sendType,
                          const void* recvBuf, HcclDataType recvType, HcclComm comm, aclrtStream stream) {
  return call(moeyard::hccl::all_to_all_vc, {.function = "HcclAlltoAllVC",
                                             .comm = comm,
                                             .stream = stream,
                                             .send = sendBuf,
                                             .recv = const_cast<void*>(recvBuf),
                                             .type = sendType,
                                             .send_counts = sendCountMatrix,
                                             .recv_type = recvType});
}

HcclResult HcclSend(void* sendBuf, uint64_t count, HcclDataType dataType, uint32_t destRank, HcclComm comm,
                    aclrtStream stream) {
  return call(moeyard::hccl::send, {.function = "HcclSend",
                                    .comm = comm,
                                    .stream = stream,
                                    .send = sendBuf,
                                    .count = count,
                                    .type = dataType,
                                    .root = destRank});
}

HcclResult HcclRecv(void* recvBuf, uint64_t count, HcclDataType dataType, uint32_t srcRank, HcclComm comm,
                    aclrtStream stream) {
  return call(moeyard::hccl::receive, {.function = "HcclRecv",
                                       .comm = comm,
                                       .stream = stream,
                                       .recv = recvBuf,
                                       .count = count,
                                       .type = dataType,
                                       .root = srcRank});
}

HcclResult HcclBatchSendRecv(HcclSendRecvItem* sendRecvInfo, uint32_t itemNum, HcclComm comm,
                             aclrtStream stream) {
  const Arguments arguments{.function = "HcclBatchSendRecv", .comm = comm, .stream = stream};
  return moeyard::c_boundary<moeyard::HcclApi, HcclResult>(
      arguments.function, [&] { return moeyard::hccl::batch(arguments, sendRecvInfo, itemNum); });
}
