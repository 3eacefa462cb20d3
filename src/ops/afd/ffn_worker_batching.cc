// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/afd/ffn_worker_batching.h"

#include <algorithm>
#include <cstring>

#include "base/errors.h"
#include "base/parallel.h"

namespace moeyard::ops {
namespace {

using A = FfnWorkerBatchingArgs;

constexpr std::int64_t kBytesPerTask = 256 * 1024;              // of rows: some 20 us of writing
constexpr std::int64_t kStreamedBytes = 4 * 1024 * 1024;        // more than that does not wait in a cache
constexpr std::int64_t kTinyBytes = 16 * 1024, kTinyRows = 64;  // less work than waking the stream's thread
constexpr std::int64_t kRowsAtOnce = 64;                        // slot numbers on the stack

// One call on the stream's thread: which slots hold tokens, where their rows go, and the rows.
class Batching {
 public:
  Batching(const executor::Run& run, const A& args, const FfnWorkerBatching::Plan& plan)
      : reader_{run.function, run.device, stream_error::kWorkerSide},
        args_(args),
        plan_(plan),
        workspace_(run.workspace),
        context_(args.schedule_context) {}

  Status run(const Patience& patience) {
    const auto use = args_.waits() ? ScheduleUse::ffn_batching_fused : ScheduleUse::ffn_batching;
    schedule_ = MOEYARD_TRY(reader_.load(args_.schedule_context, use));
    window_ = ffn_window(schedule_);
    MOEYARD_TRY(check_counts());
    MOEYARD_TRY(check_sources());
    if (args_.waits()) MOEYARD_TRY(wait_for_sessions(patience));
    collected_ = args_.waits() ? Collected::all_sessions(schedule_) : Collected::by_scheduler(schedule_);
    MOEYARD_TRY(collect_slots());
    const auto sorted = sort_by_expert(plan_.slots.span_in(workspace_).first(rows_),
                                       plan_.sorted.span_in(workspace_).first(rows_));
    gather(sorted);
    list_groups(sorted);
    *args_.actual_token_num.begin_as<std::int64_t>() = static_cast<std::int64_t>(rows_);
    if (args_.waits()) take();
    return {};
  }

 private:
  // Slots are numbered in int32: 2^31 of them would have a terabyte of rows.
  Status check_counts() const {
    if (window_.slots_of_descriptor() <= INT32_MAX && slots_of_window() <= INT32_MAX) return {};
    return reader_.wrong(
        fmt::format("common.micro_batch_size is {} but must be so small that the window has at most {} slots",
                    window_.tokens, INT32_MAX));
  }
  std::int64_t slots_of_window() const {  // at most 2^16 * 2^31
    return static_cast<std::int64_t>(window_.sessions * window_.micro_batches *
                                     window_.slots_of_descriptor());
  }

  // Memory that is read before any row is.
  Status check_sources() const {
    const ScheduleContext::Ffn& ffn = schedule_.ffn;
    if (args_.waits())
      return reader_.check_memory("ffn.token_info_buf", ffn.token_info_buf,
                                  std::max(ffn.token_info_buf_size, window_.info_bytes()));
    const std::uint64_t ids_bytes = std::uint64_t{4} * ffn.out_num;
    if (ids_bytes == 0) return {};
    MOEYARD_TRY(reader_.check_memory("ffn.session_ids_buf", ffn.session_ids_buf, ids_bytes));
    MOEYARD_TRY(reader_.check_memory("ffn.micro_batch_ids_buf", ffn.micro_batch_ids_buf, ids_bytes));
    return reader_.check_memory("ffn.expert_ids_buf", ffn.expert_ids_buf,
                                ids_bytes * window_.slots_of_descriptor());
  }

  std::int32_t* descriptor(std::uint64_t session) const {
    return words_at(schedule_.ffn.token_info_buf + window_.descriptor(session, schedule_.ffn.polling_index));
  }

  Status wait_for_sessions(const Patience& patience) const {
    std::uint64_t ready = 0;  // all sessions before this one
    return patience.wait(
        reader_.function, stream_error::kWorkerLate,
        [&] {
          while (ready < window_.sessions && is_set(descriptor(ready))) ++ready;
          return ready == window_.sessions;
        },
        [&] {
          return fmt::format("session {} of {} to send micro-batch {}", ready, window_.sessions,
                             schedule_.ffn.polling_index);
        });
  }

  // Finds the slots that hold tokens, in their order, and checks where their rows would be read.
  Status collect_slots() {
    const std::span<RoutedSlot> slots = plan_.slots.span_in(workspace_);
    std::uint64_t data_bytes = 0;  // that the rows reach
    rows_ = 0;
    for (std::int64_t c = 0; c < collected_.count(); ++c) {
      const std::int32_t* ids = collected_.expert_ids(c);
      std::int64_t last = -1;
      for (std::int64_t i = 0; i < collected_.slots(); ++i) {
        if (!names_expert(ids[i])) continue;
        last = i;
        if (rows_ < slots.size()) slots[rows_] = RoutedSlot(ids[i], c * collected_.slots() + i);
        ++rows_;
      }
      if (last >= 0) data_bytes = std::max(data_bytes, MOEYARD_TRY(row_end(c, last)));
    }
    if (rows_ > slots.size())
      return fail(stream_error::kWorkerSide, TextCode::operator_parameter,
                  "{}: {} slots hold tokens but Y, the rows of y, is {}; pass a larger maxOutShape",
                  reader_.function, rows_, slots.size());
    return rows_ == 0 ? Status() : check_data(data_bytes);
  }

  Result<std::uint64_t> row_end(std::int64_t c, std::int64_t slot) const {
    const auto within = [](std::int64_t value, std::uint64_t limit) {
      return 0 <= value && static_cast<std::uint64_t>(value) < limit;
    };
    if (!within(collected_.session(c), window_.sessions))
      return reader_.wrong(fmt::format("ffn.session_ids_buf[{}] is {} but must be in [0, {})", c,
                                       collected_.session(c), window_.sessions));
    if (!within(collected_.micro_batch(c), window_.micro_batches))
      return reader_.wrong(fmt::format("ffn.micro_batch_ids_buf[{}] is {} but must be in [0, {})", c,
                                       collected_.micro_batch(c), window_.micro_batches));
    const std::int64_t scale_bytes = args_.quantised() ? sizeof(float) : 0;
    return row_offset(slot_of_window(c, slot)) + static_cast<std::uint64_t>(args_.row_bytes() + scale_bytes);
  }

  Status check_data(std::uint64_t bytes) const {
    const ScheduleContext::Ffn& ffn = schedule_.ffn;
    if (ffn.token_data_buf == 0) return reader_.wrong("ffn.token_data_buf is 0 but must be a device address");
    if (ffn.token_data_buf_size != 0 && bytes > ffn.token_data_buf_size)
      return reader_.wrong(
          fmt::format("ffn.token_data_buf_size is {} but must be at least {}, the end of the last row",
                      ffn.token_data_buf_size, bytes));
    return reader_.check_memory("ffn.token_data_buf", ffn.token_data_buf,
                                std::max(bytes, ffn.token_data_buf_size));
  }

  // Slot number `slot` of a collected session, among all of the window.
  std::int64_t slot_of_window(std::int64_t c, std::int64_t slot) const {
    const auto micro_batches = static_cast<std::int64_t>(window_.micro_batches);
    return (collected_.session(c) * micro_batches + collected_.micro_batch(c)) * collected_.slots() + slot;
  }
  std::uint64_t row_offset(std::int64_t slot_of_window) const {
    return static_cast<std::uint64_t>(slot_of_window) * window_.slot_bytes;
  }

  void gather(std::span<const RoutedSlot> sorted) const {
    const std::int64_t row_bytes = args_.row_bytes();
    const auto rows = static_cast<std::int64_t>(sorted.size());
    const bool streaming = rows * row_bytes > kStreamedBytes;
    parallel_for(rows, kBytesPerTask / std::max<std::int64_t>(row_bytes, 1) + 1, [&](Range range) {
      for (std::int64_t begin = range.begin; begin < range.end; begin += kRowsAtOnce)
        gather_some(sorted, {begin, std::min(begin + kRowsAtOnce, range.end)}, streaming);
    });
  }

  void gather_some(std::span<const RoutedSlot> sorted, Range rows, bool streaming) const {
    const auto* data = reinterpret_cast<const std::byte*>(schedule_.ffn.token_data_buf);
    const auto slots = static_cast<std::int64_t>(window_.slots);
    std::int32_t slot_of_row[kRowsAtOnce];
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
      const std::int64_t position = sorted[static_cast<std::size_t>(i)].position();
      const std::int64_t c = position / collected_.slots(), slot = position % collected_.slots();
      const std::int64_t source = slot_of_window(c, slot);
      slot_of_row[i - rows.begin] = static_cast<std::int32_t>(source);
      args_.session_ids.begin_as<std::int32_t>()[i] = collected_.session(c);
      args_.micro_batch_ids.begin_as<std::int32_t>()[i] = collected_.micro_batch(c);
      args_.token_ids.begin_as<std::int32_t>()[i] = static_cast<std::int32_t>(slot / slots);
      args_.expert_offsets.begin_as<std::int32_t>()[i] = static_cast<std::int32_t>(slot % slots);
      if (args_.quantised())  // the scale lies wherever the row ends
        std::memcpy(args_.dynamic_scale.begin_as<float>() + i, data + row_offset(source) + args_.row_bytes(),
                    sizeof(float));
    }
    std::byte* out = args_.y.begin() + rows.begin * args_.row_bytes();
    plan_.gather_rows({.rows = data,
                       .row_stride = static_cast<std::int64_t>(window_.slot_bytes),
                       .row_count = slots_of_window(),
                       .row_bytes = args_.row_bytes(),
                       .index = slot_of_row,
                       .out = out,
                       .out_stride = args_.row_bytes(),
                       .zero_others = false,
                       .streaming = streaming},
                      {0, rows.size()});
  }

  // Experts beyond the rows of groupList are not listed.
  void list_groups(std::span<const RoutedSlot> sorted) const {
    auto* group = args_.group_list.begin_as<std::int64_t>();
    const std::int64_t* end = group + 2 * args_.expert_num;
    for (std::size_t i = 0; i < sorted.size() && group != end; group += 2) {
      group[0] = sorted[i].expert();
      group[1] = 0;
      for (; i < sorted.size() && sorted[i].expert() == group[0]; ++i) ++group[1];
    }
    std::fill(group, args_.group_list.begin_as<std::int64_t>() + 2 * args_.expert_num, 0);
  }

  // The sender may overwrite a descriptor once its flag is down, so everything has been read by now.
  void take() const {
    for (std::uint64_t session = 0; session < window_.sessions; ++session) {
      std::int32_t* words = descriptor(session);
      std::fill_n(words + 2, window_.slots_of_descriptor(), static_cast<std::int32_t>(kNoExpert));
      set_flag(words, 0);
    }
    context_.set_polling_index((schedule_.ffn.polling_index + 1) % window_.micro_batches);
  }

  const ContextReader reader_;
  const A& args_;
  const FfnWorkerBatching::Plan& plan_;
  std::byte* const workspace_;
  const ContextRef context_;
  ScheduleContext schedule_{};
  FfnWindow window_{};
  Collected collected_ = Collected::by_scheduler({});
  std::size_t rows_ = 0;
};

}  // namespace

Result<FfnWorkerBatching::Plan> FfnWorkerBatching::plan(const char* /*function*/, const Args& args) {
  Plan plan;
  Scratch scratch;
  plan.slots = scratch.add<RoutedSlot>(args.rows());
  plan.sorted = scratch.add<RoutedSlot>(args.rows());
  plan.workspace_bytes = scratch.bytes();
  plan.tiny = !args.waits() && args.rows() <= kTinyRows && args.rows() * args.row_bytes() <= kTinyBytes;
  plan.gather_rows = kernels::gather_rows_variants().front().run;
  return plan;
}

Result<Patience> FfnWorkerBatching::open(const char* /*function*/, const Args& /*args*/, const Plan& /*plan*/,
                                         runtime::Stream& stream) {
  return Patience(stream);
}

Status FfnWorkerBatching::run(const executor::Run& run, const Args& args, const Plan& plan,
                              const Patience& patience) {
  return Batching(run, args, plan).run(patience);
}

}  // namespace moeyard::ops
