// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/routing/slot_order.h"

#include <algorithm>

#include "kernels/stable_order/stable_order.h"

namespace moeyard::ops {
namespace {

constexpr std::int64_t kSlotsPerTask = 16384;  // some 10 us

}  // namespace

SlotIds::SlotIds(const TensorView& view, Scratch& scratch) : ids_(view, 0, scratch) {
  if (view.dtype == ACL_INT64) narrow_ = scratch.add<std::int32_t>(view.numel());
}

const std::int32_t* SlotIds::load(const TensorView& view, std::byte* workspace) const {
  const Matrix ids = ids_.load(view, workspace);
  if (view.dtype != ACL_INT64) return ids.row_as<std::int32_t>(0);
  const auto* wide = ids.row_as<std::int64_t>(0);
  std::int32_t* narrow = narrow_.in(workspace);
  parallel_for(narrow_.count, kSlotsPerTask, [&](Range slots) {
    for (std::int64_t i = slots.begin; i < slots.end; ++i)
      narrow[i] = static_cast<std::int32_t>(std::clamp<std::int64_t>(wide[i], INT32_MIN, INT32_MAX));
  });
  return narrow;
}

SlotOrder::SlotOrder(std::int64_t slots, Scratch& scratch)
    : slots_(slots),
      keys_(scratch.add<std::uint32_t>(slots)),
      slot_of_row_(scratch.add<std::int32_t>(slots)),
      row_of_slot_(scratch.add<std::int32_t>(slots)),
      sorting_(scratch.add<std::int32_t>(kernels::stable_order_scratch(slots))) {}

void SlotOrder::sort(const std::int32_t* ids, std::byte* workspace) const {
  if (slots_ == 0) return;
  const auto [least, most] = std::minmax_element(ids, ids + slots_);
  const std::int64_t first = *least, limit = *most - first + 1;
  std::uint32_t* keys = keys_.in(workspace);
  for (std::int64_t i = 0; i < slots_; ++i) keys[i] = static_cast<std::uint32_t>(ids[i] - first);
  sort_keys(limit, workspace);
}

std::int64_t SlotOrder::sort(const std::int32_t* ids, Range experts, std::byte* workspace) const {
  std::uint32_t* keys = keys_.in(workspace);
  std::int64_t inside = 0;
  for (std::int64_t i = 0; i < slots_; ++i) {
    const bool is_inside = experts.begin <= ids[i] && ids[i] < experts.end;
    keys[i] = static_cast<std::uint32_t>(is_inside ? ids[i] - experts.begin : experts.size());
    inside += is_inside ? 1 : 0;
  }
  sort_keys(experts.size() + 1, workspace);
  return inside;
}

void SlotOrder::sort_keys(std::int64_t key_limit, std::byte* workspace) const {
  kernels::stable_order({keys_.in(workspace), slots_, key_limit, slot_of_row_.in(workspace),
                         row_of_slot_.in(workspace), sorting_.in(workspace)});
}

std::int64_t SlotOrder::rows_below(const std::int32_t* ids, std::int64_t id, std::byte* workspace) const {
  const std::int32_t* order = slot_of_row(workspace);
  return std::partition_point(order, order + slots_, [&](std::int32_t slot) { return ids[slot] < id; }) -
         order;
}

}  // namespace moeyard::ops
