// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "base/parallel.h"
#include "ops/row_matrix.h"

namespace moeyard::ops {

// Ids of slots, INT32 or INT64, as INT32. Those that INT32 cannot hold are outside what CANN documents and keep their side.
class SlotIds {
 public:
  SlotIds() = default;
  SlotIds(const TensorView& view, Scratch& scratch);
  const std::int32_t* load(const TensorView& view, std::byte* workspace) const;

 private:
  RowMatrix ids_;
  Part<std::int32_t> narrow_;
};

// The stable order of slots by id: rows are places in that order. Phase one makes it; sort() and what follows run.
class SlotOrder {
 public:
  SlotOrder() = default;
  SlotOrder(std::int64_t slots, Scratch& scratch);

  std::int64_t slots() const { return slots_; }
  // By signed value.
  void sort(const std::int32_t* ids, std::byte* workspace) const;
  // By id in `experts`; slots with another id come last. Returns how many have one of them.
  std::int64_t sort(const std::int32_t* ids, Range experts, std::byte* workspace) const;

  // After sort().
  const std::int32_t* slot_of_row(std::byte* workspace) const { return slot_of_row_.in(workspace); }
  const std::int32_t* row_of_slot(std::byte* workspace) const { return row_of_slot_.in(workspace); }
  // The number of rows whose id is below `id`, of the ids that were sorted.
  std::int64_t rows_below(const std::int32_t* ids, std::int64_t id, std::byte* workspace) const;

 private:
  void sort_keys(std::int64_t key_limit, std::byte* workspace) const;

  std::int64_t slots_ = 0;
  Part<std::uint32_t> keys_;
  Part<std::int32_t> slot_of_row_, row_of_slot_, sorting_;
};

}  // namespace moeyard::ops
