// Moeyard. SPDX-License-Identifier: Apache-2.0
#ifndef ACLNN_OPDEV_FLOAT8_E4M3FN_H_
#define ACLNN_OPDEV_FLOAT8_E4M3FN_H_

#include "aclnn/opdev/small_float.h"

namespace op {

// OCP FP8 with 4 bits of exponent, up to 448; larger numbers and infinity become that, NaN stays.
typedef detail::SmallFloat<detail::SignedFormat<3, -6, 7, 0x7E, 0x7E, 0x7F>> Float8E4M3FN;

}  // namespace op

#endif  // ACLNN_OPDEV_FLOAT8_E4M3FN_H_
