// Moeyard. SPDX-License-Identifier: Apache-2.0
#ifndef ACLNN_OPDEV_FLOAT6_E3M2_H_
#define ACLNN_OPDEV_FLOAT6_E3M2_H_

#include "aclnn/opdev/small_float.h"

namespace op {

// Up to 28 in the low 6 bits. No infinity, no NaN: both become 28.
typedef detail::SmallFloat<detail::SignedFormat<2, -2, 5, 0x1F, 0x1F, 0x1F>> Float6E3M2;

}  // namespace op

#endif  // ACLNN_OPDEV_FLOAT6_E3M2_H_
