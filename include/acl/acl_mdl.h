// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// Programs include this header through acl/acl.h. Offline models are not part of the library.
#ifndef ACL_ACL_MDL_H_
#define ACL_ACL_MDL_H_

#include "acl/acl_base.h"
#include "acl/acl_rt.h"

#endif  // ACL_ACL_MDL_H_
