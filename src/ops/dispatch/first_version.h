// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// The first version of dispatch and combine: the same operators with parameters, limits and names of their own, another way to
// tell combine where rows are, and another division of tokens between shared-expert ranks (EpAttributes::first_version).
#pragma once
#include "ops/dispatch/combine.h"
#include "ops/dispatch/dispatch.h"

namespace moeyard::ops {

struct DispatchV1 : Dispatch {
  static const contract::Contract kContract;
};
struct CombineV1 : Combine {
  static const contract::Contract kContract;
};

}  // namespace moeyard::ops
