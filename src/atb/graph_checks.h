// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "atb/types.h"

namespace moeyard::atb_layer {

// Everything about a graph that can be known without shapes.
atb::Status check_graph(const atb::GraphParam& param);

// "node 3 (AddOperation)"
std::string name_of_node(std::size_t index, const atb::Operation* operation);

}  // namespace moeyard::atb_layer
