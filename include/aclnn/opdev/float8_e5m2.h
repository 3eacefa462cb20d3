// Moeyard. SPDX-License-Identifier: Apache-2.0
#ifndef ACLNN_OPDEV_FLOAT8_E5M2_H_
#define ACLNN_OPDEV_FLOAT8_E5M2_H_

#include "aclnn/opdev/small_float.h"

namespace op {

// OCP FP8 with 5 bits of exponent, up to 57344; larger numbers become that, infinity and NaN stay.
typedef detail::SmallFloat<detail::SignedFormat<2, -14, 7, 0x7B, 0x7C, 0x7F>> Float8E5M2;

}  // namespace op

#endif  // ACLNN_OPDEV_FLOAT8_E5M2_H_
