// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "atb/built_in.h"
#include "atb/failure.h"

// What the rules of shapes of several operations have in common.
namespace moeyard::atb_layer {

// The shape that both are broadcast to: sizes equal or 1, aligned at the last dimension.
atb::Status broadcast(const char* name, const Descs& inputs, atb::Dims& shape);

}  // namespace moeyard::atb_layer
