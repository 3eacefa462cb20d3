// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/rank.h"

namespace moeyard::model {

// Queues out = x * W_g^T for the rows of each group g: x [M, K], weights [groups, N, K], out [M, N] (views
// are fine), rows_of_group INT64 [groups] their counts.
Status multiply_groups(Rank& rank, Tensor x, const DeviceTensor& weights, const DeviceTensor& rows_of_group,
                       Tensor out);

}  // namespace moeyard::model
