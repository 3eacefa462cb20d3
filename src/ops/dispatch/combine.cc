// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/dispatch/combine.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "base/errors.h"
#include "base/numbers.h"
#include "base/parallel.h"
#include "ops/dispatch/ep_group.h"
#include "ops/dispatch/far_pieces.h"
#include "ops/dispatch/split_combine.h"

namespace moeyard::ops {
namespace {

constexpr std::int64_t kBytesPerTask = 256 * 1024;  // of rows: some 20 us of reading
// What all ranks write together; more does not wait in a cache for its reader.
constexpr std::int64_t kStreamedBytes = 8 * 1024 * 1024;
constexpr std::int64_t kSlotsPerTask = 4096;  // look-ups of some nanoseconds each
constexpr const char* kOperator = "MoeDistributeCombine";
constexpr std::int64_t kNoRow = -1;
constexpr std::int64_t kExtraTerms = 2;  // sharedExpertX and residualX

// The shares of a constant expert: softmax over the two products of its gate with the token.
struct Shares {
  float token, vector;
};
template <class T>
float dot(const std::byte* a, const std::byte* b, std::int64_t n) {
  constexpr std::int64_t kLanes = 8;  // independent sums in a fixed order
  double sums[kLanes] = {};
  const T *left = reinterpret_cast<const T*>(a), *right = reinterpret_cast<const T*>(b);
  for (std::int64_t i = 0; i < n; ++i)
    sums[i % kLanes] += static_cast<double>(to_float(left[i])) * static_cast<double>(to_float(right[i]));
  double sum = 0;
  for (const double lane : sums) sum += lane;
  return static_cast<float>(sum);
}
Shares shares_of(float p1, float p2) {
  const float most = std::max(p1, p2);
  const float e1 = std::exp(p1 - most), e2 = std::exp(p2 - most);
  return {e1 / (e1 + e2), e2 / (e1 + e2)};
}

// One call on the stream. Each step reads what the steps before it wrote.
class CombineCall {
 public:
  CombineCall(const executor::Run& run, const CombineArgs& args, const Combine::Plan& plan,
              const EpMembers& members, EpSession& session)
      : function_(run.function),
        workspace_(run.workspace),
        args_(args),
        plan_(plan),
        members_(members),
        exchange_(session.ep),
        slots_(args.expert_ids, args.active_mask, members.layout, members.rank, plan.policy),
        local_experts_(members.layout.experts_on(members.rank)),
        most_terms_(args.topk() + members.layout.shared_experts() + kExtraTerms) {
    if (session.tp) partner_.emplace(function_, args_, plan_.tp, workspace_, *session.tp);
  }

  Status run() {
    const auto waits = count_waits(plan_.waits.span_in(workspace_), members_, exchange_);
    Status wrong;
    if (args_.is_split())
      MOEYARD_TRY(learn_counts(wrong));
    else
      wrong = check_inputs();
    const comm::Round offers = MOEYARD_TRY(swap_offers(gather_rows(std::move(wrong))));
    MOEYARD_TRY(find_peers(offers));
    wrong = check_expected(offers);
    if (wrong.ok() && plan_.triples) wrong = return_rows();
    if (wrong.ok() && plan_.triples) wrong = send_far_entries(offers);
    // From here on every rank's table is complete.
    const comm::Round tables = MOEYARD_TRY(exchange_.round({.blocks = blocks_, .error = std::move(wrong)}));
    exchange_.count_waits({});  // from here on nothing more is expected of the peers
    Status missing = find_terms();
    if (missing.ok()) missing = fetch_far_rows(tables);
    if (missing.ok()) add_up();
    MOEYARD_TRY(exchange_.finish({.error = std::move(missing)}));
    plan_.x_out.scatter(args_.x_out, args_.bs(), workspace_);
    if (args_.normalises()) plan_.norm.scatter(args_, workspace_);
    forget_waits_without_rows(waits);
    add_waits(args_.performance_info, members_, waits);
    return {};
  }

 private:
  static constexpr int kRows = 0, kTable = 1;  // blocks

  std::int64_t ranks() const { return members_.layout.ranks(); }
  // Rows before and up to those of (local expert, source).
  std::int64_t sum(std::int64_t i) const {
    if (members_.layout.keeps_own_tokens(members_.rank) && i < members_.layout.shared_ranks())
      return i < members_.rank ? 0 : sum_said(members_.layout.shared_ranks() - 1);
    return sum_said(i);
  }
  std::int64_t sum_said(std::int64_t i) const {
    if (args_.is_split()) return plan_.held_sums.in(workspace_)[i];
    return args_.ep_send_counts.at<std::int32_t>(i);
  }
  std::int64_t sum_before(std::int64_t i) const { return i == 0 ? 0 : sum(i - 1); }
  std::int64_t row_count() const { return sum(local_experts_ * ranks() - 1); }

  // Without epSendCounts the peers say how many rows of theirs I hold. Fails where that meeting does; `wrong` is what this rank
  // finds afterwards.
  Status learn_counts(Status& wrong) {
    const auto sent = plan_.sent_counts.span_in(workspace_);
    Status bad_slots = slots_.scan(function_, plan_.targets.span_in(workspace_), sent);
    const EpFacts facts = ep_facts(Combine::kContract, &args_, members_, plan_.limits.buffer_mb);
    const comm::Round counts = MOEYARD_TRY(exchange_.round(
        {.facts = facts.all(),
         .message = std::as_bytes(sent),
         .bytes_per_peer = members_.layout.width() * static_cast<std::int64_t>(sizeof(std::int32_t)),
         .error = std::move(bad_slots)}));
    std::int64_t held = 0;
    for (std::int64_t i = 0; i < local_experts_ * ranks(); ++i) {
      std::int32_t count;
      std::memcpy(&count, counts.message(static_cast<int>(i % ranks())).data() + i / ranks() * 4, 4);
      held += count;
      plan_.held_sums.in(workspace_)[i] = static_cast<std::int32_t>(std::min<std::int64_t>(held, INT32_MAX));
    }
    const std::int64_t fit = std::min(args_.expand_x.dim(0), Commands(args_.comm_cmd_info).count());
    wrong = check_commands(function_, args_, plan_.targets.span_in(workspace_));
    if (held > fit)
      wrong = wrong_data(function_,
                         "the ranks have sent {} rows to this one but expandX and commCmdInfo hold {}; make "
                         "them larger, the experts of a token distinct, or globalBs the largest BS times "
                         "epWorldSize",
                         held, fit);
    return {};
  }

  // The rows that I hold must be where the peers expect theirs.
  Status check_counts() const {
    const std::int64_t fit =
        plan_.triples ? std::min(args_.expand_x.dim(0), args_.assist_info.dim(0) / 3) : args_.expand_x.dim(0);
    for (std::int64_t i = 0; i < local_experts_ * ranks(); ++i)
      if (const std::int64_t before = i == 0 ? 0 : sum_said(i - 1); sum_said(i) < before || sum_said(i) > fit)
        return wrong_data(
            function_,
            "epSendCounts[{}] is {} but must be in [{}, {}], from the entry before to the rows that expandX "
            "and assistInfoForCombine hold; pass epRecvCountsOut of the dispatch that expandX comes from",
            i, sum_said(i), before, fit);
    return {};
  }

  Status check_inputs() {
    MOEYARD_TRY(
        slots_.scan(function_, plan_.targets.span_in(workspace_), plan_.sent_counts.span_in(workspace_)));
    MOEYARD_TRY(check_counts());
    return partner_ ? partner_->check_counts(row_count()) : Status();
  }

  // Makes my rows ready: dense, and together with what the partner has computed of them.
  Status gather_rows(Status wrong) {
    const bool good = wrong.ok();
    if (good)
      plan_.expand_x.gather(args_.expand_x, row_count() + (partner_ ? partner_->theirs() : 0), workspace_);
    if (!partner_) return wrong;
    const Rows rows = plan_.expand_x.rows(args_.expand_x, workspace_);
    return partner_->add(rows, good ? row_count() : 0, std::move(wrong));
  }
  Rows my_rows() const {
    return partner_ ? partner_->sums() : plan_.expand_x.rows(args_.expand_x, workspace_);
  }

  Result<comm::Round> swap_offers(Status wrong) {
    if (wrong.ok()) write_offers();
    const auto table = plan_.table.span_in(workspace_);
    std::fill(table.begin(), table.end(), kNoRow);
    blocks_[kRows] = exposed_rows(my_rows(), wrong.ok() ? row_count() : 0,
                                  bytes_of(args_.expand_x.dtype, args_.hidden()), comm::Access::read);
    blocks_[kTable] = {reinterpret_cast<std::byte*>(table.data()),
                       static_cast<std::int64_t>(table.size_bytes())};
    const EpFacts facts = ep_facts(Combine::kContract, &args_, members_, plan_.limits.buffer_mb);
    return exchange_.round({.facts = facts.all(),
                            .message = std::as_bytes(plan_.offers.span_in(workspace_)),
                            .bytes_per_peer = plan_.offer_bytes,
                            .blocks = blocks_,
                            .error = std::move(wrong)});
  }

  void write_offers() {
    const CombineOffer head{my_rows().stride, row_count()};
    const std::int64_t width = members_.layout.width();
    const std::int32_t* sent = plan_.sent_counts.in(workspace_);
    for (std::int64_t peer = 0; peer < ranks(); ++peer) {
      std::byte* at = plan_.offers.in(workspace_) + peer * plan_.offer_bytes;
      std::memcpy(at, &head, sizeof head);
      auto* expected = reinterpret_cast<std::int32_t*>(at + sizeof head);
      std::copy_n(sent + peer * width, width, expected);
      for (std::int64_t local = 0; local < local_experts_; ++local)
        expected[width + local] = static_cast<std::int32_t>(sum_before(local * ranks() + peer));
    }
  }

  Status find_peers(const comm::Round& offers) {
    const std::int64_t width = members_.layout.width();
    for (std::int64_t rank = 0; rank < ranks(); ++rank) {
      const int peer = static_cast<int>(rank);
      MOEYARD_TRY(check_reach(function_, offers, members_, rank, static_cast<int>(blocks_.size())));
      const std::span<const std::byte> message = offers.message(peer);
      CombineOffer head;
      std::memcpy(&head, message.data(), sizeof head);
      std::memcpy(plan_.first_row.in(workspace_) + rank * width, message.data() + sizeof head + width * 4,
                  static_cast<std::size_t>(width) * 4);
      plan_.peers.in(workspace_)[rank] = {
          offers.address(peer, kRows), head.row_stride, head.rows,
          reinterpret_cast<std::int64_t*>(offers.address(peer, kTable)),
          offers.bytes(peer, kTable) / static_cast<std::int64_t>(sizeof(std::int64_t))};
    }
    return {};
  }

  // A rank that none of my slots names kept nobody waiting.
  void forget_waits_without_rows(std::span<std::int64_t> waits) const {
    const std::int64_t width = members_.layout.width();
    const std::int32_t* sent = plan_.sent_counts.in(workspace_);
    for (std::size_t rank = 0; rank < waits.size(); ++rank, sent += width)
      if (std::all_of(sent, sent + width, [](std::int32_t n) { return n == 0; })) waits[rank] = 0;
  }

  // Every source must expect as many rows as I hold of it.
  Status check_expected(const comm::Round& offers) const {
    for (std::int64_t source = 0; source < ranks(); ++source) {
      const std::span<const std::byte> message = offers.message(static_cast<int>(source));
      for (std::int64_t local = 0; local < local_experts_; ++local) {
        std::int32_t expected;
        std::memcpy(&expected, message.data() + sizeof(CombineOffer) + local * 4, 4);
        const std::int64_t i = local * ranks() + source;
        if (sum(i) - sum_before(i) != expected)
          return wrong_data(
              function_,
              "epSendCounts[{}] says that local expert {} holds {} rows of rank {}, whose expertIds and mask "
              "name it {} times; pass the epRecvCountsOut, expertIds and mask of one dispatch",
              i, local, sum(i) - sum_before(i), members_.rank_before(source), expected);
      }
    }
    return {};
  }

  // Writes into the table of each row's source where the row is. Fails for the first triple that is wrong.
  Status return_rows() const {
    const std::int64_t segments = local_experts_ * ranks();
    std::atomic<std::int64_t> first_wrong{INT64_MAX};
    const std::int64_t rows_per_segment = row_count() / segments + 1;
    parallel_for(segments, pieces_of(segments, rows_per_segment, kSlotsPerTask, ranks()), [&](Range range) {
      for (std::int64_t i = range.begin; i < range.end; ++i)
        for (std::int64_t row = sum_before(i); row < sum(i); ++row)
          if (!return_row(row, i % ranks())) {
            for (std::int64_t known = first_wrong.load();
                 row < known && !first_wrong.compare_exchange_weak(known, row);) {
            }
            break;
          }
    });
    const std::int64_t row = first_wrong.load();
    if (row == INT64_MAX) return {};
    const bool split = args_.is_split();
    return wrong_data(
        function_,
        "{} says that row {} is rank {}, token {}, slot {}, which is no slot of the rank that {} "
        "for the row; pass the assistInfoForCombineOut of the dispatch that expandX comes from{}",
        split ? "commCmdInfo" : "assistInfoForCombine", row, triple(row, 0), triple(row, 1), triple(row, 2),
        split ? "dispatch had" : "epSendCounts names", split ? " to Setup" : "");
  }

  // The entries of tables on other hosts go there.
  Status send_far_entries(const comm::Round& offers) const {
    FarPieces pieces;
    constexpr std::int64_t kEntryBytes = sizeof(std::int64_t);
    for (std::int64_t i = 0; i < local_experts_ * ranks(); ++i) {
      const int source = static_cast<int>(i % ranks());
      if (!offers.is_far(source)) continue;
      for (std::int64_t row = sum_before(i); row < sum(i); ++row)
        pieces.add(source, kTable, (triple(row, 1) * slots_.per_token() + triple(row, 2)) * kEntryBytes,
                   kEntryBytes);
    }
    return pieces.all().empty() ? Status() : offers.send(pieces.all());
  }

  // The rows that other hosts hold of mine.
  Status fetch_far_rows(const comm::Round& tables) const {
    FarPieces pieces;
    const std::int64_t width = members_.layout.width();
    const std::int64_t row_bytes = bytes_of(args_.expand_x.dtype, args_.hidden());
    const std::int32_t* sent = plan_.sent_counts.in(workspace_);
    const std::int32_t* first_row = plan_.first_row.in(workspace_);
    for (std::int64_t d = 0; d < ranks() * width; ++d) {
      const int peer = static_cast<int>(d / width);
      if (sent[d] == 0 || !tables.is_far(peer)) continue;
      const std::int64_t stride = plan_.peers.in(workspace_)[peer].row_stride;
      pieces.add(peer, kRows, first_row[d] * stride, sent[d], stride, row_bytes);
    }
    return pieces.all().empty() ? Status() : tables.fetch(pieces.all());
  }

  std::int64_t triple(std::int64_t row, std::int64_t i) const {
    if (args_.is_split()) return Commands(args_.comm_cmd_info).word(row, i);
    return args_.assist_info.at<std::int32_t>(3 * row + i);
  }

  bool return_row(std::int64_t row, std::int64_t source) const {
    const std::int64_t token = triple(row, 1), slot = triple(row, 2);
    const CombinePeer& peer = plan_.peers.in(workspace_)[source];
    const std::int64_t at = token * slots_.per_token() + slot;
    if (triple(row, 0) != source || token < 0 || slot < 0 || slot >= slots_.per_token() ||
        at >= peer.table_slots)
      return false;
    // Wrong triples of two ranks may name one slot; either value is found to be wrong then.
    std::atomic_ref<std::int64_t>(peer.table[at]).store(members_.rank << 32 | row, std::memory_order_relaxed);
    return true;
  }

  // Lists what is added up for each token, in the order in which it is added. Fails for the first slot
  // without a row.
  Status find_terms() const {
    const std::int64_t tokens = args_.bs();
    plan_.shared_expert_x.gather(args_.shared_expert_x, tokens, workspace_);
    plan_.ori_x.gather(args_.ori_x, tokens, workspace_);
    plan_.const_alpha1.gather(args_.const_alpha1, args_.const_expert_num, workspace_);
    plan_.const_alpha2.gather(args_.const_alpha2, args_.const_expert_num, workspace_);
    plan_.const_v.gather(args_.const_v, args_.const_expert_num, workspace_);
    if (args_.normalises()) plan_.norm.gather(args_, workspace_);
    std::atomic<std::int64_t> first_missing{INT64_MAX};
    parallel_for(tokens, pieces_of(tokens, most_terms_, kSlotsPerTask, ranks()), [&](Range range) {
      for (std::int64_t t = range.begin; t < range.end; ++t) {
        const std::int64_t missing = find_terms_of(t);
        for (std::int64_t known = first_missing.load();
             missing < known && !first_missing.compare_exchange_weak(known, missing);) {
        }
      }
    });
    const std::int64_t slot = first_missing.load();
    if (slot == INT64_MAX) return {};
    return wrong_data(function_,
                      "no rank returned a row for token {}, slot {}; pass the {}, expertIds and mask of the "
                      "dispatch that expandX comes from on every rank",
                      slot / slots_.per_token(), slot % slots_.per_token(),
                      args_.is_split()      ? "commCmdInfo"
                      : args_.first_version ? "expandIdx"
                                            : "assistInfoForCombineOut");
  }

  // The number of the first slot of t without a row, INT64_MAX if there is none.
  std::int64_t find_terms_of(std::int64_t t) const {
    std::int32_t& count = plan_.term_counts.in(workspace_)[t];
    count = -1;
    if (!slots_.token_active(t)) return INT64_MAX;
    kernels::Term* term = plan_.terms.in(workspace_) + t * most_terms_;
    kernels::Term* const first = term;
    for (std::int64_t j = 0; j < slots_.per_token(); ++j) {
      const std::int64_t s = t * slots_.per_token() + j;
      const float weight = j < args_.topk() && args_.weighs() ? args_.expert_scales.at<float>(t, j) : 1.0f;
      if (plan_.targets.in(workspace_)[s].destination >= 0) {
        const std::byte* row = row_of_slot(t, j);
        if (row == nullptr) return s;
        *term++ = {row, nullptr, weight, 1, 0, true};
      } else if (j < args_.topk() && slots_.slot_active(t, j)) {
        term += special_term(t, slots_.id(t, j), weight, term);
      }
    }
    if (args_.shared_expert_x.present())
      *term++ = {plan_.shared_expert_x.rows(args_.shared_expert_x, workspace_)[t], nullptr, 1, 1, 0};
    if (args_.normalises()) *term++ = {plan_.norm.residual(args_, workspace_)[t], nullptr, 1, 1, 0};
    count = static_cast<std::int32_t>(term - first);
    return INT64_MAX;
  }

  const std::byte* row_of_slot(std::int64_t t, std::int64_t j) const {
    const std::int64_t s = t * slots_.per_token() + j;
    const Target& target = plan_.targets.in(workspace_)[s];
    const std::int64_t rank = target.destination / members_.layout.width();
    const CombinePeer& peer = plan_.peers.in(workspace_)[rank];
    std::int64_t row;
    if (plan_.triples) {
      const std::int64_t entry = plan_.table.in(workspace_)[s];
      if (entry == kNoRow || entry >> 32 != rank) return nullptr;
      row = entry & 0xFFFFFFFF;
    } else {
      const bool shared = j >= args_.topk();
      const std::int64_t index =
          shared ? target.index : args_.assist_info.at<std::int32_t>(t * args_.topk() + j);
      if (index < 0 || index >= plan_.sent_counts.in(workspace_)[target.destination]) return nullptr;
      row = plan_.first_row.in(workspace_)[target.destination] + index;
    }
    return row < peer.row_count ? peer.rows + row * peer.row_stride : nullptr;
  }

  // What a special expert adds; the number of terms, 0 or 1.
  int special_term(std::int64_t t, std::int64_t id, float weight, kernels::Term* term) const {
    const ExpertKind kind = members_.layout.kind_of(id);
    if (kind != ExpertKind::copy && kind != ExpertKind::constant) return 0;
    const std::byte* token = plan_.ori_x.rows(args_.ori_x, workspace_)[t];
    if (kind == ExpertKind::copy) {
      *term = {token, nullptr, weight, 1, 0};
      return 1;
    }
    const std::int64_t i = members_.layout.const_index(id);
    const auto product = args_.expand_x.dtype == ACL_BF16 ? dot<Bf16> : dot<Fp16>;
    const Shares shares =
        shares_of(product(plan_.const_alpha1.rows(args_.const_alpha1, workspace_)[i], token, args_.hidden()),
                  product(plan_.const_alpha2.rows(args_.const_alpha2, workspace_)[i], token, args_.hidden()));
    *term = {token, plan_.const_v.rows(args_.const_v, workspace_)[i], weight, shares.token, shares.vector};
    return 1;
  }

  // Reads every row once, where it lies, and writes every sum once.
  void add_up() const {
    plan_.x_out.gather(args_.x_out, args_.bs(), workspace_);  // rows of inactive tokens keep what they hold
    const Rows out = plan_.x_out.rows(args_.x_out, workspace_);
    const std::int64_t row_bytes = bytes_of(args_.x_out.dtype, args_.hidden());
    const kernels::WeightedSum sums{plan_.terms.in(workspace_),
                                    most_terms_,
                                    plan_.term_counts.in(workspace_),
                                    args_.x_out.dtype,
                                    args_.hidden(),
                                    out.data,
                                    out.stride,
                                    args_.bs() * row_bytes * ranks() > kStreamedBytes};
    parallel_for(args_.bs(), pieces_of(args_.bs(), row_bytes * most_terms_, kBytesPerTask, ranks()),
                 [&](Range tokens) {
                   if (args_.normalises())
                     plan_.norm.run(args_, sums, out, tokens, workspace_);
                   else if (plan_.quantized_sum != nullptr)
                     plan_.quantized_sum({sums, plan_.quant}, tokens);
                   else
                     plan_.weighted_sum(sums, tokens);
                 });
  }

  const char* const function_;
  std::byte* const workspace_;
  const CombineArgs& args_;
  const Combine::Plan& plan_;
  const EpMembers& members_;
  comm::Exchange& exchange_;
  std::optional<TpSum> partner_;
  Slots slots_;
  const std::int64_t local_experts_, most_terms_;
  std::array<comm::Exposed, 2> blocks_;  // peers read it until the last round
};

kernels::CommQuant quant_of(std::int64_t mode) {
  using kernels::CommQuant;
  return mode == 2 ? CommQuant::int8 : mode == 3 ? CommQuant::e5m2 : CommQuant::e4m3;
}

}  // namespace

std::string Combine::Plan::describe() const {
  return fmt::format("{} ranks{}", layout.ranks(), quantized_sum != nullptr ? ", quantised on the way" : "");
}

Result<Combine::Plan> Combine::plan(const char* function, const Args& args) {
  Plan plan{EpLayout(args)};
  plan.limits = MOEYARD_TRY(find_ep_group(function, args));
  MOEYARD_TRY(check_window(function, args, plan.limits, args.bs(), args.topk(), args.hidden()));
  plan.algorithm = algorithm_of(args);
  plan.policy = slot_policy();
  plan.triples = product() != Product::a2 && !args.first_version;
  plan.weighted_sum = kernels::weighted_sum_variants().front().run;
  if (args.comm_quant_mode != 0) {
    plan.quantized_sum = kernels::quantized_sum_variants().front().run;
    plan.quant = quant_of(args.comm_quant_mode);
  }

  const EpLayout& layout = plan.layout;
  const std::int64_t slots = args.bs() * (args.topk() + layout.shared_experts());
  const std::int64_t numbers = 2 * layout.width() * static_cast<std::int64_t>(sizeof(std::int32_t));
  plan.offer_bytes = static_cast<std::int64_t>(sizeof(CombineOffer)) + numbers;
  Scratch scratch;
  plan.expand_x = DenseRows(args.expand_x, args.expand_x.dim(0), scratch);
  plan.shared_expert_x = DenseRows(args.shared_expert_x, args.bs(), scratch);
  plan.ori_x = DenseRows(args.ori_x, args.bs(), scratch);
  plan.const_alpha1 = DenseRows(args.const_alpha1, args.const_expert_num, scratch);
  plan.const_alpha2 = DenseRows(args.const_alpha2, args.const_expert_num, scratch);
  plan.const_v = DenseRows(args.const_v, args.const_expert_num, scratch);
  plan.x_out = DenseRows(args.x_out, args.bs(), scratch);
  if (args.normalises()) plan.norm = NormStep(args, scratch);
  if (has_partner(args)) plan.tp = TpSum::Plan(args, scratch);
  plan.targets = scratch.add<Target>(slots);
  plan.sent_counts = scratch.add<std::int32_t>(layout.destinations());
  if (args.is_split()) plan.held_sums = scratch.add<std::int32_t>(layout.destinations());
  plan.offers = scratch.add<std::byte>(layout.ranks() * plan.offer_bytes);
  plan.peers = scratch.add<CombinePeer>(layout.ranks());
  if (args.elastic_info.present()) plan.members = scratch.add<std::int32_t>(layout.ranks());
  if (args.performance_info.present()) plan.waits = scratch.add<std::int64_t>(layout.ranks());
  plan.first_row = scratch.add<std::int32_t>(layout.destinations());
  if (plan.triples) plan.table = scratch.add<std::int64_t>(slots);
  plan.terms = scratch.add<kernels::Term>(args.bs() * (args.topk() + layout.shared_experts() + kExtraTerms));
  plan.term_counts = scratch.add<std::int32_t>(args.bs());
  plan.workspace_bytes = scratch.bytes();
  return plan;
}

void Combine::refused(const char* /*function*/, const Args& args, const Status& why) {
  refuse_in_group(kOperator, args, why);
}

Result<EpSession> Combine::open(const char* function, const Args& args, const Plan& /*plan*/,
                                runtime::Stream& stream) {
  return open_in_groups(function, kOperator, args, stream);
}

Status Combine::run(const executor::Run& run, const Args& args, const Plan& plan, Session& session) {
  const EpMembers members = MOEYARD_TRY(find_members(run.function, kOperator, args, args.elastic_info,
                                                     plan.members.span_in(run.workspace), session.ep));
  return leave_members(kOperator, args.group_ep, run.device, args.elastic_info,
                       CombineCall(run, args, plan, members, session).run());
}

}  // namespace moeyard::ops
