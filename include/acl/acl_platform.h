// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// Programs may include this header. The figures of a device come from aclrtGetDeviceInfo,
// aclGetDeviceCapability and aclrtGetSocName.
#ifndef ACL_ACL_PLATFORM_H_
#define ACL_ACL_PLATFORM_H_

#include "acl/acl_base.h"
#include "acl/acl_rt.h"

#endif  // ACL_ACL_PLATFORM_H_
