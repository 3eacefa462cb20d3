// Moeyard. SPDX-License-Identifier: Apache-2.0
// Communicators of HCCL. Compiles as C11 and as C++11. Every function returns HCCL_SUCCESS or an HCCL_E_ code
// and leaves a message for aclGetRecentErrMsg.
#ifndef HCCL_COMM_H_
#define HCCL_COMM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "acl/acl.h"
#include "hccl/hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Makes ndev ranks in this process: comms[i] has rank i and belongs to devices[i]. Called once, by one
// thread.
HcclResult HcclCommInitAll(uint32_t ndev, int32_t* devices, HcclComm* comms);

// Makes the ticket of a new communicator, which the ranks hand to HcclCommInitRootInfo.
HcclResult HcclGetRootInfo(HcclRootInfo* rootInfo);

// Joins the communicator of rootInfo as `rank` of the thread's current device; blocks until all nRanks have
// come.
HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank, HcclComm* comm);
HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank,
                                      const HcclCommConfig* config, HcclComm* comm);

// Joins the communicator that the rank table file clusterInfo describes; blocks until all its ranks have
// come.
HcclResult HcclCommInitClusterInfo(const char* clusterInfo, uint32_t rank, HcclComm* comm);
HcclResult HcclCommInitClusterInfoConfig(const char* clusterInfo, uint32_t rank, HcclCommConfig* config,
                                         HcclComm* comm);

// Makes rank subCommRankId of a communicator of the ranks rankIds of *comm. A rank that stays outside passes
// rankIds null and subCommId 0xFFFFFFFF, and gets null.
HcclResult HcclCreateSubCommConfig(HcclComm* comm, uint32_t rankNum, uint32_t* rankIds, uint64_t subCommId,
                                   uint32_t subCommRankId, HcclCommConfig* config, HcclComm* subComm);

// Ends this rank's part; the other ranks are not needed. HCCL_E_AGAIN while a collective of this rank runs.
HcclResult HcclCommDestroy(HcclComm comm);

// Writes the name, at most 128 bytes with its end, the same on all ranks.
HcclResult HcclGetCommName(HcclComm comm, char* commName);
// Finds the rank of the thread's current device by name.
HcclResult HcclCommGetHandleWithName(const char* commName, HcclComm* comm);
HcclResult HcclGetRankSize(HcclComm comm, uint32_t* rankSize);
HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank);

// The streams of all ranks meet.
HcclResult HcclBarrier(HcclComm comm, aclrtStream stream);

// Options of the process; results never depend on HCCL_DETERMINISTIC.
HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue);
HcclResult HcclGetConfig(HcclConfig config, HcclConfigValue* configValue);

// *asyncError: 0, or HCCL_E_REMOTE once the communicator is in fault.
HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult* asyncError);
const char* HcclGetErrorString(HcclResult code);
// See HcclCommConfigCapability.
uint32_t HcclGetCommConfigCapability(void);

// Between the two, this rank's new collectives are refused with HCCL_E_SUSPENDING.
HcclResult HcclCommSuspend(HcclComm comm);
HcclResult HcclCommResume(HcclComm comm);
HcclResult HcclCommGetStatus(const char* commId, HcclCommStatus* status);

// Calls of this thread between the two are submitted together by the last HcclGroupEnd: sends and receives of
// one stream do not block each other.
HcclResult HcclGroupStart(void);
HcclResult HcclGroupEnd(void);
HcclResult HcclGroupStatusGet(bool* isGroupEnabled);

// This rank's window of the communicator: HCCL_BUFFSIZE MiB, zero at first, alive until HcclCommDestroy.
HcclResult HcclGetHcclBuffer(HcclComm comm, void** buffer, uint64_t* size);

// Not supported: these return HCCL_E_NOT_SUPPORT and write nothing.
typedef void* CommSymWindow;
typedef HcclResult (*HcclCommStateCallback)(HcclComm comm, HcclCommStatePhase phase, void* userData);
HcclResult HcclCommSetMemoryRange(HcclComm comm, void* baseVirPtr, size_t size, size_t alignment,
                                  uint64_t flags);
HcclResult HcclCommUnsetMemoryRange(HcclComm comm, void* baseVirPtr);
HcclResult HcclCommActivateCommMemory(HcclComm comm, void* virPtr, size_t size, size_t offset,
                                      aclrtDrvMemHandle handle, uint64_t flags);
HcclResult HcclCommDeactivateCommMemory(HcclComm comm, void* virPtr);
HcclResult HcclCommSymWinRegister(HcclComm comm, void* addr, uint64_t size, CommSymWindow* winHandle,
                                  uint32_t flag);
HcclResult HcclCommSymWinDeregister(CommSymWindow winHandle);
HcclResult HcclCommSymWinGet(HcclComm comm, void* ptr, size_t size, CommSymWindow* winHandle, size_t* offset);
HcclResult HcclCommWorkingDevNicSet(HcclComm comm, uint32_t* ranks, bool* useBackup, uint32_t nRanks);
HcclResult HcclConfigGetInfo(HcclComm comm, HcclConfigType cfgType, uint32_t infoLen, void* info);
HcclResult HcclCommRegCommStateCallback(HcclComm comm, HcclCommStateCallback callback, void* userData);

// Fills config with "not set" and with the size and version of the caller's struct. Null: does nothing.
static inline void HcclCommConfigInit(HcclCommConfig* config) {
  struct {
    size_t size;
    uint32_t magicWord;
    uint32_t version;
    uint64_t reserved;
  } info;
  if (config == NULL) {
    return;
  }
  memset(config, 0, sizeof(*config));
  info.size = sizeof(*config);
  info.magicWord = HCCL_COMM_CONFIG_MAGIC_WORD;
  info.version = HCCL_COMM_CONFIG_VERSION;
  info.reserved = 0;
  memcpy(config->reserved, &info, sizeof(info));
  config->hcclBufferSize = HCCL_COMM_BUFFSIZE_CONFIG_NOT_SET;
  config->hcclDeterministic = HCCL_COMM_DETERMINISTIC_CONFIG_NOT_SET;
  config->hcclOpExpansionMode = HCCL_COMM_DEFAULT_OP_EXPANSION_MODE;
  config->hcclRdmaTrafficClass = HCCL_COMM_TRAFFIC_CLASS_CONFIG_NOT_SET;
  config->hcclRdmaServiceLevel = HCCL_COMM_SERVICE_LEVEL_CONFIG_NOT_SET;
  config->hcclExecTimeOut = HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET;
  config->hcclQos = HCCL_COMM_QOS_CONFIG_NOT_SET;
  config->hcclSymWinMaxMemSizePerRank = HCCL_DEFAULT_SYMMETRIC_MEMORY_STRIDE;
}

#ifdef __cplusplus
}
#endif
#endif  // HCCL_COMM_H_
