// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/layer_run.h"
#include "model/world.h"

namespace moeyard::model {

// The same as run_in_processes in processes that somebody else has started, one for each rank, which all call this. Rank
// 0 gets the results. A rank that can't be set up ends all of them with one code (see World::agree).
Result<LayerRun> run_launched(const Job& job, World& world, int repeat, const Progress& progress);

}  // namespace moeyard::model
