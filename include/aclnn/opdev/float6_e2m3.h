// Moeyard. SPDX-License-Identifier: Apache-2.0
#ifndef ACLNN_OPDEV_FLOAT6_E2M3_H_
#define ACLNN_OPDEV_FLOAT6_E2M3_H_

#include "aclnn/opdev/small_float.h"

namespace op {

// Up to 7.5 in the low 6 bits. No infinity, no NaN: both become 7.5.
typedef detail::SmallFloat<detail::SignedFormat<3, 0, 5, 0x1F, 0x1F, 0x1F>> Float6E2M3;

}  // namespace op

#endif  // ACLNN_OPDEV_FLOAT6_E2M3_H_
