// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// C++ forms of runtime functions: typed pointers, and timeouts and flags as overloads. Each one calls the C
// function.
#ifndef ACL_ACL_RT_API_H_
#define ACL_ACL_RT_API_H_

#ifndef __cplusplus
#error "acl/acl_rt_api.h is for C++; include acl/acl_rt.h instead"
#endif

#include "acl/acl_rt.h"

inline aclError aclrtSynchronizeDevice(int32_t timeout) { return aclrtSynchronizeDeviceWithTimeout(timeout); }

inline aclError aclrtSynchronizeStream(aclrtStream stream, int32_t timeout) {
  return aclrtSynchronizeStreamWithTimeout(stream, timeout);
}

inline aclError aclrtSynchronizeEvent(aclrtEvent event, int32_t timeout) {
  return aclrtSynchronizeEventWithTimeout(event, timeout);
}

inline aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event, int32_t timeout) {
  return aclrtStreamWaitEventWithTimeout(stream, event, timeout);
}

inline aclError aclrtCreateStream(aclrtStream* stream, uint32_t priority, uint32_t flag) {
  return aclrtCreateStreamWithConfig(stream, priority, flag);
}

inline aclError aclrtSetOpExecuteTimeOut(uint64_t timeout, uint64_t* actualTimeout) {
  return aclrtSetOpExecuteTimeOutV2(timeout, actualTimeout);
}

inline aclError aclrtCreateEvent(aclrtEvent* event, uint32_t flag) {
  return aclrtCreateEventWithFlag(event, flag);
}

template <typename T>
inline aclError aclrtMalloc(T** devPtr, size_t size,
                            aclrtMemMallocPolicy policy = ACL_MEM_MALLOC_HUGE_FIRST) {
  return ::aclrtMalloc(reinterpret_cast<void**>(devPtr), size, policy);
}

template <typename T>
inline aclError aclrtMallocHost(T** hostPtr, size_t size) {
  return ::aclrtMallocHost(reinterpret_cast<void**>(hostPtr), size);
}

template <typename T, typename U>
inline aclError aclrtMemcpy(T* dst, size_t destMax, const U* src, size_t count, aclrtMemcpyKind kind) {
  return ::aclrtMemcpy(static_cast<void*>(dst), destMax, static_cast<const void*>(src), count, kind);
}

template <typename T, typename U>
inline aclError aclrtMemcpyAsync(T* dst, size_t destMax, const U* src, size_t count, aclrtMemcpyKind kind,
                                 aclrtStream stream) {
  return ::aclrtMemcpyAsync(static_cast<void*>(dst), destMax, static_cast<const void*>(src), count, kind,
                            stream);
}

template <typename T, typename U>
inline aclError aclrtMemcpy2d(T* dst, size_t dpitch, const U* src, size_t spitch, size_t width, size_t height,
                              aclrtMemcpyKind kind) {
  return ::aclrtMemcpy2d(static_cast<void*>(dst), dpitch, static_cast<const void*>(src), spitch, width,
                         height, kind);
}

template <typename T, typename U>
inline aclError aclrtMemcpy2dAsync(T* dst, size_t dpitch, const U* src, size_t spitch, size_t width,
                                   size_t height, aclrtMemcpyKind kind, aclrtStream stream) {
  return ::aclrtMemcpy2dAsync(static_cast<void*>(dst), dpitch, static_cast<const void*>(src), spitch, width,
                              height, kind, stream);
}

template <typename T, typename U>
inline aclError aclrtMemcpyBatch(T** dsts, size_t* destMaxs, U** srcs, size_t* sizes, size_t numBatches,
                                 aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes, size_t numAttrs,
                                 size_t* failIndex) {
  return ::aclrtMemcpyBatch(reinterpret_cast<void**>(dsts), destMaxs, reinterpret_cast<void**>(srcs), sizes,
                            numBatches, attrs, attrsIndexes, numAttrs, failIndex);
}

#endif  // ACL_ACL_RT_API_H_
