// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/errors.h"
#include "ops/afd/context_rules.h"
#include "ops/afd/schedulers.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using A = FfnWorkerSchedulerArgs;

constexpr Param kParams[] = {
    in_out<&A::schedule_context>("scheduleContextRef", kINT8, "", "context of this FFN worker"),
    attribute<&A::sync_group_size>("syncGroupSize", "sessions that must be ready together, a divisor of all"),
    attribute<&A::execute_mode>("executeMode", "0: one pass"),
};

constexpr Rule kRules[] = {
    rule<A>(Stage::attributes, kEverywhere, "scheduleContextRef", "have one dimension",
            [](const A& a) { return a.schedule_context.rank == 1; }),
    rule<A>(Stage::attributes, kEverywhere, "executeMode", "be 0",
            [](const A& a) { return a.execute_mode == 0; }),
    context_is_whole<A>("scheduleContextRef"),
    context_is_aligned<A>("scheduleContextRef"),
};

// What descriptors are filled with once they are taken: every byte 0x7F.
constexpr std::int32_t kTaken = 0x7F7F7F7F;

// One pass: waits for a group of sessions and moves what they sent into the collected buffers.
class Scheduling {
 public:
  Scheduling(const executor::Run& run, const A& args)
      : reader_{run.function, run.device, stream_error::kSchedulerSide},
        args_(args),
        context_(args.schedule_context) {}

  Status run(const Patience& patience) {
    schedule_ = MOEYARD_TRY(reader_.load(args_.schedule_context, ScheduleUse::ffn_scheduler));
    window_ = ffn_window(schedule_);
    MOEYARD_TRY(check_group_size());
    MOEYARD_TRY(check_memory());
    context_.set_out_num(0);
    const bool all_together = static_cast<std::uint64_t>(args_.sync_group_size) == window_.sessions;
    MOEYARD_TRY(all_together ? take_all(patience) : take_groups(patience));
    context_.set_out_num(static_cast<std::uint32_t>(taken_));
    return {};
  }

 private:
  Status check_group_size() const {
    const auto sessions = static_cast<std::int64_t>(window_.sessions);
    const std::int64_t size = args_.sync_group_size;
    if (1 <= size && size <= sessions && sessions % size == 0) return {};
    return fail(reader_.code, TextCode::operator_parameter,
                "{}: syncGroupSize is {} but must be a divisor of common.session_num, {}", reader_.function,
                size, sessions);
  }

  Status check_memory() const {
    const ScheduleContext::Ffn& ffn = schedule_.ffn;
    MOEYARD_TRY(reader_.check_memory("ffn.token_info_buf", ffn.token_info_buf, ffn.token_info_buf_size));
    MOEYARD_TRY(reader_.check_memory("ffn.layer_ids_buf", ffn.layer_ids_buf, ffn.layer_ids_buf_size));
    MOEYARD_TRY(reader_.check_memory("ffn.session_ids_buf", ffn.session_ids_buf, ffn.session_ids_buf_size));
    MOEYARD_TRY(reader_.check_memory("ffn.micro_batch_ids_buf", ffn.micro_batch_ids_buf,
                                     ffn.micro_batch_ids_buf_size));
    return reader_.check_memory("ffn.expert_ids_buf", ffn.expert_ids_buf, ffn.expert_ids_buf_size);
  }

  std::int32_t* descriptor(std::uint64_t session, std::uint64_t micro_batch) const {
    return words_at(schedule_.ffn.token_info_buf + window_.descriptor(session, micro_batch));
  }

  // All sessions, micro-batch after micro-batch.
  Status take_all(const Patience& patience) {
    const std::uint64_t polled = schedule_.ffn.polling_index;
    std::uint64_t ready = 0;  // all sessions before this one
    MOEYARD_TRY(patience.wait(
        reader_.function, stream_error::kSchedulerLate,
        [&] {
          if (stopped()) return true;
          while (ready < window_.sessions && is_set(descriptor(ready, polled))) ++ready;
          return ready == window_.sessions;
        },
        [&] {
          return fmt::format("session {} of {} to send micro-batch {}", ready, window_.sessions, polled);
        }));
    if (stopped_) return {};
    for (std::uint64_t session = 0; session < window_.sessions; ++session) take(session, polled);
    context_.set_polling_index((polled + 1) % window_.micro_batches);
    return {};
  }

  // Of every group that has a complete micro-batch the lowest one; waits until some group has.
  Status take_groups(const Patience& patience) {
    return patience.wait(
        reader_.function, stream_error::kSchedulerLate,
        [&] {
          if (stopped()) return true;
          for (std::uint64_t first = 0; first < window_.sessions; first += group_size()) take_lowest(first);
          return taken_ > 0;
        },
        [&] {
          return fmt::format("a micro-batch of any group of {} among {} sessions", group_size(),
                             window_.sessions);
        });
  }

  void take_lowest(std::uint64_t first) {
    for (std::uint64_t m = 0; m < window_.micro_batches; ++m) {
      std::uint64_t session = first;
      while (session < first + group_size() && is_set(descriptor(session, m))) ++session;
      if (session < first + group_size()) continue;
      for (session = first; session < first + group_size(); ++session) take(session, m);
      return;
    }
  }

  // The sender may overwrite a descriptor once its flag is down.
  void take(std::uint64_t session, std::uint64_t micro_batch) {
    const ScheduleContext::Ffn& ffn = schedule_.ffn;
    const auto slots = static_cast<std::size_t>(window_.slots_of_descriptor());
    std::int32_t* words = descriptor(session, micro_batch);
    words_at(ffn.layer_ids_buf)[taken_] = words[1];
    words_at(ffn.session_ids_buf)[taken_] = static_cast<std::int32_t>(session);
    words_at(ffn.micro_batch_ids_buf)[taken_] = static_cast<std::int32_t>(micro_batch);
    std::copy_n(words + 2, slots, words_at(ffn.expert_ids_buf) + taken_ * slots);
    std::fill_n(words + 2, slots, kTaken);
    set_flag(words, 0);
    ++taken_;
  }

  std::uint64_t group_size() const { return static_cast<std::uint64_t>(args_.sync_group_size); }
  bool stopped() { return stopped_ = context_.stopped(); }

  const ContextReader reader_;
  const A& args_;
  const ContextRef context_;
  ScheduleContext schedule_{};
  FfnWindow window_{};
  std::size_t taken_ = 0;
  bool stopped_ = false;
};

}  // namespace

const Contract FfnWorkerScheduler::kContract{{
    .name = "InplaceFfnWorkerScheduler",
    .family = "afd",
    .summary = "Waits until attention workers have sent micro-batches and collects what they say of them.",
    .source = "aclnnInplaceFfnWorkerScheduler",
    .products = kHost | kA2 | kA3 | k950,
    .params = kParams,
    .rules = kRules,
}};

Result<FfnWorkerScheduler::Plan> FfnWorkerScheduler::plan(const char* /*function*/, const Args& /*args*/) {
  return Plan{};
}

Result<Patience> FfnWorkerScheduler::open(const char* /*function*/, const Args& /*args*/,
                                          const Plan& /*plan*/, runtime::Stream& stream) {
  return Patience(stream);
}

Status FfnWorkerScheduler::run(const executor::Run& run, const Args& args, const Plan& /*plan*/,
                               const Patience& patience) {
  return Scheduling(run, args).run(patience);
}

}  // namespace moeyard::ops
