// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/dispatch/row_maker.h"

#include "ops/dispatch/dispatch.h"
#include "ops/dispatch/split_messages.h"

namespace moeyard::ops {
namespace {

kernels::QuantRule rule_of(const DispatchArgs& args) {
  using kernels::QuantRule;
  if (args.quant_mode == 3) return QuantRule::groups;
  return args.quant_mode == 2 ? QuantRule::times_127 : QuantRule::fixed;  // a cast multiplies by 1
}

}  // namespace

RowMaker::RowMaker(const DispatchArgs& args, std::int64_t slots, Scratch& scratch) {
  if (args.is_split() && args.expand_x.present()) {
    const DispatchMessage message = dispatch_message(args.quant_mode, args.hidden());
    way_ = Way::made;
    copy_rows_ = kernels::copy_rows_variants().front().run;
    y_ = DenseRows(args.y, slots, scratch);
    scale_offset_ = message.scale_offset;
    scale_bytes_ = args.quant_mode == 4 ? 1 : sizeof(float);
    scales_per_row_ = message.scale_bytes / scale_bytes_;
    return;
  }
  const TensorView scales = args.scale_matrix();
  x_ = DenseRows(args.x, args.bs(), scratch);
  scales_ = DenseRows(scales, scales.dim(0), scratch);
  if (args.row_dtype() == args.x.dtype) {
    copy_rows_ = kernels::copy_rows_variants().front().run;
    if (!args.scales_travel()) return;
    scales_travel_ = true;
    scales_per_row_ = scales.dim(1), scale_bytes_ = bytes_of(scales.dtype, 1);
    return;
  }
  if (args.quant_mode >= 4) {
    way_ = Way::blocks;
    mx_rows_ = kernels::mx_rows_variants().front().run;
    mx_rule_ = args.quant_mode == 4 ? kernels::MxRule::floor : kernels::MxRule::cover;
    least_ = args.quant_mode == 4 ? 0.0f : 1e-4f;
    scales_per_row_ = kernels::MxRows::scales_per_row(args.hidden()), scale_bytes_ = 1;
    made_ = scratch.add<std::byte>(args.bs() * scales_per_row_);
    return;
  }
  way_ = Way::quantise;
  quantize_rows_ = kernels::quantize_rows_variants().front().run;
  rule_ = rule_of(args);
  scales_per_row_ = kernels::QuantizeRows::scales_per_row(rule_, args.hidden()), scale_bytes_ = sizeof(float);
  if (args.scales.rank == 2) smooth_of_slot_ = scratch.add<const float*>(slots);
  made_ = scratch.add<std::byte>(slots * scales_per_row_ * scale_bytes_);
}

const char* RowMaker::describe() const {
  if (way_ == Way::made) return "made before";
  return way_ == Way::copy ? "copied" : way_ == Way::blocks ? "quantised in blocks" : "quantised on the way";
}

void RowMaker::gather(const DispatchArgs& args, std::byte* workspace) const {
  if (way_ == Way::made) return y_.gather(args.y, args.y.dim(0), workspace);
  x_.gather(args.x, args.bs(), workspace);
  const TensorView scales = args.scale_matrix();
  scales_.gather(scales, scales.dim(0), workspace);
}

Rows RowMaker::scale_rows(const DispatchArgs& args, std::byte* workspace) const {
  return scales_.rows(args.scale_matrix(), workspace);
}

void RowMaker::write(const DispatchArgs& args, const Slots& slots, const EpLayout& layout,
                     std::byte* const* places, Range tokens, bool streaming, std::byte* workspace) const {
  const Rows x = x_.rows(args.x, workspace), y = y_.rows(args.y, workspace);
  switch (way_) {
    case Way::made:
      return copy_rows_({y.data, y.stride, bytes_of(args.y.dtype, args.hidden()), places, 1, streaming},
                        {tokens.begin * slots.per_token(), tokens.end * slots.per_token()});
    case Way::copy:
      return copy_rows_(
          {x.data, x.stride, bytes_of(args.x.dtype, args.hidden()), places, slots.per_token(), streaming},
          tokens);
    case Way::quantise:
      return quantise(args, slots, layout, places, tokens, streaming, workspace);
    case Way::blocks:
      return mx_rows_({.rows = x.data,
                       .row_stride = x.stride,
                       .dtype = args.x.dtype,
                       .hidden = args.hidden(),
                       .place_of_slot = places,
                       .slots_per_token = slots.per_token(),
                       .scales = made_.in(workspace),
                       .scale_stride = scales_per_row_,
                       .streaming = streaming,
                       .to = args.row_dtype(),
                       .rule = mx_rule_,
                       .least = least_},
                      tokens);
  }
}

void RowMaker::quantise(const DispatchArgs& args, const Slots& slots, const EpLayout& layout,
                        std::byte* const* places, Range tokens, bool streaming, std::byte* workspace) const {
  const Rows x = x_.rows(args.x, workspace);
  kernels::QuantizeRows rows{.rows = x.data,
                             .row_stride = x.stride,
                             .dtype = args.x.dtype,
                             .hidden = args.hidden(),
                             .smooth_of_slot = nullptr,
                             .place_of_slot = places,
                             .slots_per_token = slots.per_token(),
                             .scale_of_slot = reinterpret_cast<float*>(made_.in(workspace)),
                             .streaming = streaming,
                             .rule = rule_,
                             .to = args.row_dtype()};
  if (args.scales.rank == 2) {
    find_smooth_factors(args, slots, layout, places, tokens, workspace);
    rows.smooth_of_slot = smooth_of_slot_.in(workspace);
  } else if (args.scales.present()) {
    const auto* factors = reinterpret_cast<const float*>(scale_rows(args, workspace)[0]);
    if (args.scales.dim(0) == 1)
      rows.factor = *factors;
    else
      rows.smooth = factors;
  }
  quantize_rows_(rows, tokens);
}

void RowMaker::find_smooth_factors(const DispatchArgs& args, const Slots& slots, const EpLayout& layout,
                                   std::byte* const* places, Range tokens, std::byte* workspace) const {
  const Rows scales = scale_rows(args, workspace);
  const float** smooth = smooth_of_slot_.in(workspace);
  for (std::int64_t t = tokens.begin; t < tokens.end; ++t)
    for (std::int64_t j = 0; j < slots.per_token(); ++j) {
      const std::int64_t s = t * slots.per_token() + j;
      if (places[s] == nullptr) continue;
      const std::int64_t row =
          j < slots.topk() ? layout.scale_row_of_expert(slots.id(t, j)) : j - slots.topk();
      smooth[s] = reinterpret_cast<const float*>(scales[row]);
    }
}

const std::byte* RowMaker::scales_of(const DispatchArgs& args, std::int64_t t, std::int64_t s,
                                     std::byte* workspace) const {
  if (scales_travel_) return scale_rows(args, workspace)[t];
  if (way_ == Way::made) return y_.rows(args.y, workspace)[s] + scale_offset_;
  return made_.in(workspace) + (way_ == Way::blocks ? t : s) * scales_per_row_ * scale_bytes_;
}

}  // namespace moeyard::ops
