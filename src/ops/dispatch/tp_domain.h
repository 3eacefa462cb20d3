// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// The tensor-parallel domain of dispatch and combine (tpWorldSize 2): two partners, ranks with the same number in two
// expert-parallel groups, that hold half of an expert's weights each. Both compute all rows that either of them has received;
// the sum of their results is the result.
//
// A partner's call may fail in its own expert-parallel group. Then it says so in the next round of the domain, and the failure
// goes on from there: every step takes what went wrong so far and returns what went wrong in all.
#pragma once
#include <optional>

#include "comm/group.h"
#include "kernels/weighted_sum/weighted_sum.h"
#include "ops/dense_rows.h"
#include "ops/dispatch/ep_attributes.h"
#include "ops/scratch.h"
#include "runtime/stream.h"

namespace moeyard::ops {

struct DispatchArgs;
struct CombineArgs;

inline bool has_partner(const EpAttributes& a) { return a.tp_world_size == 2; }

// What a call of phase two has taken its place in.
struct EpSession {
  comm::Exchange ep;
  std::optional<comm::Exchange> tp;
};
Result<EpSession> open_in_groups(const char* function, const char* operator_name,
                                 const EpAttributes& attributes, const runtime::Stream& stream);

// Dispatch: the partner's rows and scales behind mine, its sums behind mine, how many rows are whose.
class TpGather {
 public:
  struct Plan {
    Plan() = default;
    Plan(const DispatchArgs& args, Scratch& scratch);
    std::int64_t rows = 0;             // of both that the outputs have room for
    std::int64_t scale_row_bytes = 0;  // of dynamicScalesOut
    Part<std::int32_t> mine, theirs;   // [W + 1] sums of rows per source, then the rows that fit
    Part<std::byte> scales;            // [rows * scale_row_bytes]
  };
  TpGather(const char* function, const DispatchArgs& args, const Plan& plan, std::byte* workspace,
           comm::Exchange& exchange)
      : function_(function), args_(args), plan_(plan), workspace_(workspace), exchange_(exchange) {}

  // Swaps the sums [W], and sees that all rows fit on both sides.
  Status meet(const std::int32_t* sums, Status wrong);
  // Once my own rows are there: fetches the partner's.
  Status fetch(const Rows& rows, Status wrong);

  std::int64_t rows_of_both() const { return mine() + theirs(); }

 private:
  std::int64_t ranks() const { return plan_.mine.count - 1; }
  std::int64_t mine() const { return plan_.mine.in(workspace_)[ranks() - 1]; }
  std::int64_t theirs() const { return plan_.theirs.in(workspace_)[ranks() - 1]; }
  std::int64_t row_bytes() const;
  void copy_rows(const Rows& rows, const std::byte* from, std::int64_t stride) const;
  void copy_scales(std::int64_t first, std::int64_t count, const std::byte* from) const;
  void pack_scales() const;
  void describe() const;

  const char* const function_;
  const DispatchArgs& args_;
  const Plan& plan_;
  std::byte* const workspace_;
  comm::Exchange& exchange_;
  bool over_ = false;
};

// Combine: rows as this rank's experts and the partner's have computed them together.
class TpSum {
 public:
  struct Plan {
    Plan() = default;
    Plan(const CombineArgs& args, Scratch& scratch);
    kernels::WeightedSumFn weighted_sum = nullptr;
    Part<std::byte> sums;            // [rows of expandX, H]
    Part<kernels::Term> terms;       // [2 * rows of expandX]
    Part<std::int32_t> term_counts;  // [rows of expandX]
  };
  TpSum(const char* function, const CombineArgs& args, const Plan& plan, std::byte* workspace,
        comm::Exchange& exchange)
      : function_(function), args_(args), plan_(plan), workspace_(workspace), exchange_(exchange) {}

  // `rows` of expandX: the first `mine` of this rank, behind them the partner's. Adds the partner's results to mine.
  Status add(const Rows& rows, std::int64_t mine, Status wrong);
  Rows sums() const;
  // That tpSendCounts goes with the rows that epSendCounts says there are.
  Status check_counts(std::int64_t mine) const;
  std::int64_t theirs() const;

 private:
  struct Hello {
    std::int64_t mine, theirs, stride;
  };
  Status check_partner(std::int64_t mine, const Hello& partner) const;
  void add_up(const Rows& rows, std::int64_t mine, const std::byte* partner, std::int64_t stride) const;

  const char* const function_;
  const CombineArgs& args_;
  const Plan& plan_;
  std::byte* const workspace_;
  comm::Exchange& exchange_;
};

}  // namespace moeyard::ops
