// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// Functions that exist so that programs compile and link.
#include "acl/acl_dump.h"
#include "acl/acl_prof.h"
#include "runtime/acl_call.h"

using namespace moeyard;
using namespace moeyard::runtime;

namespace {
aclError not_supported(const char* called) {
  return acl_call(called, [](const char* function) {
    return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, TextCode::runtime_parameter,
                "{}: this function is not supported on devices made of host memory; do without it", function);
  });
}
}  // namespace

// acl_rt_allocator.h
aclrtAllocatorDesc aclrtAllocatorCreateDesc(void) {
  not_supported(__func__);
  return nullptr;
}
aclError aclrtAllocatorDestroyDesc(aclrtAllocatorDesc) { return not_supported(__func__); }
aclError aclrtAllocatorSetObjToDesc(aclrtAllocatorDesc, aclrtAllocator) { return not_supported(__func__); }
aclError aclrtAllocatorSetAllocFuncToDesc(aclrtAllocatorDesc, aclrtAllocatorAllocFunc) {
  return not_supported(__func__);
}
aclError aclrtAllocatorSetFreeFuncToDesc(aclrtAllocatorDesc, aclrtAllocatorFreeFunc) {
  return not_supported(__func__);
}
aclError aclrtAllocatorSetAllocAdviseFuncToDesc(aclrtAllocatorDesc, aclrtAllocatorAllocAdviseFunc) {
  return not_supported(__func__);
}
aclError aclrtAllocatorSetGetAddrFromBlockFuncToDesc(aclrtAllocatorDesc, aclrtAllocatorGetAddrFromBlockFunc) {
  return not_supported(__func__);
}
aclError aclrtAllocatorRegister(aclrtStream, aclrtAllocatorDesc) { return not_supported(__func__); }
aclError aclrtAllocatorGetByStream(aclrtStream, aclrtAllocatorDesc*, aclrtAllocator*,
                                   aclrtAllocatorAllocFunc*, aclrtAllocatorFreeFunc*,
                                   aclrtAllocatorAllocAdviseFunc*, aclrtAllocatorGetAddrFromBlockFunc*) {
  return not_supported(__func__);
}
aclError aclrtAllocatorUnregister(aclrtStream) { return not_supported(__func__); }

// acl_rt_unsupported.h
aclError aclmdlRICaptureBegin(aclrtStream, aclmdlRICaptureMode) { return not_supported(__func__); }
aclError aclmdlRICaptureGetInfo(aclrtStream, aclmdlRICaptureStatus*, aclmdlRI*) {
  return not_supported(__func__);
}
aclError aclmdlRICaptureEnd(aclrtStream, aclmdlRI*) { return not_supported(__func__); }
aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode*) { return not_supported(__func__); }
aclError aclmdlRICaptureTaskGrpBegin(aclrtStream) { return not_supported(__func__); }
aclError aclmdlRICaptureTaskGrpEnd(aclrtStream, aclrtTaskGrp*) { return not_supported(__func__); }
aclError aclmdlRICaptureTaskUpdateBegin(aclrtStream, aclrtTaskGrp) { return not_supported(__func__); }
aclError aclmdlRICaptureTaskUpdateEnd(aclrtStream) { return not_supported(__func__); }
aclError aclmdlRIBuildBegin(aclmdlRI*, uint32_t) { return not_supported(__func__); }
aclError aclmdlRIBuildEnd(aclmdlRI, void*) { return not_supported(__func__); }
aclError aclmdlRIBindStream(aclmdlRI, aclrtStream, uint32_t) { return not_supported(__func__); }
aclError aclmdlRIUnbindStream(aclmdlRI, aclrtStream) { return not_supported(__func__); }
aclError aclmdlRIEndTask(aclmdlRI, aclrtStream) { return not_supported(__func__); }
aclError aclmdlRIExecute(aclmdlRI, int32_t) { return not_supported(__func__); }
aclError aclmdlRIExecuteAsync(aclmdlRI, aclrtStream) { return not_supported(__func__); }
aclError aclmdlRIAbort(aclmdlRI) { return not_supported(__func__); }
aclError aclmdlRIDestroy(aclmdlRI) { return not_supported(__func__); }
aclError aclmdlRISetName(aclmdlRI, const char*) { return not_supported(__func__); }
aclError aclmdlRIGetName(aclmdlRI, uint32_t, char*) { return not_supported(__func__); }
aclError aclmdlRIDebugPrint(aclmdlRI) { return not_supported(__func__); }
aclError aclmdlRIDebugJsonPrint(aclmdlRI, const char*, uint32_t) { return not_supported(__func__); }
aclError aclrtCntNotifyCreate(aclrtCntNotify*, uint64_t) { return not_supported(__func__); }
aclError aclrtCntNotifyRecord(aclrtCntNotify, aclrtStream, aclrtCntNotifyRecordInfo*) {
  return not_supported(__func__);
}
aclError aclrtCntNotifyWaitWithTimeout(aclrtCntNotify, aclrtStream, aclrtCntNotifyWaitInfo*) {
  return not_supported(__func__);
}
aclError aclrtCntNotifyReset(aclrtCntNotify, aclrtStream) { return not_supported(__func__); }
aclError aclrtCntNotifyGetId(aclrtCntNotify, uint32_t*) { return not_supported(__func__); }
aclError aclrtCntNotifyDestroy(aclrtCntNotify) { return not_supported(__func__); }
aclrtBinary aclrtCreateBinary(const void*, size_t) {
  not_supported(__func__);
  return nullptr;
}
aclError aclrtDestroyBinary(aclrtBinary) { return not_supported(__func__); }
aclError aclrtBinaryLoad(const aclrtBinary, aclrtBinHandle*) { return not_supported(__func__); }
aclError aclrtBinaryLoadFromFile(const char*, aclrtBinaryLoadOptions*, aclrtBinHandle*) {
  return not_supported(__func__);
}
aclError aclrtBinaryLoadFromData(const void*, size_t, const aclrtBinaryLoadOptions*, aclrtBinHandle*) {
  return not_supported(__func__);
}
aclError aclrtBinaryUnLoad(aclrtBinHandle) { return not_supported(__func__); }
aclError aclrtBinaryGetFunction(const aclrtBinHandle, const char*, aclrtFuncHandle*) {
  return not_supported(__func__);
}
aclError aclrtBinaryGetFunctionByEntry(aclrtBinHandle, uint64_t, aclrtFuncHandle*) {
  return not_supported(__func__);
}
aclError aclrtBinaryGetDevAddress(const aclrtBinHandle, void**, size_t*) { return not_supported(__func__); }
aclError aclrtGetFunctionAddr(aclrtFuncHandle, void**, void**) { return not_supported(__func__); }
aclError aclrtGetFunctionName(aclrtFuncHandle, uint32_t, char*) { return not_supported(__func__); }
aclError aclrtKernelArgsInit(aclrtFuncHandle, aclrtArgsHandle*) { return not_supported(__func__); }
aclError aclrtKernelArgsInitByUserMem(aclrtFuncHandle, aclrtArgsHandle, void*, size_t) {
  return not_supported(__func__);
}
aclError aclrtKernelArgsGetMemSize(aclrtFuncHandle, size_t, size_t*) { return not_supported(__func__); }
aclError aclrtKernelArgsGetHandleMemSize(aclrtFuncHandle, size_t*) { return not_supported(__func__); }
aclError aclrtKernelArgsAppend(aclrtArgsHandle, void*, size_t, aclrtParamHandle*) {
  return not_supported(__func__);
}
aclError aclrtKernelArgsAppendPlaceHolder(aclrtArgsHandle, aclrtParamHandle*) {
  return not_supported(__func__);
}
aclError aclrtKernelArgsGetPlaceHolderBuffer(aclrtArgsHandle, aclrtParamHandle, size_t, void**) {
  return not_supported(__func__);
}
aclError aclrtKernelArgsParaUpdate(aclrtArgsHandle, aclrtParamHandle, void*, size_t) {
  return not_supported(__func__);
}
aclError aclrtKernelArgsFinalize(aclrtArgsHandle) { return not_supported(__func__); }
aclError aclrtLaunchKernel(aclrtFuncHandle, uint32_t, const void*, size_t, aclrtStream) {
  return not_supported(__func__);
}
aclError aclrtLaunchKernelV2(aclrtFuncHandle, uint32_t, const void*, size_t, aclrtLaunchKernelCfg*,
                             aclrtStream) {
  return not_supported(__func__);
}
aclError aclrtLaunchKernelWithConfig(aclrtFuncHandle, uint32_t, aclrtStream, aclrtLaunchKernelCfg*,
                                     aclrtArgsHandle, void*) {
  return not_supported(__func__);
}
aclError aclrtLaunchKernelWithHostArgs(aclrtFuncHandle, uint32_t, aclrtStream, aclrtLaunchKernelCfg*, void*,
                                       size_t, aclrtPlaceHolderInfo*, size_t) {
  return not_supported(__func__);
}
aclError aclrtGetOverflowStatus(void*, size_t, aclrtStream) { return not_supported(__func__); }
aclError aclrtResetOverflowStatus(aclrtStream) { return not_supported(__func__); }
aclError aclrtCreateLabel(aclrtLabel*) { return not_supported(__func__); }
aclError aclrtSetLabel(aclrtLabel, aclrtStream) { return not_supported(__func__); }
aclError aclrtDestroyLabel(aclrtLabel) { return not_supported(__func__); }
aclError aclrtCreateLabelList(aclrtLabel*, size_t, aclrtLabelList*) { return not_supported(__func__); }
aclError aclrtDestroyLabelList(aclrtLabelList) { return not_supported(__func__); }
aclError aclrtSwitchLabelByIndex(void*, uint32_t, aclrtLabelList, aclrtStream) {
  return not_supported(__func__);
}
aclError aclrtSwitchStream(void*, aclrtCondition, void*, aclrtCompareDataType, aclrtStream, aclrtStream,
                           aclrtStream) {
  return not_supported(__func__);
}
aclError aclrtActiveStream(aclrtStream, aclrtStream) { return not_supported(__func__); }
aclError aclrtReserveMemAddress(void**, size_t, size_t, void*, uint64_t) { return not_supported(__func__); }
aclError aclrtReleaseMemAddress(void*) { return not_supported(__func__); }
aclError aclrtMallocPhysical(aclrtDrvMemHandle*, size_t, const aclrtPhysicalMemProp*, uint64_t) {
  return not_supported(__func__);
}
aclError aclrtFreePhysical(aclrtDrvMemHandle) { return not_supported(__func__); }
aclError aclrtMapMem(void*, size_t, size_t, aclrtDrvMemHandle, uint64_t) { return not_supported(__func__); }
aclError aclrtUnmapMem(void*) { return not_supported(__func__); }
aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp*, aclrtMemGranularityOptions, size_t*) {
  return not_supported(__func__);
}
aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle, aclrtMemHandleType, uint64_t, uint64_t*) {
  return not_supported(__func__);
}
aclError aclrtMemImportFromShareableHandle(uint64_t, int32_t, aclrtDrvMemHandle*) {
  return not_supported(__func__);
}
aclError aclrtMemSetPidToShareableHandle(uint64_t, int32_t*, size_t) { return not_supported(__func__); }
aclError aclrtDeviceGetBareTgid(int32_t*) { return not_supported(__func__); }
aclError aclrtIpcMemGetExportKey(void*, size_t, char*, size_t, uint64_t) { return not_supported(__func__); }
aclError aclrtIpcMemSetImportPid(const char*, int32_t*, size_t) { return not_supported(__func__); }
aclError aclrtIpcMemImportByKey(void**, const char*, uint64_t) { return not_supported(__func__); }
aclError aclrtIpcMemClose(const char*) { return not_supported(__func__); }
aclError aclrtNotifyGetExportKey(aclrtNotify, char*, size_t, uint64_t) { return not_supported(__func__); }
aclError aclrtNotifySetImportPid(aclrtNotify, int32_t*, size_t) { return not_supported(__func__); }
aclError aclrtNotifyImportByKey(aclrtNotify*, const char*, uint64_t) { return not_supported(__func__); }
aclError aclrtMemAllocManaged(void**, uint64_t, uint32_t) { return not_supported(__func__); }
aclError aclrtGetMemUceInfo(int32_t, aclrtMemUceInfo*, size_t, size_t*) { return not_supported(__func__); }
aclError aclrtMemUceRepair(int32_t, aclrtMemUceInfo*, size_t) { return not_supported(__func__); }
aclError aclrtDeviceTaskAbort(int32_t, uint32_t) { return not_supported(__func__); }
aclError aclrtRandomNumAsync(const aclrtRandomNumTaskInfo*, const aclrtStream, void*) {
  return not_supported(__func__);
}
aclError aclrtSetGroup(int32_t) { return not_supported(__func__); }
aclError aclrtGetGroupCount(uint32_t*) { return not_supported(__func__); }
aclError aclrtGetAllGroupInfo(aclrtGroupInfo*) { return not_supported(__func__); }
aclError aclrtSnapShotProcessLock(void) { return not_supported(__func__); }
aclError aclrtSnapShotProcessUnlock(void) { return not_supported(__func__); }
aclError aclrtSnapShotProcessBackup(void) { return not_supported(__func__); }
aclError aclrtSnapShotProcessRestore(void) { return not_supported(__func__); }

// acl_prof.h
aclError aclprofInit(const char*, size_t) { return not_supported(__func__); }
aclError aclprofFinalize(void) { return not_supported(__func__); }
aclError aclprofStart(const aclprofConfig*) { return not_supported(__func__); }
aclError aclprofStop(const aclprofConfig*) { return not_supported(__func__); }
aclprofConfig* aclprofCreateConfig(uint32_t*, uint32_t, aclprofAicoreMetrics, const aclprofAicoreEvents*,
                                   uint64_t) {
  not_supported(__func__);
  return nullptr;
}
aclError aclprofDestroyConfig(const aclprofConfig*) { return not_supported(__func__); }
void* aclprofCreateStamp(void) {
  not_supported(__func__);
  return nullptr;
}
void aclprofDestroyStamp(void*) { not_supported(__func__); }
aclError aclprofSetStampTraceMessage(void*, const char*, uint32_t) { return not_supported(__func__); }
aclError aclprofMark(void*) { return not_supported(__func__); }
aclError aclprofPush(void*) { return not_supported(__func__); }
aclError aclprofPop(void) { return not_supported(__func__); }
aclError aclprofRangeStart(void*, uint32_t*) { return not_supported(__func__); }
aclError aclprofRangeStop(uint32_t) { return not_supported(__func__); }

// acl_dump.h
aclError acldumpRegCallback(int32_t (*const)(const acldumpChunk*, int32_t), int32_t) {
  return not_supported(__func__);
}
void acldumpUnregCallback(void) { not_supported(__func__); }
aclError aclmdlInitDump(void) { return not_supported(__func__); }
aclError aclmdlSetDump(const char*) { return not_supported(__func__); }
aclError aclmdlFinalizeDump(void) { return not_supported(__func__); }
