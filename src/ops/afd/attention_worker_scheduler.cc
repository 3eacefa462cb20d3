// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "base/errors.h"
#include "ops/afd/context_rules.h"
#include "ops/afd/result_flags.h"
#include "ops/afd/schedulers.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using A = AttentionWorkerSchedulerArgs;

constexpr Param kParams[] = {
    in_out<&A::schedule_context>("scheduleContextRef", kINT8, "", "context of this attention worker"),
};

constexpr Rule kRules[] = {
    rule<A>(Stage::attributes, kEverywhere, "scheduleContextRef", "have one dimension",
            [](const A& a) { return a.schedule_context.rank == 1; }),
    context_is_whole<A>("scheduleContextRef"),
    context_is_aligned<A>("scheduleContextRef"),
};

}  // namespace

const Contract AttentionWorkerScheduler::kContract{{
    .name = "InplaceAttentionWorkerScheduler",
    .family = "afd",
    .summary = "Waits until all results of an attention worker's next micro-batch are there.",
    .source = "aclnnInplaceAttentionWorkerScheduler",
    .products = kHost | kA2 | kA3 | k950,
    .params = kParams,
    .rules = kRules,
}};

Result<AttentionWorkerScheduler::Plan> AttentionWorkerScheduler::plan(const char* /*function*/,
                                                                      const Args& /*args*/) {
  return Plan{};
}

Result<Patience> AttentionWorkerScheduler::open(const char* /*function*/, const Args& /*args*/,
                                                const Plan& /*plan*/, runtime::Stream& stream) {
  return Patience(stream);
}

Status AttentionWorkerScheduler::run(const executor::Run& run, const Args& args, const Plan& /*plan*/,
                                     const Patience& patience) {
  const ContextReader reader{run.function, run.device, stream_error::kSchedulerSide};
  const ContextRef context(args.schedule_context);
  const ScheduleContext schedule =
      MOEYARD_TRY(reader.load(args.schedule_context, ScheduleUse::attention_scheduler));
  const ScheduleContext::Attention& attention = schedule.attention;
  MOEYARD_TRY(reader.check_memory("attention.token_info_buf", attention.token_info_buf,
                                  attention.token_info_buf_size));

  const AttentionWindow window = attention_window(schedule);
  const std::uint64_t next = (std::uint64_t{attention.micro_batch_id} + 1) % window.micro_batches;
  ResultFlags flags(words_at(attention.token_info_buf + window.flag(next, 0, 0)),
                    static_cast<std::int64_t>(window.flags_of_micro_batch()),
                    static_cast<std::int64_t>(window.slots));
  bool stopped = false;
  MOEYARD_TRY(patience.wait(
      run.function, stream_error::kSchedulerLate,
      [&] { return (stopped = context.stopped()) || flags.all_set(); }, [&] { return flags.missing(next); }));
  if (stopped) return {};
  flags.clear();
  context.set_micro_batch_id(static_cast<std::uint32_t>(next));
  return {};
}

}  // namespace moeyard::ops
