// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/attention_worker.h"

#include "aclnnop/aclnn_attention_to_ffn.h"
#include "aclnnop/aclnn_attention_worker_combine.h"
#include "aclnnop/aclnn_attention_worker_scheduler.h"
#include "model/errors.h"

namespace moeyard::model {
namespace {

// Where the experts are: a row [copies, rank, local expert, rank, local expert ...] for each, the shared expert's last.
// Every FFN worker has the shared expert, behind its instances.
std::vector<std::int32_t> expert_table(const Job& job, std::int64_t& columns) {
  const std::int64_t experts = job.layer.config.experts, local = job.local_instances();
  std::vector<std::vector<std::int32_t>> places(experts + (job.layer.shared ? 1 : 0));
  const auto add = [&](std::int64_t expert, std::int64_t worker, std::int64_t number) {
    places[expert].push_back(static_cast<std::int32_t>(job.first_expert_rank() + worker));
    places[expert].push_back(static_cast<std::int32_t>(number));
  };
  for (std::int64_t p = 0; p < job.placement.instances(); ++p)
    add(job.placement.expert_of_instance[p], p / local, p % local);
  for (int f = 0; job.layer.shared && f < job.expert_ranks(); ++f) add(experts, f, local);
  std::size_t widest = 0;
  for (const auto& row : places) widest = std::max(widest, row.size());
  columns = static_cast<std::int64_t>(widest) + 1;
  std::vector<std::int32_t> table;
  for (auto& row : places) {
    table.push_back(static_cast<std::int32_t>(row.size() / 2));
    row.resize(widest);
    table.insert(table.end(), row.begin(), row.end());
  }
  return table;
}

Result<DeviceTensor> zeros(aclDataType type, std::vector<std::int64_t> shape) {
  DeviceTensor tensor = MOEYARD_TRY(DeviceTensor::make(type, std::move(shape)));
  MOEYARD_TRY(tensor.upload(std::vector<std::byte>(static_cast<std::size_t>(tensor.bytes())), 0));
  return tensor;
}

Result<DeviceTensor> int_tensor(const std::vector<std::int32_t>& values) {
  return DeviceTensor::make(ACL_INT32, {static_cast<std::int64_t>(values.size())},
                            std::as_bytes(std::span(values)));
}

}  // namespace

Result<AttentionWorker> AttentionWorker::make(const Job& job, Rank& rank) {
  AttentionWorker worker(job, MOEYARD_TRY(WorkerContext::make(job, rank)),
                         MOEYARD_TRY(GateStep::make(job, rank.number())));
  MOEYARD_TRY(worker.make_tensors(job, rank.number()));
  return worker;
}

Status AttentionWorker::make_tensors(const Job& job, int rank) {
  const WorkerShape& s = shape_;
  const std::int64_t tokens = job.tokens_of(rank), topk = job.layer.config.topk;
  batches_ = (tokens + s.tokens - 1) / s.tokens;
  token_dtype_ = job.type == StoredType::bf16 ? 1 : 0;
  tokens_ = MOEYARD_TRY(zeros(job.dtype(), {batches_, s.tokens, s.hidden}));
  const auto rounded = MOEYARD_TRY(job.rounded_tokens(rank));
  MOEYARD_TRY(tokens_.upload(std::as_bytes(std::span(rounded)), 0));
  experts_ = MOEYARD_TRY(zeros(ACL_INT32, {batches_, s.tokens, topk}));
  weights_ = MOEYARD_TRY(zeros(ACL_FLOAT, {batches_ * s.tokens, topk}));
  out_ = MOEYARD_TRY(DeviceTensor::make(job.dtype(), {batches_ * s.tokens, s.hidden}));
  if (const std::int64_t in_last = tokens % s.tokens; in_last != 0) {
    std::vector<std::uint8_t> mask(s.tokens, 0);
    std::fill_n(mask.begin(), in_last, std::uint8_t{1});
    last_mask_ = MOEYARD_TRY(DeviceTensor::make(ACL_BOOL, {1, s.tokens}, std::as_bytes(std::span(mask))));
  }
  session_ = MOEYARD_TRY(int_tensor({rank}));
  std::vector<std::int32_t> numbers;
  for (std::int32_t m = 0; m < s.micro_batches; ++m) numbers.push_back(m);
  micro_batches_ = MOEYARD_TRY(int_tensor(numbers));
  layer_ = MOEYARD_TRY(int_tensor({0}));
  next_layer_ = MOEYARD_TRY(int_tensor({0}));
  std::int64_t columns = 0;
  const auto table = expert_table(job, columns);
  expert_table_ = MOEYARD_TRY(
      DeviceTensor::make(ACL_INT32, {1, static_cast<std::int64_t>(table.size()) / columns, columns},
                         std::as_bytes(std::span(table))));
  return {};
}

Status AttentionWorker::pass(const Job& job, Rank& rank, PhaseTimes& times) {
  MOEYARD_TRY(gate_.queue(job, rank));
  if (batches_ > 0) {
    MOEYARD_TRY(rank.copy(gate_.experts(), experts_));
    MOEYARD_TRY(rank.copy(gate_.weights(), weights_));
  }
  const std::int64_t under_way = shape_.micro_batches;
  for (std::int64_t batch = 0; batch < batches_ + under_way; ++batch) {
    if (batch >= under_way && batch - under_way < batches_)
      MOEYARD_TRY(collect(rank, batch - under_way, times));
    if (batch < batches_) {
      MOEYARD_TRY(send(job, rank, batch));
      MOEYARD_TRY(rank.synchronize());
      MOEYARD_TRY(rank.add_times(times));
    }
  }
  return {};
}

Status AttentionWorker::send(const Job& job, Rank& rank, std::int64_t batch) {
  constexpr std::int64_t kNotQuantised = 0, kAsync = 0;
  const IntArray ffn_info = shape_.ffn_info(), ffn_data = shape_.ffn_data(),
                 attention_info = shape_.attention_info();
  const bool masked = last_mask_ && batch == batches_ - 1;
  MOEYARD_TRY(rank.begin(Phase::dispatch));
  MOEYARD_TRY(rank.call("aclnnAttentionToFFN", aclnnAttentionToFFNGetWorkspaceSize, aclnnAttentionToFFN,
                        rank.keep(MOEYARD_TRY(tokens_.rows(batch, 1))), session_.get(),
                        rank.keep(MOEYARD_TRY(micro_batches_.rows(micro_batch(batch), 1))), layer_.get(),
                        rank.keep(MOEYARD_TRY(experts_.rows(batch, 1))), expert_table_.get(),
                        /*scales*/ nullptr, masked ? last_mask_->get() : nullptr, rank.group(),
                        static_cast<std::int64_t>(rank.ranks()), ffn_info.get(), ffn_data.get(),
                        attention_info.get(), shape_.experts, kNotQuantised, kAsync,
                        static_cast<std::int64_t>(job.first_expert_rank())));
  return rank.end(Phase::dispatch);
}

Status AttentionWorker::collect(Rank& rank, std::int64_t batch, PhaseTimes& times) {
  constexpr std::int64_t kCollected = 0;
  MOEYARD_TRY(rank.call("aclnnInplaceAttentionWorkerScheduler",
                        aclnnInplaceAttentionWorkerSchedulerGetWorkspaceSize,
                        aclnnInplaceAttentionWorkerScheduler, context_.get()));
  MOEYARD_TRY(rank.begin(Phase::combine));
  MOEYARD_TRY(rank.call(
      "aclnnAttentionWorkerCombine", aclnnAttentionWorkerCombineGetWorkspaceSize, aclnnAttentionWorkerCombine,
      context_.get(), rank.keep(MOEYARD_TRY(weights_.rows(batch * shape_.tokens, shape_.tokens))),
      layer_.get(), shape_.hidden, token_dtype_, kCollected,
      rank.keep(MOEYARD_TRY(out_.rows(batch * shape_.tokens, shape_.tokens))), next_layer_.get()));
  MOEYARD_TRY(rank.end(Phase::combine));
  MOEYARD_TRY(rank.synchronize());
  MOEYARD_TRY(rank.add_times(times));
  const ScheduleContext context = MOEYARD_TRY(context_.read());
  if (context.attention.micro_batch_id != micro_batch(batch))
    return run_failed("stopped before all results of micro-batch {} were there", batch);
  return {};
}

}  // namespace moeyard::model
