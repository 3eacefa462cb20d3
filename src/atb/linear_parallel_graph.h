// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "atb/infer_op_params.h"
#include "atb/operation.h"

namespace moeyard::atb_layer {

// A graph of the operations that a parallel product stands for.
atb::Status make_parallel_linear(const atb::infer::LinearParallelParam& param, atb::Operation** made);

}  // namespace moeyard::atb_layer
