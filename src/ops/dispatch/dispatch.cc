// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/dispatch/dispatch.h"

#include <algorithm>
#include <cstring>

#include "base/errors.h"
#include "base/parallel.h"
#include "ops/dispatch/ep_group.h"
#include "ops/dispatch/far_pieces.h"
#include "ops/dispatch/split_dispatch.h"

namespace moeyard::ops {
namespace {

constexpr std::int64_t kBytesPerTask = 256 * 1024;  // of rows: some 20 us of writing
// What all ranks write together; more does not wait in a cache for its reader.
constexpr std::int64_t kStreamedBytes = 8 * 1024 * 1024;
constexpr const char* kOperator = "MoeDistributeDispatch";

// One call on the stream. Each step reads what the steps before it wrote.
class DispatchCall {
 public:
  DispatchCall(const executor::Run& run, const DispatchArgs& args, const Dispatch::Plan& plan,
               const EpMembers& members, EpSession& session)
      : function_(run.function),
        workspace_(run.workspace),
        args_(args),
        plan_(plan),
        members_(members),
        exchange_(session.ep),
        slots_(args.expert_ids, args.active_mask, members.layout, members.rank, plan.policy),
        local_experts_(members.layout.experts_on(members.rank)),
        row_bytes_(bytes_of(args.expand_x.dtype, args.hidden())) {
    if (session.tp) partner_.emplace(function_, args_, plan_.tp, workspace_, *session.tp);
  }

  Status run() {
    const auto waits = count_waits(plan_.waits.span_in(workspace_), members_, exchange_);
    const Result<comm::Round> counts = swap_counts();
    Status wrong = counts ? place_sources(*counts) : counts.error();
    if (partner_) wrong = partner_->meet(plan_.recv_counts.in(workspace_), std::move(wrong));
    if (counts) wrong = send_rows(std::move(wrong));
    if (partner_) wrong = partner_->fetch(rows_received(), std::move(wrong));
    MOEYARD_TRY(std::move(wrong));
    plan_.expand_x.scatter(args_.expand_x, partner_ ? partner_->rows_of_both() : received_, workspace_);
    add_waits(args_.performance_info, members_, waits);
    return {};
  }

 private:
  static constexpr int kRows = 0, kScales = 1, kAssist = 2, kWeights = 3;  // blocks of the second round

  Status send_rows(Status wrong) {
    const comm::Round offers = MOEYARD_TRY(swap_offers(std::move(wrong)));
    MOEYARD_TRY(find_peers(offers));
    push();
    const Status sent = send_far(offers);
    describe();
    return exchange_.finish({.error = sent});
  }

  Rows rows_received() const { return plan_.expand_x.rows(args_.expand_x, workspace_); }

  // Numbers my slots and tells every peer how many rows it gets for each of its experts.
  Result<comm::Round> swap_counts() {
    const auto counts = plan_.send_counts.span_in(workspace_);
    const auto targets = plan_.targets.span_in(workspace_);
    Status wrong = args_.is_split() ? read_commands(function_, args_, members_.layout, targets, counts)
                                    : slots_.scan(function_, targets, counts);
    const EpFacts facts = ep_facts(Dispatch::kContract, &args_, members_, plan_.limits.buffer_mb);
    return exchange_.round(
        {.facts = facts.all(),
         .message = std::as_bytes(counts),
         .bytes_per_peer = members_.layout.width() * static_cast<std::int64_t>(sizeof(std::int32_t)),
         .error = std::move(wrong)});
  }

  // Gives every (local expert, source) its rows; fails when there are more than the outputs hold.
  Status place_sources(const comm::Round& counts) {
    const std::int64_t ranks = members_.layout.ranks();
    std::int32_t* sums = plan_.recv_counts.in(workspace_);
    for (std::int64_t source = 0; source < ranks; ++source) {
      const std::span<const std::byte> message = counts.message(static_cast<int>(source));
      for (std::int64_t local = 0; local < local_experts_; ++local)
        std::memcpy(&sums[local * ranks + source], message.data() + local * 4, 4);
    }
    std::byte* offers = plan_.offers.in(workspace_);
    const Rows rows = rows_received();
    const TensorView& scales = args_.dynamic_scales;
    const DispatchOffer strides{.row_stride = rows.stride,
                                .assist_stride = stride_of(args_.assist_info),
                                .weight_stride = stride_of(args_.expand_scales),
                                .scale_stride = stride_of(scales),
                                .scale_pair = scales.rank == 3 ? step_of(scales, 1) : 2 * step_of(scales, 1),
                                .scale_step = step_of(scales, scales.rank == 3 ? 2 : 1)};
    for (std::int64_t source = 0; source < ranks; ++source)
      std::memcpy(offers + source * plan_.offer_bytes, &strides, sizeof strides);
    for (std::int64_t local = 0; local < local_experts_; ++local)
      for (std::int64_t source = 0; source < ranks; ++source) {
        std::int32_t& sum = sums[local * ranks + source];
        const auto first = static_cast<std::int32_t>(std::min(received_, kMostRows));
        std::memcpy(offers + source * plan_.offer_bytes + sizeof strides + local * 4, &first, 4);
        received_ += sum;
        sum = static_cast<std::int32_t>(std::min(received_, kMostRows));
      }
    if (members_.layout.keeps_own_tokens(members_.rank))
      for (std::int64_t rank = 0; rank < members_.layout.shared_ranks(); ++rank)
        sums[rank] = static_cast<std::int32_t>(members_.layout.chunk_end(members_.rank, rank, args_.bs()));
    if (received_ <= plan_.capacity) return {};
    return wrong_data(
        function_,
        "{} rows arrive but the outputs hold {} (expandXOut is {}); make them larger, the experts of a token "
        "distinct, or globalBs the largest BS times epWorldSize",
        received_, plan_.capacity, args_.expand_x.describe());
  }

  Result<comm::Round> swap_offers(Status wrong) {
    blocks_[kRows] = exposed_rows(rows_received(), plan_.capacity, row_bytes_);
    blocks_[kScales] = exposed(args_.dynamic_scales, args_.has_scales());
    blocks_[kAssist] = exposed(args_.assist_info, plan_.triples);
    blocks_[kWeights] = exposed(args_.expand_scales, args_.weighs());
    return exchange_.round({.message = std::as_bytes(plan_.offers.span_in(workspace_)),
                            .bytes_per_peer = plan_.offer_bytes,
                            .blocks = blocks_,
                            .error = std::move(wrong)});
  }

  Status find_peers(const comm::Round& offers) {
    const std::int64_t width = members_.layout.width();
    const auto peers = plan_.peers.span_in(workspace_);
    std::int32_t* first_row = plan_.first_row.in(workspace_);
    for (std::int64_t rank = 0; rank < members_.layout.ranks(); ++rank) {
      const int peer = static_cast<int>(rank);
      DispatchPeer& at = peers[static_cast<std::size_t>(rank)];
      const std::span<const std::byte> offer = offers.message(peer);
      std::memcpy(&at.strides, offer.data(), sizeof at.strides);
      std::memcpy(first_row + rank * width, offer.data() + sizeof at.strides,
                  static_cast<std::size_t>(width) * 4);
      at.rows = offers.address(peer, kRows);
      at.scales = offers.address(peer, kScales);
      at.assist = offers.address(peer, kAssist);
      at.weights = offers.address(peer, kWeights);
      MOEYARD_TRY(check_reach(function_, offers, members_, rank, static_cast<int>(blocks_.size())));
    }
    return {};
  }

  // Writes every row and what goes with it to its final place.
  void push() {
    const std::int64_t row_work = slots_.per_token() * row_bytes_;
    plan_.rows.gather(args_, workspace_);
    const bool streaming = args_.bs() * row_work * members_.layout.ranks() > kStreamedBytes;
    parallel_for(args_.bs(), pieces_of(args_.bs(), row_work, kBytesPerTask, members_.layout.ranks()),
                 [&](Range tokens) {
                   find_places(tokens);
                   plan_.rows.write(args_, slots_, members_.layout, plan_.place_of_slot.in(workspace_),
                                    tokens, streaming, workspace_);
                   write_labels(tokens);
                 });
  }

  // What push() has written for ranks of other hosts goes there.
  Status send_far(const comm::Round& offers) const {
    FarPieces pieces;
    const std::int64_t width = members_.layout.width();
    const std::int32_t* sent = plan_.send_counts.in(workspace_);
    const std::int32_t* first_row = plan_.first_row.in(workspace_);
    // The rows of a token are all the same unless each expert has scales of its own: with the hierarchy algorithm they
    // cross once to each host.
    const bool once = plan_.algorithm == CommAlg::hierarchy && args_.scales.rank != 2;
    for (std::int64_t rank = 0; rank < members_.layout.ranks(); ++rank) {
      const int peer = static_cast<int>(rank);
      if (!offers.is_far(peer)) continue;
      for (std::int64_t d = rank * width; d < (rank + 1) * width; ++d)
        if (sent[d] > 0) list_labels(pieces, peer, first_row[d], sent[d], !once);
    }
    if (once) list_rows_once(pieces, offers);
    return pieces.all().empty() ? Status() : offers.send(pieces.all());
  }

  void list_labels(FarPieces& pieces, int peer, std::int64_t first, std::int64_t count,
                   bool with_rows) const {
    const DispatchPeer& to = plan_.peers.in(workspace_)[peer];
    const DispatchOffer& at = to.strides;
    if (with_rows) pieces.add(peer, kRows, first * at.row_stride, count, at.row_stride, row_bytes_);
    if (to.assist != nullptr)
      pieces.add(peer, kAssist, 3 * first * at.assist_stride, 3 * count, at.assist_stride,
                 sizeof(std::int32_t));
    if (to.weights != nullptr && args_.expert_scales.present())
      pieces.add(peer, kWeights, first * at.weight_stride, count, at.weight_stride, sizeof(float));
    if (to.scales == nullptr) return;
    const std::int64_t scales = plan_.rows.scales_per_row(), bytes = plan_.rows.scale_bytes();
    if (at.scale_step == bytes && at.scale_pair == 2 * bytes)
      return pieces.add(peer, kScales, first * at.scale_stride, count, at.scale_stride, scales * bytes);
    for (std::int64_t row = first; row < first + count; ++row)
      for (std::int64_t i = 0; i < scales; ++i)
        pieces.add(peer, kScales, row * at.scale_stride + i / 2 * at.scale_pair + i % 2 * at.scale_step,
                   bytes);
  }

  void list_rows_once(FarPieces& pieces, const comm::Round& offers) const {
    const std::int64_t width = members_.layout.width();
    const Target* targets = plan_.targets.in(workspace_);
    const std::int32_t* first_row = plan_.first_row.in(workspace_);
    std::vector<std::pair<int, std::int64_t>> sent;  // of the token: a host, and the piece that goes there
    for (std::int64_t t = 0; t < args_.bs(); ++t) {
      sent.clear();
      for (std::int64_t s = t * slots_.per_token(); s < (t + 1) * slots_.per_token(); ++s) {
        if (targets[s].destination < 0) continue;
        const int peer = static_cast<int>(targets[s].destination / width);
        if (!offers.is_far(peer)) continue;
        const auto before =
            std::ranges::find(sent, offers.host_of(peer), &std::pair<int, std::int64_t>::first);
        const std::int64_t piece = pieces.add_copy(
            peer, kRows, row_of(targets[s], first_row) * plan_.peers.in(workspace_)[peer].strides.row_stride,
            row_bytes_, before == sent.end() ? -1 : before->second);
        if (before == sent.end()) sent.emplace_back(offers.host_of(peer), piece);
      }
    }
  }

  void find_places(Range tokens) const {
    const Target* targets = plan_.targets.in(workspace_);
    const DispatchPeer* peers = plan_.peers.in(workspace_);
    const std::int32_t* first_row = plan_.first_row.in(workspace_);
    std::byte** places = plan_.place_of_slot.in(workspace_);
    for (std::int64_t s = tokens.begin * slots_.per_token(); s < tokens.end * slots_.per_token(); ++s) {
      const Target& target = targets[s];
      if (target.destination < 0) {
        places[s] = nullptr;
        continue;
      }
      const DispatchPeer& peer = peers[target.destination / members_.layout.width()];
      places[s] = peer.rows + row_of(target, first_row) * peer.strides.row_stride;
    }
  }

  // Scales, weights and where each row came from.
  void write_labels(Range tokens) const {
    const Target* targets = plan_.targets.in(workspace_);
    const std::int32_t* first_row = plan_.first_row.in(workspace_);
    for (std::int64_t t = tokens.begin; t < tokens.end; ++t)
      for (std::int64_t j = 0; j < slots_.per_token(); ++j) {
        const std::int64_t s = t * slots_.per_token() + j;
        if (targets[s].destination < 0) continue;
        const DispatchPeer& peer =
            plan_.peers.in(workspace_)[targets[s].destination / members_.layout.width()];
        const std::int64_t row = row_of(targets[s], first_row);
        if (peer.assist != nullptr) {
          const std::int32_t triple[] = {static_cast<std::int32_t>(members_.rank),
                                         static_cast<std::int32_t>(t), static_cast<std::int32_t>(j)};
          for (std::int64_t i = 0; i < 3; ++i)
            *reinterpret_cast<std::int32_t*>(peer.assist + (3 * row + i) * peer.strides.assist_stride) =
                triple[i];
        }
        if (peer.scales != nullptr) write_scales(peer, row, plan_.rows.scales_of(args_, t, s, workspace_));
        if (peer.weights != nullptr && args_.expert_scales.present())
          *reinterpret_cast<float*>(peer.weights + row * peer.strides.weight_stride) =
              j < slots_.topk() ? args_.expert_scales.at<float>(t, j) : 1.0f;
      }
  }

  void write_scales(const DispatchPeer& peer, std::int64_t row, const std::byte* from) const {
    const std::int64_t count = plan_.rows.scales_per_row(), bytes = plan_.rows.scale_bytes();
    const DispatchOffer& at = peer.strides;
    std::byte* to = peer.scales + row * at.scale_stride;
    if (at.scale_step == bytes && at.scale_pair == 2 * bytes) {
      std::memcpy(to, from, static_cast<std::size_t>(count * bytes));
      return;
    }
    for (std::int64_t i = 0; i < count; ++i, from += bytes)
      std::memcpy(to + i / 2 * at.scale_pair + i % 2 * at.scale_step, from, static_cast<std::size_t>(bytes));
  }

  static std::int64_t row_of(const Target& target, const std::int32_t* first_row) {
    return std::int64_t{first_row[target.destination]} + target.index;
  }

  // My own counts, and on A2 what my combine needs.
  void describe() const {
    const std::int64_t ranks = members_.layout.ranks();
    const std::int32_t* sums = plan_.recv_counts.in(workspace_);
    const std::int64_t counts = args_.ep_recv_counts.present() ? local_experts_ * ranks : 0;
    for (std::int64_t i = 0; i < counts; ++i) args_.ep_recv_counts.at<std::int32_t>(i) = sums[i];
    const std::int64_t end = std::min(counts + plan_.zero_tail, args_.ep_recv_counts.dim(0));
    for (std::int64_t i = counts; i < end; ++i) args_.ep_recv_counts.at<std::int32_t>(i) = 0;
    std::int64_t before = 0;
    for (std::int64_t local = 0; local < local_experts_; ++local) {
      const std::int64_t sum = sums[local * ranks + ranks - 1];
      args_.expert_token_nums.at<std::int64_t>(local) =
          args_.expert_token_nums_type == 0 ? sum : sum - before;
      before = sum;
    }
    if (plan_.triples) return;
    const Target* targets = plan_.targets.in(workspace_);
    for (std::int64_t t = 0; t < slots_.active_tokens(); ++t)
      for (std::int64_t k = 0; k < slots_.topk(); ++k)
        args_.assist_info.at<std::int32_t>(t * slots_.topk() + k) = targets[t * slots_.per_token() + k].index;
  }

  static std::int64_t stride_of(const TensorView& view) {
    return view.present() ? view.row_stride_bytes() : 0;
  }
  static std::int64_t step_of(const TensorView& view, int axis) {
    return view.rank > axis ? bytes_of(view.dtype, view.strides[axis]) : 0;
  }
  static comm::Exposed exposed(const TensorView& view, bool used) {
    if (!used || !view.present() || view.numel() == 0) return {};
    return {view.begin(), bytes_of(view.dtype, view.extent().high - view.offset + 1)};
  }

  static constexpr std::int64_t kMostRows = INT32_MAX;  // that counts and triples can number

  const char* const function_;
  std::byte* const workspace_;
  const DispatchArgs& args_;
  const Dispatch::Plan& plan_;
  const EpMembers& members_;
  comm::Exchange& exchange_;
  std::optional<TpGather> partner_;
  Slots slots_;
  const std::int64_t local_experts_, row_bytes_;
  std::int64_t received_ = 0;
  std::array<comm::Exposed, 4> blocks_;  // peers read it until the last round
};

// What devices keep behind the counts with the hierarchy algorithm, for a combine of theirs; ours does not need it.
std::int64_t zero_tail_of(const DispatchArgs& args, CommAlg algorithm) {
  if (algorithm != CommAlg::hierarchy || product() == Product::host) return 0;
  const std::int64_t all = args.global_bs != 0 ? args.global_bs : args.bs() * args.ep_world_size;
  // globalBs may be anything: no tensor has more entries.
  return 2 * std::min<std::int64_t>(all, INT32_MAX) * args.topk() *
         std::max<std::int64_t>(args.ep_world_size / 8, 1);
}

// Rows that all the outputs of a receiver have room for.
std::int64_t rows_that_fit(const DispatchArgs& args, bool triples) {
  std::int64_t rows = std::min<std::int64_t>(args.expand_x.dim(0), INT32_MAX);
  if (triples) rows = std::min(rows, args.assist_info.dim(0) / 3);
  if (args.has_scales()) rows = std::min(rows, args.dynamic_scales.dim(0));
  if (args.weighs()) rows = std::min(rows, args.expand_scales.dim(0));
  return rows;
}

}  // namespace

std::string Dispatch::Plan::describe() const {
  return fmt::format("{} ranks, {} rows fit, {}", layout.ranks(), capacity, rows.describe());
}

Result<Dispatch::Plan> Dispatch::plan(const char* function, const Args& args) {
  Plan plan{EpLayout(args)};
  plan.limits = MOEYARD_TRY(find_ep_group(function, args));
  MOEYARD_TRY(check_window(function, args, plan.limits, args.bs(), args.topk(), args.hidden()));
  plan.algorithm = algorithm_of(args);
  plan.policy = slot_policy();
  plan.triples = product() != Product::a2 && !args.first_version;
  plan.zero_tail = zero_tail_of(args, plan.algorithm);
  plan.capacity = rows_that_fit(args, plan.triples);

  const EpLayout& layout = plan.layout;
  const std::int64_t slots = args.bs() * (args.topk() + layout.shared_experts());
  const std::int64_t first_rows = layout.width() * static_cast<std::int64_t>(sizeof(std::int32_t));
  plan.offer_bytes = static_cast<std::int64_t>(sizeof(DispatchOffer)) + (first_rows + 7) / 8 * 8;
  Scratch scratch;
  plan.rows = RowMaker(args, slots, scratch);
  if (has_partner(args)) plan.tp = TpGather::Plan(args, scratch);
  plan.expand_x = DenseRows(args.expand_x, has_partner(args) ? plan.tp.rows : plan.capacity, scratch);
  plan.targets = scratch.add<Target>(slots);
  plan.send_counts = scratch.add<std::int32_t>(layout.destinations());
  plan.recv_counts = scratch.add<std::int32_t>(layout.destinations());
  plan.offers = scratch.add<std::byte>(layout.ranks() * plan.offer_bytes);
  plan.peers = scratch.add<DispatchPeer>(layout.ranks());
  if (args.elastic_info.present()) plan.members = scratch.add<std::int32_t>(layout.ranks());
  if (args.performance_info.present()) plan.waits = scratch.add<std::int64_t>(layout.ranks());
  plan.first_row = scratch.add<std::int32_t>(layout.destinations());
  plan.place_of_slot = scratch.add<std::byte*>(slots);
  plan.workspace_bytes = scratch.bytes();
  return plan;
}

void Dispatch::refused(const char* /*function*/, const Args& args, const Status& why) {
  refuse_in_group(kOperator, args, why);
}

Result<EpSession> Dispatch::open(const char* function, const Args& args, const Plan& /*plan*/,
                                 runtime::Stream& stream) {
  return open_in_groups(function, kOperator, args, stream);
}

Status Dispatch::run(const executor::Run& run, const Args& args, const Plan& plan, Session& session) {
  const EpMembers members = MOEYARD_TRY(find_members(run.function, kOperator, args, args.elastic_info,
                                                     plan.members.span_in(run.workspace), session.ep));
  return leave_members(kOperator, args.group_ep, run.device, args.elastic_info,
                       DispatchCall(run, args, plan, members, session).run());
}

}  // namespace moeyard::ops
