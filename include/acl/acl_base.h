// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// Types, return codes and small helpers of ACL.
#ifndef ACL_ACL_BASE_H_
#define ACL_ACL_BASE_H_

#include "acl/acl_base_mdl.h"
#include "acl/acl_base_rt.h"
#include "acl/error_codes/ge_error_codes.h"
#include "acl/error_codes/rt_error_codes.h"

#endif  // ACL_ACL_BASE_H_
