// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/dispatch/split_messages.h"

#include <algorithm>

#include "kernels/mx_rows/mx_rows.h"
#include "kernels/quantize_rows/quantize_rows.h"

namespace moeyard::ops {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

DispatchMessage dispatch_message(std::int64_t quant_mode, std::int64_t hidden) {
  constexpr std::int64_t kFloat = sizeof(float);
  const auto behind = [](std::int64_t offset, std::int64_t bytes) {
    return DispatchMessage{round_up(offset + bytes, 512), offset, bytes};
  };
  switch (quant_mode) {
    case 0:
      return {round_up(hidden, 256), 0, 0};
    case 2:
      return behind(round_up(hidden, 32), kFloat);
    case 3:
      return behind(round_up(hidden, 128),
                    kernels::QuantizeRows::scales_per_row(kernels::QuantRule::groups, hidden) * kFloat);
    case 4:
      return behind(round_up(hidden, 128), kernels::MxRows::scales_per_row(hidden));
    default:
      return {round_up(hidden, 512), 0, 0};
  }
}

std::int64_t combine_message_elements(std::int64_t hidden) {
  return round_up(round_up(hidden, 32) + round_up(hidden, 8) / 8 * 4, 512);
}

TensorView assumed_output(aclDataType dtype, std::initializer_list<std::int64_t> shape) {
  TensorView view;
  view.dtype = dtype;
  view.format = ACL_FORMAT_ND;
  view.rank = static_cast<std::int32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), view.shape);
  std::int64_t stride = 1;
  for (int axis = view.rank; axis-- > 0; stride *= std::max<std::int64_t>(view.shape[axis], 1))
    view.strides[axis] = stride;
  return view;
}

}  // namespace moeyard::ops
