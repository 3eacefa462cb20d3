// Moeyard. SPDX-License-Identifier: Apache-2.0
// The C boundary of hccl/hccl_comm.h.
#include "hccl/hccl_comm.h"

#include <cstring>

#include "base/boundary.h"
#include "hccl/collectives.h"
#include "hccl/communicators.h"
#include "hccl/config.h"
#include "hccl/group_calls.h"
#include "hccl/handles.h"

namespace {

using namespace moeyard;
using namespace moeyard::hccl;

template <class Body>
HcclResult boundary(const char* function, Body&& body) noexcept {
  return c_boundary<HcclApi, HcclResult>(function, std::forward<Body>(body));
}

HcclResult unsupported(const char* function) noexcept {
  return boundary(function, [&]() -> Status {
    return fail(HCCL_E_NOT_SUPPORT, TextCode::hccl_parameter, "{}: this function is not supported", function);
  });
}

Status check_key(const char* function, HcclConfig config) {
  if (config == HCCL_DETERMINISTIC) return {};
  return fail(HCCL_E_PARA, TextCode::hccl_parameter, "{}: config is {}, it must be HCCL_DETERMINISTIC (0)",
              function, static_cast<int>(config));
}

}  // namespace

HcclResult HcclCommInitAll(uint32_t ndev, int32_t* devices, HcclComm* comms) {
  return boundary(__func__, [&] { return init_all("HcclCommInitAll", ndev, devices, comms); });
}

HcclResult HcclGetRootInfo(HcclRootInfo* rootInfo) {
  return boundary(__func__, [&] { return get_root_info("HcclGetRootInfo", rootInfo); });
}

HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank,
                                HcclComm* comm) {
  return boundary(__func__,
                  [&] { return init_root_info("HcclCommInitRootInfo", nRanks, rootInfo, rank, {}, comm); });
}

HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank,
                                      const HcclCommConfig* config, HcclComm* comm) {
  return boundary(__func__, [&] {
    return init_root_info("HcclCommInitRootInfoConfig", nRanks, rootInfo, rank, {true, config}, comm);
  });
}

HcclResult HcclCommInitClusterInfo(const char* clusterInfo, uint32_t rank, HcclComm* comm) {
  return boundary(__func__,
                  [&] { return init_cluster_info("HcclCommInitClusterInfo", clusterInfo, rank, {}, comm); });
}

HcclResult HcclCommInitClusterInfoConfig(const char* clusterInfo, uint32_t rank, HcclCommConfig* config,
                                         HcclComm* comm) {
  return boundary(__func__, [&] {
    return init_cluster_info("HcclCommInitClusterInfoConfig", clusterInfo, rank, {true, config}, comm);
  });
}

HcclResult HcclCreateSubCommConfig(HcclComm* comm, uint32_t rankNum, uint32_t* rankIds, uint64_t subCommId,
                                   uint32_t subCommRankId, HcclCommConfig* config, HcclComm* subComm) {
  return boundary(__func__, [&] {
    return create_sub("HcclCreateSubCommConfig", comm, {rankIds, rankIds == nullptr ? 0 : rankNum},
                      rankIds == nullptr, subCommId, subCommRankId, config, subComm);
  });
}

HcclResult HcclCommDestroy(HcclComm comm) {
  return boundary(__func__, [&] { return destroy("HcclCommDestroy", comm); });
}

HcclResult HcclGetCommName(HcclComm comm, char* commName) {
  return boundary(__func__, [&]() -> Status {
    MOEYARD_TRY(check_pointer("HcclGetCommName", "commName", commName));
    const auto group = MOEYARD_TRY(find_comm("HcclGetCommName", comm));
    std::memcpy(commName, group->name().c_str(), group->name().size() + 1);
    return {};
  });
}

HcclResult HcclCommGetHandleWithName(const char* commName, HcclComm* comm) {
  return boundary(__func__, [&]() -> Status {
    MOEYARD_TRY(check_pointer("HcclCommGetHandleWithName", "commName", commName));
    MOEYARD_TRY(check_pointer("HcclCommGetHandleWithName", "comm", comm));
    *comm = MOEYARD_TRY(find_named("HcclCommGetHandleWithName", commName))->handle;
    return {};
  });
}

HcclResult HcclGetRankSize(HcclComm comm, uint32_t* rankSize) {
  return boundary(__func__, [&]() -> Status {
    MOEYARD_TRY(check_pointer("HcclGetRankSize", "rankSize", rankSize));
    *rankSize = static_cast<uint32_t>(MOEYARD_TRY(find_comm("HcclGetRankSize", comm))->size());
    return {};
  });
}

HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank) {
  return boundary(__func__, [&]() -> Status {
    MOEYARD_TRY(check_pointer("HcclGetRankId", "rank", rank));
    *rank = static_cast<uint32_t>(MOEYARD_TRY(find_comm("HcclGetRankId", comm))->rank());
    return {};
  });
}

HcclResult HcclBarrier(HcclComm comm, aclrtStream stream) {
  return boundary(__func__, [&] { return barrier({"HcclBarrier", comm, stream}); });
}

HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue) {
  return boundary(__func__, [&]() -> Status {
    MOEYARD_TRY(check_key("HcclSetConfig", config));
    return set_deterministic("HcclSetConfig", configValue.value);
  });
}

HcclResult HcclGetConfig(HcclConfig config, HcclConfigValue* configValue) {
  return boundary(__func__, [&]() -> Status {
    MOEYARD_TRY(check_pointer("HcclGetConfig", "configValue", configValue));
    MOEYARD_TRY(check_key("HcclGetConfig", config));
    configValue->value = MOEYARD_TRY(get_deterministic("HcclGetConfig"));
    return {};
  });
}

HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult* asyncError) {
  return boundary(__func__, [&]() -> Status {
    MOEYARD_TRY(check_pointer("HcclGetCommAsyncError", "asyncError", asyncError));
    const auto group = MOEYARD_TRY(find_comm("HcclGetCommAsyncError", comm));
    *asyncError = group->fault().ok() ? HCCL_SUCCESS : HCCL_E_REMOTE;
    return {};
  });
}

uint32_t HcclGetCommConfigCapability(void) { return HCCL_COMM_CONFIG_RESERVED; }

HcclResult HcclCommSuspend(HcclComm comm) {
  return boundary(__func__, [&]() -> Status {
    MOEYARD_TRY(find_comm("HcclCommSuspend", comm))->suspended = true;
    return {};
  });
}

HcclResult HcclCommResume(HcclComm comm) {
  return boundary(__func__, [&]() -> Status {
    MOEYARD_TRY(find_comm("HcclCommResume", comm))->suspended = false;
    return {};
  });
}

HcclResult HcclCommGetStatus(const char* commId, HcclCommStatus* status) {
  return boundary(__func__, [&]() -> Status {
    MOEYARD_TRY(check_pointer("HcclCommGetStatus", "commId", commId));
    MOEYARD_TRY(check_pointer("HcclCommGetStatus", "status", status));
    const auto group = MOEYARD_TRY(find_named("HcclCommGetStatus", commId));
    *status = !group->fault().ok() ? HCCL_COMM_STATUS_INVALID
              : group->suspended   ? HCCL_COMM_STATUS_SUSPENDING
                                   : HCCL_COMM_STATUS_READY;
    return {};
  });
}

HcclResult HcclGroupStart(void) {
  return boundary(__func__, [&] { return group_start(); });
}
HcclResult HcclGroupEnd(void) {
  return boundary(__func__, [&] { return group_end("HcclGroupEnd"); });
}
HcclResult HcclGroupStatusGet(bool* isGroupEnabled) {
  return boundary(__func__, [&]() -> Status {
    MOEYARD_TRY(check_pointer("HcclGroupStatusGet", "isGroupEnabled", isGroupEnabled));
    *isGroupEnabled = in_group();
    return {};
  });
}

HcclResult HcclGetHcclBuffer(HcclComm comm, void** buffer, uint64_t* size) {
  return boundary(__func__, [&]() -> Status {
    MOEYARD_TRY(check_pointer("HcclGetHcclBuffer", "buffer", buffer));
    MOEYARD_TRY(check_pointer("HcclGetHcclBuffer", "size", size));
    const auto group = MOEYARD_TRY(find_comm("HcclGetHcclBuffer", comm));
    const auto window = group->window(group->rank());
    if (!window) return Status(HCCL_E_MEMORY, window.error().message());
    *buffer = window->data;
    *size = static_cast<uint64_t>(window->bytes);
    return {};
  });
}

HcclResult HcclCommSetMemoryRange(HcclComm, void*, size_t, size_t, uint64_t) { return unsupported(__func__); }
HcclResult HcclCommUnsetMemoryRange(HcclComm, void*) { return unsupported(__func__); }
HcclResult HcclCommActivateCommMemory(HcclComm, void*, size_t, size_t, aclrtDrvMemHandle, uint64_t) {
  return unsupported(__func__);
}
HcclResult HcclCommDeactivateCommMemory(HcclComm, void*) { return unsupported(__func__); }
HcclResult HcclCommSymWinRegister(HcclComm, void*, uint64_t, CommSymWindow*, uint32_t) {
  return unsupported(__func__);
}
HcclResult HcclCommSymWinDeregister(CommSymWindow) { return unsupported(__func__); }
HcclResult HcclCommSymWinGet(HcclComm, void*, size_t, CommSymWindow*, size_t*) {
  return unsupported(__func__);
}
HcclResult HcclCommWorkingDevNicSet(HcclComm, uint32_t*, bool*, uint32_t) { return unsupported(__func__); }
HcclResult HcclConfigGetInfo(HcclComm, HcclConfigType, uint32_t, void*) { return unsupported(__func__); }
HcclResult HcclCommRegCommStateCallback(HcclComm, HcclCommStateCallback, void*) {
  return unsupported(__func__);
}
