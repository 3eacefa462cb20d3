// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/copy_rows/copy_rows.h"
#include "kernels/mx_rows/mx_rows.h"
#include "kernels/quantize_rows/quantize_rows.h"
#include "ops/dense_rows.h"
#include "ops/dispatch/slots.h"
#include "ops/scratch.h"

namespace moeyard::ops {

struct DispatchArgs;

// What dispatch writes for a token: its row, copied or quantised, and the scales that go with it. They are made here, or
// travel from scalesOptional with tokens that the caller has quantised.
class RowMaker {
 public:
  RowMaker() = default;
  RowMaker(const DispatchArgs& args, std::int64_t slots, Scratch& scratch);

  std::int64_t scales_per_row() const { return scales_per_row_; }
  std::int64_t scale_bytes() const { return scale_bytes_; }  // of each of them
  const char* describe() const;

  // Makes x and scalesOptional dense where they are not.
  void gather(const DispatchArgs& args, std::byte* workspace) const;
  // Writes the rows of some tokens to the places of their slots, null where there is none.
  void write(const DispatchArgs& args, const Slots& slots, const EpLayout& layout, std::byte* const* places,
             Range tokens, bool streaming, std::byte* workspace) const;
  // After write(): the scales of slot s, one of token t.
  const std::byte* scales_of(const DispatchArgs& args, std::int64_t t, std::int64_t s,
                             std::byte* workspace) const;

 private:
  enum class Way : std::uint8_t { copy, quantise, blocks, made };  // made: the rows of y are there

  void quantise(const DispatchArgs& args, const Slots& slots, const EpLayout& layout,
                std::byte* const* places, Range tokens, bool streaming, std::byte* workspace) const;
  void find_smooth_factors(const DispatchArgs& args, const Slots& slots, const EpLayout& layout,
                           std::byte* const* places, Range tokens, std::byte* workspace) const;
  Rows scale_rows(const DispatchArgs& args, std::byte* workspace) const;

  Way way_ = Way::copy;
  bool scales_travel_ = false;
  std::int64_t scale_offset_ = 0;  // in a row of y
  kernels::QuantRule rule_{};
  kernels::MxRule mx_rule_{};
  float least_ = 0;  // taken for the magnitude of a block where that is smaller
  std::int64_t scales_per_row_ = 0, scale_bytes_ = 0;
  kernels::CopyRowsFn copy_rows_ = nullptr;
  kernels::QuantizeRowsFn quantize_rows_ = nullptr;
  kernels::MxRowsFn mx_rows_ = nullptr;

  DenseRows x_, scales_, y_;
  Part<const float*> smooth_of_slot_;  // [BS * slots per token], where experts have factors of their own
  Part<std::byte> made_;               // scales: of every token for blocks, of every slot for other rows
};

}  // namespace moeyard::ops
