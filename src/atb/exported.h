// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "atb/operation.h"

namespace moeyard::atb_layer {

// `template struct Exported<infer::GatherParam>;` puts the three functions of parameter structs into the library.
template <class... Params>
struct Exported {
  [[gnu::used]] static inline const void* const kFunctions[] = {
      reinterpret_cast<const void*>(&atb::CreateOperation<Params>)...,
      reinterpret_cast<const void*>(&atb::CloneOperationParam<Params>)...,
      reinterpret_cast<const void*>(&atb::UpdateOperationParam<Params>)...,
  };
};

}  // namespace moeyard::atb_layer
