// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// Parameters of operations for training. None is supported: CreateOperation returns ERROR_INVALID_PARAM.
#ifndef ATB_TRAIN_OP_PARAMS_H
#define ATB_TRAIN_OP_PARAMS_H

#include <cstdint>

namespace atb {
namespace train {

struct FastSoftMaxGradParam {
  uint8_t rsv[8] = {0};
};
struct FastSoftMaxParam {
  uint8_t rsv[8] = {0};
};
struct GenAttentionMaskParam {
  uint8_t rsv[8] = {0};
};
struct LaserAttentionGradParam {
  uint8_t rsv[8] = {0};
};
struct LaserAttentionParam {
  uint8_t rsv[8] = {0};
};
struct PadWithHiddenStateParam {
  uint8_t rsv[8] = {0};
};
struct RmsNormBackwardParam {
  uint8_t rsv[8] = {0};
};
struct RopeGradParam {
  uint8_t rsv[8] = {0};
};
struct StridedBatchMatmulParam {
  uint8_t rsv[8] = {0};
};
struct UnpadWithHiddenStateParam {
  uint8_t rsv[8] = {0};
};

}  // namespace train
}  // namespace atb
#endif  // ATB_TRAIN_OP_PARAMS_H
