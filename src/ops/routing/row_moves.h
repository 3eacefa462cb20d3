// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

#include "base/parallel.h"
#include "kernels/copy_rows/copy_rows.h"
#include "kernels/weighted_sum/weighted_sum.h"
#include "ops/row_matrix.h"

// Rows from here to there: what the routing operators are made of, beside the numbers that say which.
namespace moeyard::ops {

inline constexpr std::int64_t kBytesPerTask = 256 * 1024;  // of rows: some 20 us of copying
inline constexpr std::int64_t kStreamedBytes =
    4 * 1024 * 1024;                                   // more does not wait in a cache for its reader
inline constexpr std::int64_t kTinyBytes = 16 * 1024;  // less than handing it to a stream's thread costs

// Rows, or groups of rows that add up to row_bytes, for one task.
inline std::int64_t rows_per_task(std::int64_t row_bytes) {
  return std::max<std::int64_t>(kBytesPerTask / std::max<std::int64_t>(row_bytes, 1), 1);
}

inline bool is_streamed(const Matrix& to) { return to.rows * to.row_bytes > kStreamedBytes; }

// to[i] = from[index[i]] for every row of `to` whose index is a row of `from`; the others become zeros or stay.
enum class Others { stay, zero };
void gather_rows(const Matrix& from, const std::int32_t* index, const Matrix& to, Others others);

// Copies one row to several rows of a matrix.
class RowScatter {
 public:
  explicit RowScatter(const Matrix& to);
  // Numbers outside the matrix, whose first row has the number `first`, are left out.
  template <class Index>
  void operator()(const std::byte* row, std::span<const Index> to_rows, std::int64_t first = 0) const {
    for (std::size_t begin = 0; begin < to_rows.size(); begin += kPlaces) {
      std::byte* places[kPlaces];
      const std::size_t count = std::min(to_rows.size() - begin, kPlaces);
      for (std::size_t i = 0; i < count; ++i) {
        const auto to_row = static_cast<std::int64_t>(to_rows[begin + i]) - first;
        places[i] = 0 <= to_row && to_row < to_.rows ? to_.row(to_row) : nullptr;
      }
      copy(row, places, count);
    }
  }

 private:
  static constexpr std::size_t kPlaces = 64;
  void copy(const std::byte* row, std::byte* const* places, std::size_t count) const;
  const Matrix to_;
  const kernels::CopyRowsFn copy_rows_;
  const bool streaming_;
};

// Adds up weighted rows, one row of a matrix at a time.
class RowSums {
 public:
  RowSums(const Matrix& out, aclDataType dtype, bool round_products = false);
  // Writes zeros without terms.
  void operator()(std::int64_t out_row, const kernels::Term* terms, std::int64_t count) const;

 private:
  const Matrix out_;
  const aclDataType dtype_;
  const bool round_products_, streaming_;
  const kernels::WeightedSumFn weighted_sum_;
};

// One row with a weight.
inline kernels::Term weighted_row(const std::byte* row, float weight) { return {row, nullptr, weight, 1, 0}; }

// out[t] = sum over j of rows[index[t * topk + j]], without those that are no rows. terms [out.rows * topk] is scratch.
void add_up_slots(const Matrix& rows, const std::int32_t* index, std::int64_t topk, kernels::Term* terms,
                  const RowSums& sums, const Matrix& out);

}  // namespace moeyard::ops
