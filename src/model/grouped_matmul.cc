// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/grouped_matmul.h"

#include "aclnnop/aclnn_grouped_matmul_v5.h"

namespace moeyard::model {

Status multiply_groups(Rank& rank, Tensor x, const DeviceTensor& weights, const DeviceTensor& rows_of_group,
                       Tensor out) {
  constexpr std::int64_t kOneOutput = 2, kByRows = 0, kCounts = 1, kNoActivation = 0;
  aclTensorList* xs = rank.keep(MOEYARD_TRY(list_of(std::move(x))));
  // The operator multiplies by [groups, K, N]; a file's [N, K] is that seen transposed, nothing is copied.
  aclTensorList* ws = rank.keep(MOEYARD_TRY(list_of(MOEYARD_TRY(weights.transposed()))));
  aclTensorList* outs = rank.keep(MOEYARD_TRY(list_of(std::move(out))));
  return rank.call("aclnnGroupedMatmulV5", aclnnGroupedMatmulV5GetWorkspaceSize, aclnnGroupedMatmulV5, xs, ws,
                   /*bias*/ nullptr, /*scale*/ nullptr, /*offset*/ nullptr, /*antiquantScale*/ nullptr,
                   /*antiquantOffset*/ nullptr, /*perTokenScale*/ nullptr, rows_of_group.get(),
                   /*activationInput*/ nullptr, /*activationQuantScale*/ nullptr,
                   /*activationQuantOffset*/ nullptr, kOneOutput, kByRows, kCounts, kNoActivation,
                   /*tuningConfig*/ nullptr, outs, /*activationFeatureOut*/ nullptr,
                   /*dynQuantScaleOut*/ nullptr);
}

}  // namespace moeyard::model
