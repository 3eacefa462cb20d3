// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/mx_rows/mx_rows.h"
#include "kernels/quantize_rows/quantize_rows.h"
#include "ops/row_matrix.h"

namespace moeyard::ops {

// What rows become in a quantMode of the operators that route tokens.
struct Quantisation {
  // Of a row: none; one; bytes for 32 elements each, an even number; powers of two for 128 elements each; two for 256 each.
  enum class Scales : std::uint8_t { none, row, bytes, powers, pairs };
  // What elements are multiplied by: nothing; a number, to which another is added; a number; a row, or one of each expert.
  enum class Factors : std::uint8_t { none, number_and_offset, number, rows };

  std::int64_t mode;
  aclDataType to;
  Scales scales;
  Factors factors = Factors::none;
  kernels::QuantRule rule = kernels::QuantRule::over_127;  // bytes and powers follow the one below
  kernels::MxRule mx_rule = kernels::MxRule::carry;
  float least = 0;  // taken for a smaller largest magnitude

  bool is_mx() const { return scales == Scales::bytes || scales == Scales::powers; }
  aclDataType scale_dtype() const { return scales == Scales::bytes ? ACL_FLOAT8_E8M0 : ACL_FLOAT; }
  std::int64_t scale_columns(std::int64_t hidden) const;
};
const Quantisation* find_quantisation(std::int64_t mode);  // null: there is no such mode

// Quantises tokens to the rows that their slots name. Phase one makes it.
class QuantisedRows {
 public:
  QuantisedRows() = default;
  QuantisedRows(const Quantisation& how, std::int64_t tokens, std::int64_t topk, std::int64_t hidden,
                Scratch& scratch);

  struct Work {
    aclDataType dtype;  // of the tokens
    Matrix tokens, rows;
    Matrix scales;  // absent: not wanted
    float factor = 1, offset = 0;
    Matrix
        factors;  // absent: none; one row, or that of expert_of_slot - first_expert, none for an expert without
    const std::int32_t* expert_of_slot = nullptr;
    std::int64_t first_expert = 0;
  };
  // place_of_slot [tokens * topk]: a row, or any other number for none.
  void scatter(const Work& work, const std::int32_t* place_of_slot, std::byte* workspace) const;
  // token_of_row [rows], all factors being the same.
  void gather(const Work& work, const std::int32_t* token_of_row) const;

 private:
  kernels::QuantizeRows arguments(const Work& work) const;
  void quantise(const Work& work, Range tokens, std::byte* workspace) const;
  void write_scales(const Work& work, std::int64_t slot, std::int64_t place, std::byte* workspace) const;

  Quantisation how_{};
  std::int64_t topk_ = 0;
  std::int64_t scales_per_row_ = 0;  // that the kernel makes
  Part<std::byte*> address_of_slot_;
  Part<const float*> factors_of_slot_;
  Part<float> scales_;           // of each slot
  Part<std::byte> scale_bytes_;  // of each token
};

}  // namespace moeyard::ops
