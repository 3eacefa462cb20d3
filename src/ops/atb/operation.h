// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/errors.h"
#include "base/tensor_view.h"
#include "moeyard/atb_backend.h"

// What operations of libatb compute. Its own layer has checked parameters, types and shapes: tensors are dense, and
// only data can be wrong.
namespace moeyard::ops::atb {

struct Call {
  const char* name;
  MoeyardAtbOperation operation;
  std::vector<TensorView> tensors;  // inputs, then outputs
  std::array<std::int64_t, 16> integers;
  std::array<double, 4> numbers;
  std::vector<std::int32_t> list;

  const TensorView& operator[](std::size_t i) const { return tensors[i]; }
  const TensorView& last() const { return tensors.back(); }
};

using Run = Status (*)(const Call& call, std::byte* workspace);

struct Entry {
  MoeyardAtbOperation operation;
  Run run;
  std::int64_t (*workspace)(const Call& call) = nullptr;  // bytes; null: none
};

// The operations that each file has.
std::span<const Entry> elementwise();
std::span<const Entry> moves();
std::span<const Entry> norms();
std::span<const Entry> linear();
std::span<const Entry> gating();
std::span<const Entry> indexing();
std::span<const Entry> reductions();
std::span<const Entry> quantising();
std::span<const Entry> grouped();

}  // namespace moeyard::ops::atb
