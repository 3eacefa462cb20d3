// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "contract/contract.h"

namespace moeyard::contract {

// For contracts alone, which are made while the library is loaded.
void remember(const Contract& contract);
void forget(const Contract& contract);

}  // namespace moeyard::contract
