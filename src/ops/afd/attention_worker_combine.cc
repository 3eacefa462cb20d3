// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/afd/attention_worker_combine.h"

#include <algorithm>

#include "base/errors.h"
#include "base/parallel.h"
#include "ops/afd/context_rules.h"
#include "ops/afd/result_flags.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using A = AttentionWorkerCombineArgs;

constexpr std::int64_t kMostSharedExperts = 4;
constexpr std::int64_t kBytesPerTask = 256 * 1024;  // of rows: some 20 us of reading
constexpr std::int64_t kStreamedBytes =
    4 * 1024 * 1024;                            // more than that does not wait in a cache for its reader
constexpr std::int64_t kTinyBytes = 16 * 1024;  // less work than waking the stream's thread

constexpr Param kParams[] = {
    in<&A::schedule_context>(
        "scheduleContext", kINT8, "",
        "context of this attention worker; with needSchedule 1 its micro_batch_id moves on"),
    in<&A::expert_scales>("expertScales", kFP32, "", "weight of each slot; its shape defines BS and K"),
    in<&A::layer_id>("layerId", kINT32, "1 | ()", "current layer"),
    attribute<&A::hidden_size>("hiddenSize", "H"),
    attribute<&A::token_dtype>("tokenDtype", "1 BF16, anything else FP16"),
    attribute<&A::need_schedule>("needSchedule", "1 waits for the results here, anything else does not"),
    out<&A::y>("y", kHalves, "BS, hiddenSize", "weighted sum of each token's results").contiguous_only(),
    out<&A::next_layer_id>("nextLayerId", kINT32, "1 | ()", "layerId + 1"),
};

constexpr Dim kDims[] = {
    dim<A>("BS", "tokens of a micro-batch", [](const A& a) { return a.tokens(); }),
};

constexpr std::int32_t kRange = ACLNN_ERR_INNER_TILING_ERROR;

constexpr Rule kRules[] = {
    rule<A>(Stage::attributes, kEverywhere, "y", "be BF16 when tokenDtype is 1, else FP16",
            [](const A& a) { return a.y.dtype == (a.token_dtype == 1 ? ACL_BF16 : ACL_FLOAT16); }),
    rule<A>(
        Stage::attributes, kEverywhere, "expertScales", "have two dimensions, (BS, K)",
        [](const A& a) { return a.expert_scales.rank == 2; }, {}, kRange),
    rule<A>(
        Stage::attributes, kEverywhere, "expertScales", "have a K of at most 64",
        [](const A& a) { return a.topk() <= 64; }, {}, kRange),
    rule<A>(
        Stage::attributes, kEverywhere, "hiddenSize", "be above 0",
        [](const A& a) { return a.hidden_size > 0; }, {}, kRange),
    rule<A>(Stage::shapes, kEverywhere, "scheduleContext", "have one dimension",
            [](const A& a) { return a.schedule_context.rank == 1; }),
    context_is_whole<A>("scheduleContext"),
    context_is_aligned<A>("scheduleContext"),
};

// One call on the stream's thread.
class Combining {
 public:
  Combining(const executor::Run& run, const A& args, const AttentionWorkerCombine::Plan& plan)
      : reader_{run.function, run.device, stream_error::kWorkerSide},
        args_(args),
        plan_(plan),
        workspace_(run.workspace) {}

  Status run(const Patience& patience) {
    const auto use = args_.waits() ? ScheduleUse::attention_combine_fused : ScheduleUse::attention_combine;
    schedule_ = MOEYARD_TRY(reader_.load(args_.schedule_context, use));
    find_micro_batch();
    MOEYARD_TRY(check_memory());
    if (!args_.waits()) {
      add_up();
      return {};
    }
    ResultFlags flags(words_at(schedule_.attention.token_info_buf + window_.flag(micro_batch_, 0, 0)),
                      static_cast<std::int64_t>(window_.flags_of_micro_batch()),
                      static_cast<std::int64_t>(window_.slots));
    MOEYARD_TRY(patience.wait(
        reader_.function, stream_error::kWorkerLate, [&] { return flags.all_set(); },
        [&] { return flags.missing(micro_batch_); }));
    add_up();
    flags.clear();
    ContextRef(args_.schedule_context).set_micro_batch_id(static_cast<std::uint32_t>(micro_batch_));
    return {};
  }

 private:
  // The window as the weights see it: the context counts the slots only if it has K to K + 4 of them, else there is
  // one shared expert; slots are H * 2 bytes apart whatever ffn_to_attn_token_size says.
  void find_micro_batch() {
    const std::int64_t selected = schedule_.common.selected_expert_num;
    const bool counts = args_.topk() <= selected && selected <= args_.topk() + kMostSharedExperts;
    window_ = {schedule_.common.micro_batch_num, static_cast<std::uint64_t>(args_.tokens()),
               static_cast<std::uint64_t>(counts ? selected : args_.topk() + 1),
               static_cast<std::uint64_t>(args_.hidden_size) * 2};
    micro_batch_ = schedule_.attention.micro_batch_id;
    if (args_.waits()) micro_batch_ = (micro_batch_ + 1) % window_.micro_batches;
  }

  Status check_memory() const {
    AttentionWindow reached = window_;
    reached.micro_batches = micro_batch_ + 1;
    const ScheduleContext::Attention& attention = schedule_.attention;
    if (args_.waits())
      MOEYARD_TRY(
          reader_.check_memory("attention.token_info_buf", attention.token_info_buf, reached.info_bytes()));
    return reader_.check_memory("attention.token_data_buf", attention.token_data_buf, reached.data_bytes());
  }

  void add_up() const {
    const std::int64_t row_bytes = args_.hidden_size * 2;
    const std::int64_t tokens = args_.tokens(), slots = static_cast<std::int64_t>(window_.slots);
    kernels::Term* terms = plan_.terms.in(workspace_);
    std::int32_t* terms_of_token = plan_.terms_of_token.in(workspace_);
    const kernels::WeightedSum sums{terms,
                                    slots,
                                    terms_of_token,
                                    args_.y.dtype,
                                    args_.hidden_size,
                                    args_.y.begin(),
                                    row_bytes,
                                    tokens * row_bytes > kStreamedBytes};
    parallel_for(tokens, kBytesPerTask / std::max<std::int64_t>(row_bytes * slots, 1) + 1, [&](Range range) {
      for (std::int64_t t = range.begin; t < range.end; ++t) {
        terms_of_token[t] = static_cast<std::int32_t>(slots);
        for (std::int64_t k = 0; k < slots; ++k) terms[t * slots + k] = term(t, k);
      }
      plan_.weighted_sum(sums, range);
    });
    *args_.next_layer_id.begin_as<std::uint32_t>() = *args_.layer_id.begin_as<std::uint32_t>() + 1;
  }

  kernels::Term term(std::int64_t t, std::int64_t k) const {
    const std::uint64_t offset =
        window_.slot(micro_batch_, static_cast<std::uint64_t>(t), static_cast<std::uint64_t>(k));
    const float weight =
        k < args_.topk() ? args_.expert_scales.at<float>(t, k) : 1.0f;  // shared experts: as they are
    return {reinterpret_cast<const std::byte*>(schedule_.attention.token_data_buf + offset), nullptr, weight,
            0, 0};
  }

  const ContextReader reader_;
  const A& args_;
  const AttentionWorkerCombine::Plan& plan_;
  std::byte* const workspace_;
  ScheduleContext schedule_{};
  AttentionWindow window_{};
  std::uint64_t micro_batch_ = 0;
};

}  // namespace

const Contract AttentionWorkerCombine::kContract{{
    .name = "AttentionWorkerCombine",
    .family = "afd",
    .summary =
        "Adds up the results that FFN workers returned for a micro-batch, with the weights of its slots.",
    .source = "aclnnAttentionWorkerCombine",
    .products = kHost | kA2 | kA3 | k950,
    .params = kParams,
    .dims = kDims,
    .rules = kRules,
}};

Result<AttentionWorkerCombine::Plan> AttentionWorkerCombine::plan(const char* /*function*/,
                                                                  const Args& args) {
  Plan plan;
  Scratch scratch;
  plan.terms = scratch.add<kernels::Term>(args.tokens() * (args.topk() + kMostSharedExperts));
  plan.terms_of_token = scratch.add<std::int32_t>(args.tokens());
  plan.workspace_bytes = scratch.bytes();
  plan.weighted_sum = kernels::weighted_sum_variants().front().run;
  plan.tiny = !args.waits() && args.tokens() * args.hidden_size * args.topk() * 2 <= kTinyBytes;
  return plan;
}

Result<Patience> AttentionWorkerCombine::open(const char* /*function*/, const Args& /*args*/,
                                              const Plan& /*plan*/, runtime::Stream& stream) {
  return Patience(stream);
}

Status AttentionWorkerCombine::run(const executor::Run& run, const Args& args, const Plan& plan,
                                   const Patience& patience) {
  return Combining(run, args, plan).run(patience);
}

}  // namespace moeyard::ops
