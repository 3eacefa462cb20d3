// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "base/product.h"
#include "calls/page.h"
#include "contract/contract.h"

namespace moeyard::calls {

std::string names_of(Products products);  // "host, A2, A3"; "all products"

// "aclnnMoeDistributeDispatchV2, V3, V4"
std::string versions_of(const contract::Contract& contract);

// How many rules of the contract refuse a mode that is not supported yet.
int missing_modes(const contract::Contract& contract);

// Everything about an operator: what `moeyard explain` prints and what docs/ops has.
Page page_of(const contract::Contract& contract);

// About one of its parameters (or names in shapes), or about one code that it returns. No title: there is no such thing.
Page page_of_parameter(const contract::Contract& contract, std::string_view name);
Page page_of_code(const contract::Contract& contract, std::string_view code);

// What a code means in general.
Page page_of_code(std::string_view code);

// One line per operator, by family: docs/ops/README.md.
Page list_of_operators();

// "docs/ops/moe_update_expert.md" without the folder.
std::string file_of(const contract::Contract& contract);

}  // namespace moeyard::calls
