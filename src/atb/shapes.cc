// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "atb/shapes.h"

#include <algorithm>

namespace moeyard::atb_layer {

atb::Status broadcast(const char* name, const Descs& inputs, atb::Dims& shape) {
  const atb::Dims &a = inputs[0].shape, &b = inputs[1].shape;
  shape.dimNum = std::max(a.dimNum, b.dimNum);
  for (std::uint64_t i = 0; i < shape.dimNum; ++i) {  // from the last dimension on
    const std::int64_t x = i < a.dimNum ? a.dims[a.dimNum - 1 - i] : 1,
                       y = i < b.dimNum ? b.dims[b.dimNum - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      return fail(
          atb::ERROR_INVALID_TENSOR_DIM,
          "%s: inTensors are %s and %s but must have dimensions that are equal or 1, counted from the last",
          name, text_of(inputs[0]).c_str(), text_of(inputs[1]).c_str());
    shape.dims[shape.dimNum - 1 - i] = x == 1 ? y : x;
  }
  return atb::NO_ERROR;
}

atb::Status find_axis(const char* name, const char* what, std::int64_t axis, const atb::TensorDesc& x,
                      std::uint64_t& found) {
  const auto rank = static_cast<std::int64_t>(x.shape.dimNum);
  if (axis < -rank || axis >= rank)
    return fail(atb::ERROR_INVALID_TENSOR_DIM, "%s: %s is %lld but must be a dimension of %s", name, what,
                static_cast<long long>(axis), text_of(x).c_str());
  found = static_cast<std::uint64_t>(from_begin(axis, rank));
  return atb::NO_ERROR;
}

}  // namespace moeyard::atb_layer
