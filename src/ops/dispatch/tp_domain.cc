// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/dispatch/tp_domain.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/errors.h"
#include "base/parallel.h"
#include "comm/registry.h"
#include "ops/dispatch/combine.h"
#include "ops/dispatch/dispatch.h"
#include "ops/dispatch/ep_group.h"

namespace moeyard::ops {
namespace {

constexpr std::int64_t kBytesPerTask = 256 * 1024;  // of rows: some 20 us of copying

std::int64_t rows_per_task(std::int64_t row_bytes) {
  return std::max<std::int64_t>(kBytesPerTask / std::max<std::int64_t>(row_bytes, 1), 1);
}

// What both partners must have: the same place in groups that do the same.
template <std::size_t kMore>
std::array<comm::Fact, 5 + kMore> tp_facts(const EpAttributes& a, const std::array<comm::Fact, kMore>& more) {
  std::array<comm::Fact, 5 + kMore> facts{{{"epWorldSize", a.ep_world_size},
                                           {"epRankId", a.ep_rank_id},
                                           {"moeExpertNum", a.moe_expert_num},
                                           {"sharedExpertNum", a.shared_expert_num},
                                           {"sharedExpertRankNum", a.shared_expert_rank_num}}};
  std::ranges::copy(more, facts.begin() + 5);
  return facts;
}

int partner_of(const EpAttributes& a) { return static_cast<int>(1 - a.tp_rank_id); }

Status check_partner_reach(const char* function, const comm::Round& round, int partner) {
  for (const int block : {0, 1})
    if (round.address(partner, block) == nullptr && round.bytes(partner, block) != 0)
      return fail(
          stream_error::kInternal, TextCode::internal,
          "{}: the memory of rank {} of the TP domain cannot be reached from this process; run both on "
          "one host",
          function, partner);
  return {};
}

// All that the partner shows, if it is on another host.
Status fetch_far(const comm::Round& round, int partner) {
  if (!round.is_far(partner)) return {};
  std::array<comm::Piece, 2> pieces;
  for (const int block : {0, 1})
    pieces[static_cast<std::size_t>(block)] = {partner, block, 0, round.bytes(partner, block)};
  return round.fetch(pieces);
}

}  // namespace

Result<EpSession> open_in_groups(const char* function, const char* operator_name, const EpAttributes& a,
                                 const runtime::Stream& stream) {
  EpSession session{MOEYARD_TRY(open_in_group(function, operator_name, a, stream)), std::nullopt};
  if (!has_partner(a)) return session;
  auto group = comm::find_rank(a.group_tp, stream.device());
  if (group == nullptr || group->rank() != a.tp_rank_id)
    return fail(ACLNN_ERR_PARAM_INVALID, TextCode::operator_parameter,
                "{}: tpRankId is {} but must be the rank of the stream's device {} in group \"{}\", {}; pass "
                "that rank",
                function, a.tp_rank_id, stream.device(), a.group_tp,
                group == nullptr ? "which has none there" : std::to_string(group->rank()));
  session.tp.emplace(std::move(group), operator_name);
  return session;
}

// --- Dispatch ----------------------------------------------------------------------------------------------------------

TpGather::Plan::Plan(const DispatchArgs& args, Scratch& scratch) {
  rows = std::min<std::int64_t>(args.expand_x.dim(0), INT32_MAX);
  mine = scratch.add<std::int32_t>(args.ep_world_size + 1);
  theirs = scratch.add<std::int32_t>(args.ep_world_size + 1);
  const TensorView& view = args.dynamic_scales;
  if (!args.has_scales() || !view.present() || view.dim(0) == 0) return;
  rows = std::min(rows, view.dim(0));
  scale_row_bytes = bytes_of(view.dtype, view.numel() / view.dim(0));
  scales = scratch.add<std::byte>(rows * scale_row_bytes);
}

std::int64_t TpGather::row_bytes() const { return bytes_of(args_.expand_x.dtype, args_.hidden()); }

Status TpGather::meet(const std::int32_t* sums, Status wrong) {
  const auto mine = plan_.mine.span_in(workspace_), theirs = plan_.theirs.span_in(workspace_);
  std::copy_n(sums, ranks(), mine.begin());
  mine.back() = static_cast<std::int32_t>(plan_.rows);
  const auto facts = tp_facts<5>(args_, {{{"quantMode", args_.quant_mode},
                                          {"H", args_.hidden()},
                                          {"dtype of x (as a number)", args_.x.dtype},
                                          {"dtype of expandXOut (as a number)", args_.expand_x.dtype},
                                          {"bytes of scales per row", plan_.scale_row_bytes}}});
  const Result<comm::Round> met =
      exchange_.round({.facts = facts, .message = std::as_bytes(mine), .error = wrong});
  over_ = !met;
  if (over_) return wrong.ok() ? met.error() : wrong;
  const std::span<const std::byte> message = met->message(partner_of(args_));
  std::memcpy(theirs.data(), message.data(), std::min(message.size(), theirs.size_bytes()));
  const std::int64_t fit = std::min(mine.back(), theirs.back());
  if (rows_of_both() <= fit) return wrong;
  return wrong_data(
      function_,
      "{} rows arrive at this rank and {} at its TP partner but the smaller outputs of the two hold {}; "
      "make expandXOut and dynamicScalesOut larger",
      this->mine(), this->theirs(), fit);
}

Status TpGather::fetch(const Rows& rows, Status wrong) {
  if (over_) return wrong;
  if (wrong.ok()) pack_scales();
  const std::array<comm::Exposed, 2> blocks = {
      exposed_rows(rows, mine(), row_bytes(), comm::Access::read),
      comm::Exposed{plan_.scales.in(workspace_), mine() * plan_.scale_row_bytes, comm::Access::read}};
  const std::int64_t stride = rows.stride;
  const Result<comm::Round> met =
      exchange_.round({.message = std::as_bytes(std::span(&stride, 1)), .blocks = blocks, .error = wrong});
  if (!met) return wrong.ok() ? met.error() : wrong;
  const int partner = partner_of(args_);
  MOEYARD_TRY(check_partner_reach(function_, *met, partner));
  std::int64_t their_stride;
  std::memcpy(&their_stride, met->message(partner).data(), sizeof their_stride);
  MOEYARD_TRY(fetch_far(*met, partner));
  copy_rows(rows, met->address(partner, 0), their_stride);
  copy_scales(mine(), theirs(), met->address(partner, 1));
  describe();
  return exchange_.finish();
}

void TpGather::copy_rows(const Rows& rows, const std::byte* from, std::int64_t stride) const {
  const auto size = static_cast<std::size_t>(row_bytes());
  parallel_for(theirs(), rows_per_task(row_bytes()), [&](Range range) {
    for (std::int64_t row = range.begin; row < range.end; ++row)
      std::memcpy(rows[mine() + row], from + row * stride, size);
  });
}

namespace {
// Visits the elements of rows [first, first + count) of a view of 1 to 3 dimensions, in row-major order.
template <class Visit>
void for_each_element(const TensorView& view, std::int64_t first, std::int64_t count, Visit&& visit) {
  const std::int64_t j_count = view.rank > 1 ? view.dim(1) : 1, k_count = view.rank > 2 ? view.dim(2) : 1;
  for (std::int64_t i = first; i < first + count; ++i)
    for (std::int64_t j = 0; j < j_count; ++j)
      for (std::int64_t k = 0; k < k_count; ++k)
        visit(view.begin() +
              bytes_of(view.dtype, i * view.strides[0] + (view.rank > 1 ? j * view.strides[1] : 0) +
                                       (view.rank > 2 ? k * view.strides[2] : 0)));
}
}  // namespace

void TpGather::pack_scales() const {
  if (plan_.scale_row_bytes == 0) return;
  std::byte* to = plan_.scales.in(workspace_);
  const std::int64_t size = bytes_of(args_.dynamic_scales.dtype, 1);
  for_each_element(args_.dynamic_scales, 0, mine(), [&](const std::byte* element) {
    std::memcpy(to, element, static_cast<std::size_t>(size));
    to += size;
  });
}

void TpGather::copy_scales(std::int64_t first, std::int64_t count, const std::byte* from) const {
  if (plan_.scale_row_bytes == 0) return;
  const std::int64_t size = bytes_of(args_.dynamic_scales.dtype, 1);
  for_each_element(args_.dynamic_scales, first, count, [&](std::byte* element) {
    std::memcpy(element, from, static_cast<std::size_t>(size));
    from += size;
  });
}

void TpGather::describe() const {
  for (std::int64_t rank = 0; rank < ranks(); ++rank)
    args_.ep_recv_counts.at<std::int32_t>(ranks() + rank) = plan_.theirs.in(workspace_)[rank];
  args_.expert_token_nums.at<std::int64_t>(0) = rows_of_both();
  args_.tp_recv_counts.at<std::int32_t>(args_.tp_rank_id) = static_cast<std::int32_t>(mine());
  args_.tp_recv_counts.at<std::int32_t>(1 - args_.tp_rank_id) = static_cast<std::int32_t>(theirs());
}

// --- Combine -----------------------------------------------------------------------------------------------------------

TpSum::Plan::Plan(const CombineArgs& args, Scratch& scratch) {
  const std::int64_t rows = args.expand_x.dim(0);
  weighted_sum = kernels::weighted_sum_variants().front().run;
  sums = scratch.add<std::byte>(rows * bytes_of(args.expand_x.dtype, args.hidden()));
  terms = scratch.add<kernels::Term>(2 * rows);
  term_counts = scratch.add<std::int32_t>(rows);
}

Rows TpSum::sums() const {
  return {plan_.sums.in(workspace_), bytes_of(args_.expand_x.dtype, args_.hidden())};
}

std::int64_t TpSum::theirs() const { return args_.tp_send_counts.at<std::int32_t>(1 - args_.tp_rank_id); }

Status TpSum::check_counts(std::int64_t mine) const {
  const std::int64_t said = args_.tp_send_counts.at<std::int32_t>(args_.tp_rank_id);
  const std::int64_t room = args_.expand_x.dim(0) - mine;
  if (said != mine)
    return wrong_data(
        function_,
        "tpSendCounts[{}] is {} but must be {}, the rows that epSendCounts says this rank holds; pass "
        "tpRecvCountsOut and epRecvCountsOut of one dispatch",
        args_.tp_rank_id, said, mine);
  if (theirs() < 0 || theirs() > room)
    return wrong_data(
        function_,
        "tpSendCounts[{}] is {} but must be in [0, {}], the rows of expandX behind this rank's own; "
        "pass tpRecvCountsOut of the dispatch that expandX comes from",
        1 - args_.tp_rank_id, theirs(), room);
  return {};
}

Status TpSum::check_partner(std::int64_t mine, const Hello& partner) const {
  if (partner.mine == theirs() && partner.theirs == mine) return {};
  return wrong_data(
      function_,
      "tpSendCounts is ({}, {}), own rows first, but the TP partner's is ({}, {}), which must be the other "
      "way round; pass the tpRecvCountsOut that both got from one dispatch",
      mine, theirs(), partner.mine, partner.theirs);
}

Status TpSum::add(const Rows& rows, std::int64_t mine, Status wrong) {
  Hello hello{};
  std::array<comm::Exposed, 2> blocks;
  if (wrong.ok()) {
    hello = {mine, theirs(), rows.stride};
    blocks[0] = exposed_rows({rows[mine], rows.stride}, theirs(), sums().stride, comm::Access::read);
  }
  const auto facts =
      tp_facts<2>(args_, {{{"H", args_.hidden()}, {"dtype of expandX (as a number)", args_.expand_x.dtype}}});
  const Result<comm::Round> met = exchange_.round(
      {.facts = facts, .message = std::as_bytes(std::span(&hello, 1)), .blocks = blocks, .error = wrong});
  if (!met) return wrong.ok() ? met.error() : wrong;
  const int partner = partner_of(args_);
  Hello their_hello;
  std::memcpy(&their_hello, met->message(partner).data(), sizeof their_hello);
  wrong = check_partner(mine, their_hello);
  if (wrong.ok()) wrong = check_partner_reach(function_, *met, partner);
  if (wrong.ok()) wrong = fetch_far(*met, partner);
  if (wrong.ok()) add_up(rows, mine, met->address(partner, 0), their_hello.stride);
  const Status done = exchange_.finish({.error = wrong});
  return wrong.ok() ? done : wrong;
}

void TpSum::add_up(const Rows& rows, std::int64_t mine, const std::byte* partner, std::int64_t stride) const {
  kernels::Term* terms = plan_.terms.in(workspace_);
  for (std::int64_t row = 0; row < mine; ++row) {
    terms[2 * row] = {rows[row], nullptr, 1, 1, 0};
    terms[2 * row + 1] = {partner + row * stride, nullptr, 1, 1, 0};
  }
  std::fill_n(plan_.term_counts.in(workspace_), mine, 2);
  const Rows out = sums();
  const kernels::WeightedSum sum{
      terms,      2,    plan_.term_counts.in(workspace_), args_.expand_x.dtype, args_.hidden(), out.data,
      out.stride, false};
  parallel_for(mine, rows_per_task(3 * out.stride), [&](Range range) { plan_.weighted_sum(sum, range); });
}

}  // namespace moeyard::ops
