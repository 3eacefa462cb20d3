// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// The collectives of hccl/hccl.h. Each is: checks, then a body that runs on the stream in two rounds. In the
// first the ranks compare counts, types, operation and root and expose their buffers; then every rank moves
// its share; in the second all know that all are done.
//
//                  who moves what                           read and written per rank (n: whole vector)
//   AllReduce      rank r reduces chunk r, writes it to all   n and n
//   Reduce         rank r reduces chunk r, writes it to root  n and n / R
//   ReduceScatter  rank r reduces block r into its own        n and n / R
//   the others     the receiver copies from the senders       what it receives, once
#pragma once
#include <cstdint>

#include "base/status.h"
#include "hccl/hccl.h"

namespace moeyard::hccl {

// What a C function was given; members it does not have stay as they are.
struct Arguments {
  const char* function;  // a literal
  HcclComm comm;
  aclrtStream stream;
  const void* send = nullptr;
  void* recv = nullptr;
  std::uint64_t count = 0;
  HcclDataType type = HCCL_DATA_TYPE_RESERVED;
  HcclReduceOp op = HCCL_REDUCE_RESERVED;
  std::uint32_t root = 0;
  // Arrays by rank, in elements.
  const void* send_counts = nullptr;
  const void* send_displs = nullptr;
  const void* recv_counts = nullptr;
  const void* recv_displs = nullptr;
  // What must be equal to count and type.
  std::uint64_t recv_count = 0;
  HcclDataType recv_type = HCCL_DATA_TYPE_RESERVED;
};

Status barrier(const Arguments& a);
Status broadcast(const Arguments& a);
Status scatter(const Arguments& a);
Status all_gather(const Arguments& a);
Status all_gather_v(const Arguments& a);
Status all_to_all(const Arguments& a);
Status all_to_all_v(const Arguments& a);
Status all_to_all_vc(const Arguments& a);  // send_counts: the matrix

Status all_reduce(const Arguments& a);
Status reduce(const Arguments& a);
Status reduce_scatter(const Arguments& a);
Status reduce_scatter_v(const Arguments& a);

// root: the partner.
Status send(const Arguments& a);
Status receive(const Arguments& a);
Status batch(const Arguments& a, const HcclSendRecvItem* items, std::uint32_t count);

}  // namespace moeyard::hccl
