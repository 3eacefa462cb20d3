// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/layer_run.h"

namespace moeyard::model {

// Runs the layer `repeat` times on attention workers and FFN workers (job.afd), each a rank with a device, as threads
// of this process, through the public functions of acl, aclnn and hccl.
Result<LayerRun> run_disaggregated(const Job& job, int repeat, const Progress& progress);

// Sizes that the workers' operators or windows do not take, in one sentence for the user.
Status check_disaggregation(const Job& job);

}  // namespace moeyard::model
