// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

#include "atb/operation.h"

// Which operations are alive and to whom they belong, so that destroying one twice, or using one that is destroyed, is
// an error with a message and not a crash.
namespace moeyard::atb_layer {

enum class Fate {
  unknown,    // a program's own, or memory that is no operation
  built_in,   // alive, made by CreateOperation
  owned,      // belongs to a graph or a builder
  destroyed,  // was a built-in one: one of the last few hundred
};
Fate fate_of(const atb::Operation* operation);

// Makes `owner` the owner of an operation; false if it has another one.
bool own(const atb::Operation* operation, const void* owner);
void disown(const atb::Operation* operation);

// Memory of built-in operations, which leave an operation of their own behind: all its functions fail.
void* allocate_operation(std::size_t bytes);
void bury_operation(void* operation);

}  // namespace moeyard::atb_layer
