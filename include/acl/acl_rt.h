// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// The runtime: devices, contexts, streams, events, memory, copies, callbacks.
//
// Every function returns 0 or a code; aclGetRecentErrMsg has the sentence that belongs to it. On failure no
// output parameter is written. Codes that any function may return and that are not repeated below:
//   100000  a null pointer where an object or an output is needed
//   107002  no current context, in functions that use streams, events, device memory or copies
//   107017  a handle that is not alive
//   500001  the process was forked after the first call
// A stream that is null is the default stream of the current context. All functions may be called from any
// thread.
#ifndef ACL_ACL_RT_H_
#define ACL_ACL_RT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acl/acl_base.h"
#include "acl/acl_rt_allocator.h"
#include "acl/acl_rt_types.h"
#include "acl/acl_rt_unsupported.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- Start and end
// -------------------------------------------------------------------------------------------------

// configPath: null, "" or a JSON file. No function depends on this call. 100002 if it was called before:
// nothing changes, but the reference count goes up. 100003 no such file, 100006 no JSON, 100000 another
// content than before.
ACL_FUNC_VISIBILITY aclError aclInit(const char* configPath);
// Ends whatever the count is. 100037 if there is nothing to end. Memory, streams and devices stay.
ACL_FUNC_VISIBILITY aclError aclFinalize(void);
// Counts one down and ends at 0; refCount, which may be null, gets the count. 100037 if it was 0.
ACL_FUNC_VISIBILITY aclError aclFinalizeReference(uint64_t* refCount);

// Messages of this thread's failed calls since the last call of this function, newest first, one a line; null
// if there are none. Valid until the next call in this thread.
ACL_FUNC_VISIBILITY const char* aclGetRecentErrMsg(void);
// Last code of the runtime in this thread that was not 0; Get clears it.
ACL_FUNC_VISIBILITY aclError aclrtPeekAtLastError(aclrtLastErrLevel level);
ACL_FUNC_VISIBILITY aclError aclrtGetLastError(aclrtLastErrLevel level);

ACL_FUNC_VISIBILITY aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion,
                                             int32_t* patchVersion);
// Version of a package by name ("runtime", ...): text in a buffer of 128 characters; a number that grows.
ACL_FUNC_VISIBILITY aclError aclsysGetVersionStr(char* pkgName, char* versionStr);
ACL_FUNC_VISIBILITY aclError aclsysGetVersionNum(char* pkgName, int32_t* versionNum);

// ---- Devices: 0 to count - 1, else 107001
// --------------------------------------------------------------------------

// Makes the device's default context current in this thread and counts one use of the device.
ACL_FUNC_VISIBILITY aclError aclrtSetDevice(int32_t deviceId);
// Device of this thread's context. 107002 if it has none.
ACL_FUNC_VISIBILITY aclError aclrtGetDevice(int32_t* deviceId);
// 207004: ASCEND_RT_VISIBLE_DEVICES leaves no device.
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceCount(uint32_t* count);
// Counts one use down; at 0 waits for the streams of the default context and releases it with them. Force
// does so at once. 507007 if the device is not in use.
ACL_FUNC_VISIBILITY aclError aclrtResetDevice(int32_t deviceId);
ACL_FUNC_VISIBILITY aclError aclrtResetDeviceForce(int32_t deviceId);
// Waits for all streams of the current device and returns the first error of one. timeout in ms, -1 waits
// forever, 0 or less than -1: 107000. 507046 when it is over; the work goes on.
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeDevice(void);
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout);
ACL_FUNC_VISIBILITY aclError aclrtGetRunMode(aclrtRunMode* runMode);
ACL_FUNC_VISIBILITY aclError aclrtSetTsDevice(aclrtTsId tsId);
ACL_FUNC_VISIBILITY aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus* deviceStatus);
// Bytes, counts or identifiers. 207000: a figure that the emulated chip does not give.
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t* value);
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceUtilizationRate(int32_t deviceId,
                                                           aclrtUtilizationInfo* utilizationInfo);
// Peer access works between all devices, enabled or not. flags must be 0 (107000), the devices two (107001).
ACL_FUNC_VISIBILITY aclError aclrtDeviceCanAccessPeer(int32_t* canAccessPeer, int32_t deviceId,
                                                      int32_t peerDeviceId);
ACL_FUNC_VISIBILITY aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags);
ACL_FUNC_VISIBILITY aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId);
ACL_FUNC_VISIBILITY aclError aclrtDevicePeerAccessStatus(int32_t deviceId, int32_t peerDeviceId,
                                                         int32_t* status);
// Numbers of cores, kept and read back; they limit nothing. Between 1 and the device's number, else 107000. A
// limit of a stream comes before that of its device.
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type,
                                                    uint32_t* value);
ACL_FUNC_VISIBILITY aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type,
                                                    uint32_t value);
ACL_FUNC_VISIBILITY aclError aclrtResetDeviceResLimit(int32_t deviceId);
ACL_FUNC_VISIBILITY aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type,
                                                    uint32_t* value);
ACL_FUNC_VISIBILITY aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type,
                                                    uint32_t value);
ACL_FUNC_VISIBILITY aclError aclrtResetStreamResLimit(aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtUseStreamResInCurrentThread(aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtUnuseStreamResInCurrentThread(aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t* value);

// ---- Contexts and options
// ------------------------------------------------------------------------------------------

// A context has a default stream; the new one becomes current in this thread. 107001: no such device.
ACL_FUNC_VISIBILITY aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId);
// Waits for its streams. 107002: the default context of a device, or destroyed before.
ACL_FUNC_VISIBILITY aclError aclrtDestroyContext(aclrtContext context);
// 107002: not a live context.
ACL_FUNC_VISIBILITY aclError aclrtSetCurrentContext(aclrtContext context);
ACL_FUNC_VISIBILITY aclError aclrtGetCurrentContext(aclrtContext* context);
ACL_FUNC_VISIBILITY aclError aclrtCtxGetCurrentDefaultStream(aclrtStream* stream);
// active: 1 if the default context of the device exists.
ACL_FUNC_VISIBILITY aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t* flags, int32_t* active);
// Options of the current context and of the process. 100000: no such option. 107021: the context form, if
// neither was set.
ACL_FUNC_VISIBILITY aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t* value);
ACL_FUNC_VISIBILITY aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value);
ACL_FUNC_VISIBILITY aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t* value);
ACL_FUNC_VISIBILITY aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value);
ACL_FUNC_VISIBILITY aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode);
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode* mode);
// Longest wait of a stream for an event, in s; 0 is forever. Then the stream gets 107019 and goes on.
ACL_FUNC_VISIBILITY aclError aclrtSetOpWaitTimeout(uint32_t timeout);
// Longest run of one operator, in s, ms and us; 0 is the default, no limit. An operator that ran longer gives
// its stream 507014 when it ends. actualTimeout gets the value that is used.
ACL_FUNC_VISIBILITY aclError aclrtSetOpExecuteTimeOut(uint32_t timeout);
ACL_FUNC_VISIBILITY aclError aclrtSetOpExecuteTimeOutWithMs(uint32_t timeout);
ACL_FUNC_VISIBILITY aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t* actualTimeout);
// Step of the times above, in us.
ACL_FUNC_VISIBILITY aclError aclrtGetOpTimeOutInterval(uint64_t* interval);
ACL_FUNC_VISIBILITY aclError aclrtGetOpExecuteTimeout(uint32_t* const timeoutMs);

// ---- Streams
// -------------------------------------------------------------------------------------------------------
//
// Work of a stream runs in the order of submission, after the call has returned. What fails then becomes the
// stream's error: the first one is returned once, by the next synchronise of the stream, an event on it, or
// its device.

ACL_FUNC_VISIBILITY aclError aclrtCreateStream(aclrtStream* stream);
// priority 0 (highest) to 7, flag: ACL_STREAM_*. 107000: unknown bits.
ACL_FUNC_VISIBILITY aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority,
                                                         uint32_t flag);
ACL_FUNC_VISIBILITY aclError aclrtCreateStreamV2(aclrtStream* stream, const aclrtStreamConfigHandle* handle);
ACL_FUNC_VISIBILITY aclrtStreamConfigHandle* aclrtCreateStreamConfigHandle(void);
ACL_FUNC_VISIBILITY aclError aclrtDestroyStreamConfigHandle(aclrtStreamConfigHandle* handle);
// valueSize is the size of the member that attr names, else 100000.
ACL_FUNC_VISIBILITY aclError aclrtSetStreamConfigOpt(aclrtStreamConfigHandle* handle,
                                                     aclrtStreamConfigAttr attr, const void* attrValue,
                                                     size_t valueSize);
// Waits for the stream's work; its error is dropped. Force drops what has not started. 107003: a stream of
// another context. 107000: a default stream.
ACL_FUNC_VISIBILITY aclError aclrtDestroyStream(aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtDestroyStreamForce(aclrtStream stream);
// timeout as aclrtSynchronizeDeviceWithTimeout. The stream may belong to any context.
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeStream(aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout);
// Returns an error of the stream without using it up.
ACL_FUNC_VISIBILITY aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status);
ACL_FUNC_VISIBILITY aclError aclrtStreamGetId(aclrtStream stream, int32_t* streamId);
ACL_FUNC_VISIBILITY aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t* priority);
ACL_FUNC_VISIBILITY aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t* flags);
ACL_FUNC_VISIBILITY aclError aclrtGetStreamAvailableNum(uint32_t* streamCount);
ACL_FUNC_VISIBILITY aclError aclrtDeviceGetStreamPriorityRange(int32_t* leastPriority,
                                                               int32_t* greatestPriority);
// mode: ACL_CONTINUE_ON_FAILURE or ACL_STOP_ON_FAILURE, which drops what follows a failure and refuses new
// work until the error was returned. Once per stream, then 107000.
ACL_FUNC_VISIBILITY aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode);
ACL_FUNC_VISIBILITY aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                                     aclrtStreamAttrValue* value);
ACL_FUNC_VISIBILITY aclError aclrtGetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                                     aclrtStreamAttrValue* value);
ACL_FUNC_VISIBILITY aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag);
ACL_FUNC_VISIBILITY aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t* flag);
// Drop the work that has not started; a thread that synchronises gets 107023.
ACL_FUNC_VISIBILITY aclError aclrtStreamAbort(aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtStreamStop(aclrtStream stream);
// Later work of the stream waits for the work that the event's latest record captured; an event that was
// never recorded waits for nothing. timeout in ms (0 or -1: aclrtSetOpWaitTimeout decides), then the stream
// gets 107019.
ACL_FUNC_VISIBILITY aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);
ACL_FUNC_VISIBILITY aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event,
                                                             int32_t timeout);
ACL_FUNC_VISIBILITY aclError aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event,
                                                          uint32_t timeout, uint32_t flag);

// ---- Events
// --------------------------------------------------------------------------------------------------------

// With times and waits. flag: ACL_EVENT_*; 0 or unknown bits: 107000. An event of Ex cannot be reset, nor
// asked for the status of its waits (207000).
ACL_FUNC_VISIBILITY aclError aclrtCreateEvent(aclrtEvent* event);
ACL_FUNC_VISIBILITY aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag);
ACL_FUNC_VISIBILITY aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag);
// Also while it is pending.
ACL_FUNC_VISIBILITY aclError aclrtDestroyEvent(aclrtEvent event);
// Captures the work that was submitted to the stream so far. 107003: a stream of another context.
ACL_FUNC_VISIBILITY aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream, uint32_t flag);
// Puts the event back to not recorded, once the stream has come so far. 207000: an event without
// ACL_EVENT_SYNC.
ACL_FUNC_VISIBILITY aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream);
// An event that was never recorded is complete.
ACL_FUNC_VISIBILITY aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status);
ACL_FUNC_VISIBILITY aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status);
ACL_FUNC_VISIBILITY aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus* status);
// Waits for what the latest record captured. timeout as for streams, 507047 when it is over.
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeEvent(aclrtEvent event);
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout);
// Milliseconds from start to end. 107006: not recorded or no times. 507006: not complete.
ACL_FUNC_VISIBILITY aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent, aclrtEvent endEvent);
// Microseconds of a steady clock; codes as above.
ACL_FUNC_VISIBILITY aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t* timestamp);
ACL_FUNC_VISIBILITY aclError aclrtGetEventId(aclrtEvent event, uint32_t* eventId);
ACL_FUNC_VISIBILITY aclError aclrtGetEventAvailNum(uint32_t* eventCount);

// A notify is a flag between streams: a wait takes it back. flag must be 0 (107000); timeout in s, 0 is
// forever.
ACL_FUNC_VISIBILITY aclError aclrtCreateNotify(aclrtNotify* notify, uint64_t flag);
ACL_FUNC_VISIBILITY aclError aclrtDestroyNotify(aclrtNotify notify);
ACL_FUNC_VISIBILITY aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t* notifyId);
ACL_FUNC_VISIBILITY aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream,
                                                     uint32_t timeout);

// ---- Memory
// --------------------------------------------------------------------------------------------------------

// Device memory of the current context's device: 64-byte aligned, 2 MiB aligned from 2 MiB up, not
// initialised. size in bytes; the block holds round_up(size, 32) + 32 of them. 100000: size 0 or beyond any
// address. 207001: out of memory.
ACL_FUNC_VISIBILITY aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy policy);
ACL_FUNC_VISIBILITY aclError aclrtMallocAlign32(void** devPtr, size_t size, aclrtMemMallocPolicy policy);
ACL_FUNC_VISIBILITY aclError aclrtMallocCached(void** devPtr, size_t size, aclrtMemMallocPolicy policy);
// cfg may be null; of its attributes DEVICE_ID counts.
ACL_FUNC_VISIBILITY aclError aclrtMallocWithCfg(void** devPtr, size_t size, aclrtMemMallocPolicy policy,
                                                aclrtMallocConfig* cfg);
// Waits for nothing. 107000: not the start of a live block of device memory.
ACL_FUNC_VISIBILITY aclError aclrtFree(void* devPtr);
// As aclrtFree, after a synchronise of the device.
ACL_FUNC_VISIBILITY aclError aclrtFreeWithDevSync(void* devPtr);
// Host memory that copies know as such. 107000 of the frees: not the start of a live block of it.
ACL_FUNC_VISIBILITY aclError aclrtMallocHost(void** hostPtr, size_t size);
ACL_FUNC_VISIBILITY aclError aclrtMallocHostWithCfg(void** ptr, uint64_t size, aclrtMallocConfig* cfg);
ACL_FUNC_VISIBILITY aclError aclrtFreeHost(void* hostPtr);
ACL_FUNC_VISIBILITY aclError aclrtFreeHostWithDevSync(void* hostPtr);

// Copies count bytes; the ranges may overlap. Does not wait for streams. kind is a hint. count 0 is always 0.
// 107000: count > destMax, or a range that leaves the block it starts in.
ACL_FUNC_VISIBILITY aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count,
                                         aclrtMemcpyKind kind);
// The same, queued: both ranges must stay until the stream has been synchronised. 107003: a stream of another
// context.
ACL_FUNC_VISIBILITY aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count,
                                              aclrtMemcpyKind kind, aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtMemcpyAsyncWithCondition(void* dst, size_t destMax, const void* src,
                                                           size_t count, aclrtMemcpyKind kind,
                                                           aclrtStream stream);
// height rows of width bytes, dpitch and spitch bytes apart. 100000: width beyond a pitch, a 0, kind not 0
// to 3.
ACL_FUNC_VISIBILITY aclError aclrtMemcpy2d(void* dst, size_t dpitch, const void* src, size_t spitch,
                                           size_t width, size_t height, aclrtMemcpyKind kind);
ACL_FUNC_VISIBILITY aclError aclrtMemcpy2dAsync(void* dst, size_t dpitch, const void* src, size_t spitch,
                                                size_t width, size_t height, aclrtMemcpyKind kind,
                                                aclrtStream stream);
// numBatches copies. attrs[i] holds from copy attrsIndexes[i] on: ascending, the first one 0. On failure
// failIndex gets the copy that was refused, or SIZE_MAX if that is not what failed; then no copy is made.
ACL_FUNC_VISIBILITY aclError aclrtMemcpyBatch(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                                              size_t numBatches, aclrtMemcpyBatchAttr* attrs,
                                              size_t* attrsIndexes, size_t numAttrs, size_t* failIndex);
ACL_FUNC_VISIBILITY aclError aclrtMemcpyBatchAsync(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                                                   size_t numBatches, aclrtMemcpyBatchAttr* attrs,
                                                   size_t* attrsIndexes, size_t numAttrs, size_t* failIndex,
                                                   aclrtStream stream);
// Sets count bytes to the low byte of value. 107000: count > maxCount.
ACL_FUNC_VISIBILITY aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count);
ACL_FUNC_VISIBILITY aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count,
                                              aclrtStream stream);
// Sets N words of 32 bits. 107000: more than memSize bytes, or an address that is no multiple of 4.
ACL_FUNC_VISIBILITY aclError aclrtMemsetD32(void* ptr, size_t memSize, uint32_t value, size_t N);
ACL_FUNC_VISIBILITY aclError aclrtMemsetD32Async(void* ptr, size_t memSize, uint32_t value, size_t N,
                                                 aclrtStream stream);
// Device memory is coherent with the host: these only check their arguments.
ACL_FUNC_VISIBILITY aclError aclrtMemFlush(void* devPtr, size_t size);
ACL_FUNC_VISIBILITY aclError aclrtMemInvalidate(void* devPtr, size_t size);

// Bytes of the machine that are free and there are.
ACL_FUNC_VISIBILITY aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t* free, size_t* total);
// Bytes of device memory in use, and the most so far: one entry, "runtime".
ACL_FUNC_VISIBILITY aclError aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo* memUsageInfo,
                                                  size_t inputNum, size_t* outputNum);
// DEVICE with its id, HOST, or UNREGISTERED for memory the runtime does not know.
ACL_FUNC_VISIBILITY aclError aclrtPointerGetAttributes(const void* ptr, aclrtPtrAttributes* attributes);
// Makes memory of the program known as host memory; devices see it at the same address. 507910: registered
// before. 507911: not registered.
ACL_FUNC_VISIBILITY aclError aclrtHostRegister(void* ptr, uint64_t size, aclrtHostRegisterType type,
                                               void** devPtr);
ACL_FUNC_VISIBILITY aclError aclrtHostRegisterV2(void* ptr, uint64_t size, uint32_t flag);
ACL_FUNC_VISIBILITY aclError aclrtHostGetDevicePointer(void* pHost, void** pDevice, uint32_t flag);
ACL_FUNC_VISIBILITY aclError aclrtHostUnregister(void* ptr);

// dst[i] = dst[i] op src[i] for count bytes; int8, int16, int32, fp16, bf16, fp32, else 107000. reserve is
// null.
ACL_FUNC_VISIBILITY aclError aclrtReduceAsync(void* dst, const void* src, uint64_t count,
                                              aclrtReduceKind kind, aclDataType type, aclrtStream stream,
                                              void* reserve);
// Write 64 bits to an 8-byte aligned address; wait there for ACL_STREAM_WAIT_VALUE_*. flag of Write must be
// 0.
ACL_FUNC_VISIBILITY aclError aclrtValueWrite(void* devAddr, uint64_t value, uint32_t flag,
                                             aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtValueWait(void* devAddr, uint64_t value, uint32_t flag, aclrtStream stream);

// ---- Callbacks and exceptions
// --------------------------------------------------------------------------------------

// Runs fn in the thread that subscribed to the stream and calls aclrtProcessReport; with ACL_CALLBACK_BLOCK
// later work waits for it. 107015: nobody subscribed.
ACL_FUNC_VISIBILITY aclError aclrtLaunchCallback(aclrtCallback fn, void* userData,
                                                 aclrtCallbackBlockType blockType, aclrtStream stream);
// threadId: pthread_self(). 107011: the stream has a subscriber. Un: 107011 or 107012 if this is not the one.
ACL_FUNC_VISIBILITY aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream);
// Runs one callback. timeout in ms, -1 forever. 107012: this thread has not subscribed. 507012: nothing came.
ACL_FUNC_VISIBILITY aclError aclrtProcessReport(int32_t timeout);
// Runs fn in the stream's order, on a thread of the library. fn must not wait for the stream.
ACL_FUNC_VISIBILITY aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void* args);

// Called, on a thread of the library, when work of a stream fails. Set takes the place of an earlier one
// (null: none); Register keeps several. Register twice, or Unregister of none: 107000.
ACL_FUNC_VISIBILITY aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback);
ACL_FUNC_VISIBILITY aclError aclrtExceptionInfoCallbackRegister(aclrtExceptionInfoCallback callback);
ACL_FUNC_VISIBILITY aclError aclrtExceptionInfoCallbackUnregister(aclrtExceptionInfoCallback callback);
// 0xFFFFFFFF if info is null. The task is the position of the work in its stream, the thread that which ran
// it.
ACL_FUNC_VISIBILITY uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo* info);
ACL_FUNC_VISIBILITY uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo* info);
ACL_FUNC_VISIBILITY uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo* info);
ACL_FUNC_VISIBILITY uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo* info);
ACL_FUNC_VISIBILITY uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo* info);

#ifdef __cplusplus
}
#endif

#endif  // ACL_ACL_RT_H_
