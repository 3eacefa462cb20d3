// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/afd/attention_to_ffn.h"

#include <algorithm>
#include <cstring>

#include "base/errors.h"
#include "base/parallel.h"
#include "ops/afd/context.h"

namespace moeyard::ops {
namespace {

using A = AttentionToFfnArgs;

constexpr std::int64_t kBytesPerTask = 256 * 1024;  // of rows: some 20 us of writing
constexpr std::int64_t kStreamedBytes =
    4 * 1024 * 1024;  // more than that does not wait in a cache for its reader

// Element (0, i, j) of a view whose first dimension is 1.
std::int32_t at(const TensorView& view, std::int64_t i, std::int64_t j) {
  return view.begin_as<std::int32_t>()[i * view.strides[1] + j * view.strides[2]];
}

// One call on the stream's thread: where every slot goes, whether its place is free, the rows, the flags.
class Sending {
 public:
  Sending(const executor::Run& run, const A& args, const AttentionToFfn::Plan& plan, const Windows& windows)
      : function_(run.function), workspace_(run.workspace), args_(args), plan_(plan), windows_(windows) {}

  Status run() {
    MOEYARD_TRY(read_ids());
    count_active();
    std::fill_n(plan_.window_of_worker.in(workspace_), args_.ffn_workers(), nullptr);
    for (std::int64_t t = 0; t < active_; ++t) MOEYARD_TRY(find_places(t));
    if (args_.synchronous())
      for (std::int64_t worker = 0; worker < args_.ffn_workers(); ++worker) MOEYARD_TRY(find_window(worker));
    std::byte* own_window = nullptr;
    if (active_ < args_.tokens()) own_window = MOEYARD_TRY(windows_.of(function_, windows_.rank()));
    MOEYARD_TRY(wait_for_room());
    write_tokens();
    publish();
    MOEYARD_TRY(send_far());
    if (own_window != nullptr) skip_inactive(own_window);
    return {};
  }

 private:
  Status wrong(const std::string& text) const {
    return fail(stream_error::kWorkerSide, TextCode::operator_parameter, "{}: {}", function_, text);
  }

  Status read_ids() {
    session_ = args_.session_id.at<std::int32_t>(0);
    micro_batch_ = args_.micro_batch_id.at<std::int32_t>(0);
    const auto sessions = static_cast<std::int64_t>(plan_.window.sessions);
    const auto micro_batches = static_cast<std::int64_t>(plan_.window.micro_batches);
    if (session_ < 0 || session_ >= sessions)
      return wrong(fmt::format("sessionId is {} but must be in [0, {})", session_, sessions));
    if (micro_batch_ < 0 || micro_batch_ >= micro_batches)
      return wrong(fmt::format("microBatchId is {} but must be in [0, {})", micro_batch_, micro_batches));
    return {};
  }

  void count_active() {
    active_ = args_.tokens();
    const TensorView& mask = args_.active_mask;
    if (!mask.present()) return;
    active_ = 0;
    for (std::int64_t t = 0; t < args_.tokens(); ++t) active_ += mask.at<std::uint8_t>(0, t) != 0 ? 1 : 0;
  }

  std::int64_t expert(std::int64_t t, std::int64_t k) const {
    return k < args_.topk() ? at(args_.expert_ids, t, k) : args_.moe_expert_num + k - args_.topk();
  }

  // The worker and local expert of every slot of a token, from the expert's row of the table: a session always uses
  // the same copy of an expert.
  Status find_places(std::int64_t t) const {
    const TensorView& table = args_.expert_rank_table;
    for (std::int64_t k = 0; k < args_.slots(); ++k) {
      const std::int64_t e = expert(t, k);
      if (e < 0 || (k < args_.topk() && e >= args_.moe_expert_num))
        return wrong(
            fmt::format("expertIds[0][{}][{}] is {} but must be in [0, {})", t, k, e, args_.moe_expert_num));
      const std::int64_t copies = at(table, e, 0);
      if (copies < 1 || 2 * copies + 1 > table.dim(2))
        return wrong(fmt::format("expertRankTable[0][{}][0] is {} but must be a number of copies in [1, {}]",
                                 e, copies, (table.dim(2) - 1) / 2));
      const std::int64_t column = 1 + 2 * (session_ % copies);
      const std::int64_t worker = at(table, e, column) - args_.ffn_start_rank_id;
      if (worker < 0 || worker >= args_.ffn_workers())
        return wrong(fmt::format(
            "expertRankTable[0][{}][{}] is {} but must be the rank of an FFN worker, in [{}, {})", e, column,
            at(table, e, column), args_.ffn_start_rank_id, args_.ffn_start_rank_id + args_.ffn_workers()));
      const std::int32_t local = at(table, e, column + 1);
      if (!names_expert(local))
        return wrong(fmt::format("expertRankTable[0][{}][{}] is {} but must be a local expert in [0, {})", e,
                                 column + 1, local, static_cast<std::int32_t>(kExpertIdLimit)));
      const std::int64_t slot = t * args_.slots() + k;
      plan_.worker_of_slot.in(workspace_)[slot] = static_cast<std::int32_t>(worker);
      plan_.local_of_slot.in(workspace_)[slot] = local;
      MOEYARD_TRY(find_window(worker));
    }
    return {};
  }

  Status find_window(std::int64_t worker) const {
    std::byte*& window = plan_.window_of_worker.in(workspace_)[worker];
    if (window == nullptr) window = MOEYARD_TRY(windows_.of(function_, args_.ffn_start_rank_id + worker));
    return {};
  }

  std::int32_t* descriptor(std::int64_t worker) const {  // null: nothing goes there
    std::byte* window = plan_.window_of_worker.in(workspace_)[worker];
    if (window == nullptr) return nullptr;
    return reinterpret_cast<std::int32_t*>(window +
                                           plan_.window.descriptor(static_cast<std::uint64_t>(session_),
                                                                   static_cast<std::uint64_t>(micro_batch_)));
  }

  // Waits for all before writing to any, so that a call whose time runs out can be repeated.
  Status wait_for_room() const {
    std::int64_t free = 0;  // all workers before this one
    Status fault;
    MOEYARD_TRY(windows_.patience().wait(
        function_, stream_error::kWorkerLate,
        [&] {
          fault = windows_.fault();
          if (fault.ok()) fault = read_far_flags(free);
          if (!fault.ok()) return true;
          for (; free < args_.ffn_workers(); ++free)
            if (const std::int32_t* flag = descriptor(free); flag != nullptr && is_set(flag)) return false;
          return true;
        },
        [&] {
          return fmt::format("rank {} to take the last tokens of session {}, micro-batch {}",
                             args_.ffn_start_rank_id + free, session_, micro_batch_);
        }));
    return fault;
  }

  bool is_far(std::int64_t worker) const { return windows_.is_far(args_.ffn_start_rank_id + worker); }
  comm::WindowPiece piece(std::int64_t worker, void* at, std::int64_t bytes) const {
    auto* const begin = static_cast<std::byte*>(at);
    return {static_cast<std::int32_t>(args_.ffn_start_rank_id + worker),
            begin - plan_.window_of_worker.in(workspace_)[worker],
            {begin, static_cast<std::size_t>(bytes)}};
  }

  // Of workers on other hosts, from `first` on.
  Status read_far_flags(std::int64_t first) const {
    std::vector<comm::WindowPiece> flags;
    for (std::int64_t worker = first; worker < args_.ffn_workers(); ++worker)
      if (std::int32_t* flag = descriptor(worker); flag != nullptr && is_far(worker))
        flags.push_back(piece(worker, flag, sizeof *flag));
    return flags.empty() ? Status() : windows_.read(function_, flags);
  }

  // What was written for workers on other hosts goes there, the flags last.
  Status send_far() const {
    std::vector<comm::WindowPiece> pieces;
    const std::int64_t row_bytes =
        args_.hidden() * (args_.quantises() ? 1 : 2) + (args_.quantises() ? std::int64_t{sizeof(float)} : 0);
    for (std::int64_t slot = 0; slot < active_ * args_.slots(); ++slot) {
      const std::int32_t worker = plan_.worker_of_slot.in(workspace_)[slot];
      if (!is_far(worker)) continue;
      pieces.push_back(piece(worker, plan_.place_of_slot.in(workspace_)[slot], row_bytes));
      pieces.push_back(piece(worker, descriptor(worker) + 2 + slot, sizeof(std::int32_t)));
    }
    for (std::int64_t worker = 0; worker < args_.ffn_workers(); ++worker) {
      std::int32_t* const words = descriptor(worker);
      if (words == nullptr || !is_far(worker)) continue;
      pieces.push_back(piece(worker, words + 1, sizeof *words));
      pieces.push_back(piece(worker, words, sizeof *words));
    }
    return pieces.empty() ? Status() : windows_.write(function_, pieces);
  }

  void write_tokens() const {
    const std::int64_t token_bytes = args_.slots() * args_.hidden() * (args_.quantises() ? 1 : 2);
    plan_.x.gather(args_.x, active_, workspace_);
    if (args_.scales.present()) plan_.scales.gather(args_.scales, args_.scales.dim(1), workspace_);
    const bool streaming = active_ * token_bytes > kStreamedBytes;
    parallel_for(active_, kBytesPerTask / std::max<std::int64_t>(token_bytes, 1) + 1, [&](Range tokens) {
      for (std::int64_t t = tokens.begin; t < tokens.end; ++t) label(t);
      write_rows(tokens, streaming);
    });
  }

  // Finds the places of a token's rows and writes the local experts of its slots.
  void label(std::int64_t t) const {
    const FfnWindow& window = plan_.window;
    for (std::int64_t k = 0; k < args_.slots(); ++k) {
      const std::int64_t slot = t * args_.slots() + k;
      const std::int32_t worker = plan_.worker_of_slot.in(workspace_)[slot];
      std::byte* data = plan_.window_of_worker.in(workspace_)[worker] + window.data_offset();
      plan_.place_of_slot.in(workspace_)[slot] =
          data + window.slot(static_cast<std::uint64_t>(session_), static_cast<std::uint64_t>(micro_batch_),
                             static_cast<std::uint64_t>(t), static_cast<std::uint64_t>(k));
      descriptor(worker)[2 + slot] = plan_.local_of_slot.in(workspace_)[slot];
    }
  }

  void write_rows(Range tokens, bool streaming) const {
    const Rows x = plan_.x.rows(args_.x, workspace_);
    std::byte* const* places = plan_.place_of_slot.in(workspace_);
    if (!args_.quantises())
      return plan_.copy_rows({x.data, x.stride, args_.hidden() * 2, places, args_.slots(), streaming},
                             tokens);
    const float** smooth = args_.scales.present() ? plan_.smooth_of_slot.in(workspace_) : nullptr;
    const Rows scales = plan_.scales.rows(args_.scales, workspace_);
    float* scale_of_slot = plan_.scale_of_slot.in(workspace_);
    const Range slots{tokens.begin * args_.slots(), tokens.end * args_.slots()};
    if (smooth != nullptr)
      for (std::int64_t s = slots.begin; s < slots.end; ++s)
        smooth[s] = reinterpret_cast<const float*>(scales[expert(s / args_.slots(), s % args_.slots())]);
    plan_.quantize_rows({x.data, x.stride, args_.x.dtype, args_.hidden(), smooth, places, args_.slots(),
                         scale_of_slot, streaming},
                        tokens);
    for (std::int64_t s = slots.begin; s < slots.end; ++s)  // the scale lies wherever the row ends
      std::memcpy(places[s] + args_.hidden(), scale_of_slot + s, sizeof(float));
  }

  void publish() const {
    for (std::int64_t worker = 0; worker < args_.ffn_workers(); ++worker) {
      std::int32_t* words = descriptor(worker);
      if (words == nullptr) continue;
      words[1] = args_.layer_id.at<std::int32_t>(0);
      set_flag(words, 1);
    }
  }

  // Nobody will return results of inactive tokens: their flags are set here, so that nobody waits for them.
  void skip_inactive(std::byte* own_window) const {
    const AttentionWindow window = args_.attention_window();
    auto* flags = reinterpret_cast<std::int32_t*>(
        own_window + window.flag(static_cast<std::uint64_t>(micro_batch_), 0, 0));
    for (std::int64_t s = active_ * args_.slots(); s < args_.tokens() * args_.slots(); ++s)
      set_flag(flags + s, 1);
  }

  const char* const function_;
  std::byte* const workspace_;
  const A& args_;
  const AttentionToFfn::Plan& plan_;
  const Windows& windows_;
  std::int64_t session_ = 0, micro_batch_ = 0;
  std::int64_t active_ = 0;  // tokens: the first ones
};

}  // namespace

Result<AttentionToFfn::Plan> AttentionToFfn::plan(const char* function, const Args& args) {
  const comm::Limits limits = MOEYARD_TRY(find_workers(function, args.group, args.world_size));
  Plan plan;
  plan.window = args.ffn_window();
  MOEYARD_TRY(check_window(function, limits, plan.window.info_bytes() + plan.window.data_bytes(),
                           std::max(plan.window.bytes(), args.attention_window().info_bytes())));
  const std::int64_t slots = args.tokens() * args.slots();
  Scratch scratch;
  plan.x = DenseRows(args.x, args.tokens(), scratch);
  plan.window_of_worker = scratch.add<std::byte*>(args.ffn_workers());
  plan.worker_of_slot = scratch.add<std::int32_t>(slots);
  plan.local_of_slot = scratch.add<std::int32_t>(slots);
  plan.place_of_slot = scratch.add<std::byte*>(slots);
  if (args.quantises()) plan.scale_of_slot = scratch.add<float>(slots);
  if (args.scales.present()) {
    plan.scales = DenseRows(args.scales, args.scales.dim(1), scratch);
    plan.smooth_of_slot = scratch.add<const float*>(slots);
  }
  plan.workspace_bytes = scratch.bytes();
  plan.copy_rows = kernels::copy_rows_variants().front().run;
  plan.quantize_rows = kernels::quantize_rows_variants().front().run;
  return plan;
}

Result<Windows> AttentionToFfn::open(const char* function, const Args& args, const Plan& /*plan*/,
                                     runtime::Stream& stream) {
  return Windows::open(function, args.group, stream);
}

Status AttentionToFfn::run(const executor::Run& run, const Args& args, const Plan& plan,
                           const Windows& windows) {
  return Sending(run, args, plan, windows).run();
}

}  // namespace moeyard::ops
