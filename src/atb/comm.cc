// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "atb/comm.h"

#include <map>
#include <mutex>
#include <utility>

#include "atb/failure.h"
#include "hccl/hccl.h"

namespace moeyard::atb_layer {
namespace {

// The ticket of the communicator that is being made, for each pair of root and size: the first rank makes it, the last one
// takes it away.
class Tickets {
 public:
  HcclResult take(std::int32_t root, std::int32_t size, HcclRootInfo& info) {
    const std::lock_guard lock(mutex_);
    const auto [found, is_first] = open_.try_emplace({root, size});
    Ticket& ticket = found->second;
    if (is_first) {
      if (const HcclResult code = HcclGetRootInfo(&ticket.info); code != HCCL_SUCCESS) {
        open_.erase(found);
        return code;
      }
      ticket.missing = size;
    }
    info = ticket.info;
    if (--ticket.missing == 0) open_.erase(found);
    return HCCL_SUCCESS;
  }

 private:
  struct Ticket {
    HcclRootInfo info;
    std::int32_t missing;
  };
  std::mutex mutex_;
  std::map<std::pair<std::int32_t, std::int32_t>, Ticket> open_;
};

Tickets& tickets() {
  static auto* made = new Tickets;  // threads may outlive static objects
  return *made;
}

// Null, with the message that HCCL has left, if it failed.
::HcclComm named(HcclResult code, ::HcclComm comm, char* name) {
  if (code != HCCL_SUCCESS) return nullptr;
  if (name != nullptr) HcclGetCommName(comm, name);
  return comm;
}

}  // namespace
}  // namespace moeyard::atb_layer

namespace atb::Comm {

using namespace moeyard::atb_layer;

HcclComm CreateHcclComm(int32_t rank, int32_t rankRoot, int32_t rankSize, char* commName) {
  try {
    if (rankSize <= 0 || rank < 0 || rank >= rankSize || rankRoot < 0 || rankRoot >= rankSize) {
      fail(ERROR_INVALID_PARAM,
           "CreateHcclComm: rank is %d, rankRoot %d and rankSize %d but both ranks must lie in [0, rankSize)",
           rank, rankRoot, rankSize);
      return nullptr;
    }
    HcclRootInfo info;
    if (tickets().take(rankRoot, rankSize, info) != HCCL_SUCCESS) return nullptr;
    ::HcclComm comm = nullptr;
    const HcclResult code =
        HcclCommInitRootInfo(static_cast<uint32_t>(rankSize), &info, static_cast<uint32_t>(rank), &comm);
    return named(code, comm, commName);
  } catch (...) {
    caught(ERROR_OUT_OF_HOST_MEMORY, "Comm", "CreateHcclComm");
    return nullptr;
  }
}

HcclComm CreateHcclCommByRankTableFile(int32_t rank, int32_t rankSize, const char* rankTableFile,
                                       char* commName) {
  ::HcclComm comm = nullptr;
  if (rank < 0 || rank >= rankSize) {
    fail(ERROR_INVALID_PARAM, "CreateHcclCommByRankTableFile: rank is %d but must lie in [0, %d)", rank,
         rankSize);
    return nullptr;
  }
  return named(HcclCommInitClusterInfo(rankTableFile, static_cast<uint32_t>(rank), &comm), comm, commName);
}

HcclComm CreateHcclCrossMulitComm(const char* /*rankTableFile*/, uint32_t /*subCommRankId*/,
                                  std::vector<uint32_t>& /*rankIds*/, uint64_t /*subCommId*/,
                                  uint32_t /*hcclBufferSize*/, char* /*commName*/) {
  fail(ERROR_INVALID_PARAM, "CreateHcclCrossMulitComm: not supported yet; use HcclCreateSubCommConfig");
  return nullptr;
}

Status DestoryHcclComm(HcclComm comm) {
  if (comm == nullptr)
    return fail(ERROR_INVALID_PARAM,
                "DestoryHcclComm: comm is null; pass what one of the other functions made");
  return HcclCommDestroy(comm) == HCCL_SUCCESS ? NO_ERROR : ERROR_HCCL_FAIL;
}

}  // namespace atb::Comm
