// Moeyard. SPDX-License-Identifier: Apache-2.0
#ifndef ACLNN_OPDEV_FLOAT4_E1M2_H_
#define ACLNN_OPDEV_FLOAT4_E1M2_H_

#include "aclnn/opdev/small_float.h"

namespace op {

// +-{0, 0.25, 0.5, ... 1.75} in the low 4 bits. No infinity, no NaN: both become 1.75.
typedef detail::SmallFloat<detail::SignedFormat<2, 0, 3, 0x7, 0x7, 0x7>> Float4E1M2;

}  // namespace op

#endif  // ACLNN_OPDEV_FLOAT4_E1M2_H_
