// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// Dumps. Not supported: every function returns 207000 and writes nothing. MOEYARD_DUMP writes the inputs and
// outputs of every operator call instead.
#ifndef ACL_ACL_DUMP_H_
#define ACL_ACL_DUMP_H_

#include <stdint.h>

#include "acl/acl_base.h"

#define ACL_DUMP_MAX_FILE_PATH_LENGTH 4096

#ifdef __cplusplus
extern "C" {
#endif

typedef struct acldumpChunk {
  char fileName[ACL_DUMP_MAX_FILE_PATH_LENGTH];
  uint32_t bufLen;
  uint32_t isLastChunk;
  int64_t offset;
  int32_t flag;
  uint8_t dataBuf[1];  // bufLen bytes
} acldumpChunk;

ACL_FUNC_VISIBILITY aclError acldumpRegCallback(int32_t (*const messageCallback)(const acldumpChunk*,
                                                                                 int32_t),
                                                int32_t flag);
ACL_FUNC_VISIBILITY void acldumpUnregCallback(void);
ACL_FUNC_VISIBILITY aclError aclmdlInitDump(void);
ACL_FUNC_VISIBILITY aclError aclmdlSetDump(const char* dumpCfgPath);
ACL_FUNC_VISIBILITY aclError aclmdlFinalizeDump(void);

#ifdef __cplusplus
}
#endif

#endif  // ACL_ACL_DUMP_H_
