// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/layer_run.h"

namespace moeyard::model {

// The same as run_expert_parallel, or run_disaggregated, with a process per rank. Each begins as a copy of this process, which therefore must
// not have used the functions of acl or hccl. When a rank fails the others end by themselves or are ended; the failure
// names the rank.
Result<LayerRun> run_in_processes(const Job& job, int repeat, const Progress& progress);

}  // namespace moeyard::model
