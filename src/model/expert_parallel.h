// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/layer_run.h"

namespace moeyard::model {

// Runs the layer `repeat` times with a rank per device, as threads of this process, through the public
// functions of acl, aclnn and hccl. Ranks meet before dispatch and combine.
Result<LayerRun> run_expert_parallel(const Job& job, int repeat, const Progress& progress);

}  // namespace moeyard::model
