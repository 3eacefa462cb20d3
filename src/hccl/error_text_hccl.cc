// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "hccl/hccl_comm.h"

const char* HcclGetErrorString(HcclResult code) {
  switch (code) {
    case HCCL_SUCCESS:
      return "no error";
    case HCCL_E_PARA:
      return "parameter error";
    case HCCL_E_PTR:
      return "null pointer";
    case HCCL_E_MEMORY:
      return "memory error";
    case HCCL_E_INTERNAL:
      return "internal error";
    case HCCL_E_NOT_SUPPORT:
      return "not supported";
    case HCCL_E_NOT_FOUND:
      return "not found";
    case HCCL_E_UNAVAIL:
      return "not available";
    case HCCL_E_SYSCALL:
      return "system call failed";
    case HCCL_E_TIMEOUT:
      return "timeout";
    case HCCL_E_OPEN_FILE_FAILURE:
      return "file cannot be opened";
    case HCCL_E_TCP_CONNECT:
      return "TCP connection failed";
    case HCCL_E_ROCE_CONNECT:
      return "RoCE connection failed";
    case HCCL_E_TCP_TRANSFER:
      return "TCP transfer failed";
    case HCCL_E_ROCE_TRANSFER:
      return "RoCE transfer failed";
    case HCCL_E_RUNTIME:
      return "call of the runtime failed";
    case HCCL_E_DRV:
      return "call of the driver failed";
    case HCCL_E_PROFILING:
      return "profiling error";
    case HCCL_E_CCE:
      return "CCE error";
    case HCCL_E_NETWORK:
      return "network error";
    case HCCL_E_AGAIN:
      return "busy, try again";
    case HCCL_E_REMOTE:
      return "a peer failed";
    case HCCL_E_SUSPENDING:
      return "communicator is suspended";
    case HCCL_E_OPRETRY_FAIL:
      return "retry failed";
    case HCCL_E_OOM:
      return "out of memory";
    case HCCL_E_IN_STATUS:
      return "error in status";
    case HCCL_E_RESERVED:
      break;
  }
  return "unknown error";
}
