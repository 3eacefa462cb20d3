// Moeyard. SPDX-License-Identifier: Apache-2.0
#ifndef ACLNN_OPDEV_FLOAT4_E2M1_H_
#define ACLNN_OPDEV_FLOAT4_E2M1_H_

#include "aclnn/opdev/small_float.h"

namespace op {

// +-{0, 0.5, 1, 1.5, 2, 3, 4, 6} in the low 4 bits. No infinity, no NaN: both become 6.
typedef detail::SmallFloat<detail::SignedFormat<1, 0, 3, 0x7, 0x7, 0x7>> Float4E2M1;

}  // namespace op

#endif  // ACLNN_OPDEV_FLOAT4_E2M1_H_
