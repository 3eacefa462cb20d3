// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// Programs include this header through acl_base.h. The graph engine is not part of the library, so none of
// its codes is ever returned and none is defined.
#ifndef ACL_ERROR_CODES_GE_ERROR_CODES_H_
#define ACL_ERROR_CODES_GE_ERROR_CODES_H_

#endif  // ACL_ERROR_CODES_GE_ERROR_CODES_H_
