// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <initializer_list>

#include "atb/built_in.h"
#include "atb/failure.h"

// What the rules of shapes of several operations have in common.
namespace moeyard::atb_layer {

// The shape that both are broadcast to: sizes equal or 1, aligned at the last dimension.
atb::Status broadcast(const char* name, const Descs& inputs, atb::Dims& shape);

// An axis of x, counted from the end if negative. `what`: its name in messages.
atb::Status find_axis(const char* name, const char* what, std::int64_t axis, const atb::TensorDesc& x,
                      std::uint64_t& found);
// For an axis that has been checked.
inline std::int64_t from_begin(std::int64_t axis, std::int64_t rank) { return axis < 0 ? axis + rank : axis; }

inline void set_shape(atb::TensorDesc& desc, std::initializer_list<std::int64_t> dims) {
  desc.shape.dimNum = 0;
  for (const std::int64_t dim : dims) desc.shape.dims[desc.shape.dimNum++] = dim;
}
inline bool has_shape(const atb::TensorDesc& desc, std::initializer_list<std::int64_t> dims) {
  atb::TensorDesc wanted;
  set_shape(wanted, dims);
  return same_shape(desc.shape, wanted.shape);
}
inline std::int64_t numel_of(const atb::Dims& shape) {
  std::int64_t numel = 1;
  for (std::uint64_t i = 0; i < shape.dimNum; ++i) numel *= shape.dims[i];
  return numel;
}

}  // namespace moeyard::atb_layer
