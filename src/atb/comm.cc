// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "atb/comm.h"

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "atb/communicators.h"
#include "atb/failure.h"
#include "atb/tickets.h"

namespace moeyard::atb_layer {
namespace {

// Communicators of all ranks of a table, by those of some ranks that were made from them.
struct Parents {
  std::mutex mutex;
  std::map<::HcclComm, CommunicatorPtr> of;
};
Parents& parents() {
  static auto* made = new Parents;  // threads may outlive static objects
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
    ::HcclComm comm = nullptr;
    const std::string words = "CreateHcclComm " + std::to_string(rankRoot) + " " + std::to_string(rankSize);
    const HcclResult code = meet(words, rank, rankSize, comm);
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

HcclComm CreateHcclCrossMulitComm(const char* rankTableFile, uint32_t subCommRankId,
                                  std::vector<uint32_t>& rankIds, uint64_t subCommId, uint32_t hcclBufferSize,
                                  char* commName) {
  try {
    if (rankTableFile == nullptr || subCommRankId >= rankIds.size()) {
      fail(
          ERROR_INVALID_PARAM,
          "CreateHcclCrossMulitComm: rankTableFile is %s and subCommRankId %u, but a file and one of the %zu "
          "rankIds must be given",
          rankTableFile == nullptr ? "null" : rankTableFile, subCommRankId, rankIds.size());
      return nullptr;
    }
    const uint32_t rank = rankIds[subCommRankId];
    CommunicatorPtr parent;
    const HcclResult code = share(
        std::string("sub ") + rankTableFile + '\n' + std::to_string(rank),
        [&](::HcclComm& comm) { return HcclCommInitClusterInfo(rankTableFile, rank, &comm); }, parent);
    if (code != HCCL_SUCCESS) return nullptr;
    HcclCommConfig config;
    HcclCommConfigInit(&config);
    if (hcclBufferSize != 0) config.hcclBufferSize = hcclBufferSize;
    ::HcclComm whole = parent->get(), comm = nullptr;
    const HcclResult made = HcclCreateSubCommConfig(&whole, static_cast<uint32_t>(rankIds.size()),
                                                    rankIds.data(), subCommId, subCommRankId, &config, &comm);
    if (made != HCCL_SUCCESS) return nullptr;
    const std::lock_guard lock(parents().mutex);
    parents().of[comm] = std::move(parent);
    return named(made, comm, commName);
  } catch (...) {
    caught(ERROR_OUT_OF_HOST_MEMORY, "Comm", "CreateHcclCrossMulitComm");
    return nullptr;
  }
}

Status DestoryHcclComm(HcclComm comm) {
  if (comm == nullptr)
    return fail(ERROR_INVALID_PARAM,
                "DestoryHcclComm: comm is null; pass what one of the other functions made");
  if (HcclCommDestroy(comm) != HCCL_SUCCESS) return ERROR_HCCL_FAIL;
  CommunicatorPtr parent;  // the last of its children destroys it
  const std::lock_guard lock(parents().mutex);
  const auto found = parents().of.find(comm);
  if (found == parents().of.end()) return NO_ERROR;
  parent = std::move(found->second);
  parents().of.erase(found);
  return NO_ERROR;
}

}  // namespace atb::Comm
