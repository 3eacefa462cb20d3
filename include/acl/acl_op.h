// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// Programs include this header through acl/acl.h. Operators by name, and graphs of single operators, are not
// part of the library; its operators are the functions of aclnnop/.
#ifndef ACL_ACL_OP_H_
#define ACL_ACL_OP_H_

#include "acl/acl_base.h"

#endif  // ACL_ACL_OP_H_
