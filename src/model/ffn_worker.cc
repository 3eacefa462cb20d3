// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/ffn_worker.h"

#include <numeric>

#include "aclnnop/aclnn_cast.h"
#include "aclnnop/aclnn_ffn_to_attention.h"
#include "aclnnop/aclnn_ffn_worker_batching.h"
#include "aclnnop/aclnn_ffn_worker_scheduler.h"
#include "model/errors.h"

namespace moeyard::model {

Result<FfnWorker> FfnWorker::make(const Job& job, Rank& rank, const std::function<void()>& loaded) {
  FfnWorker worker(job, MOEYARD_TRY(WorkerContext::make(job, rank)));
  MOEYARD_TRY(worker.make_experts(job, rank.number(), loaded));
  if (job.layer.shared) MOEYARD_TRY(worker.make_shared(job));
  MOEYARD_TRY(worker.make_rows(job));
  return worker;
}

Status FfnWorker::make_experts(const Job& job, int rank, const std::function<void()>& loaded) {
  const std::int64_t local = job.local_instances(), first = (rank - job.first_expert_rank()) * local;
  mlps_ = MOEYARD_TRY(MlpBlock::make(job, local, job.layer.config.intermediate, capacity()));
  for (std::int64_t l = 0; l < local; ++l) {
    MOEYARD_TRY(mlps_.load(job, job.layer.experts[job.placement.expert_of_instance[first + l]], l));
    loaded();
  }
  return {};
}

Status FfnWorker::make_shared(const Job& job) {
  Shared shared;
  shared.mlp = MOEYARD_TRY(MlpBlock::make(job, 1, job.layer.config.shared_intermediate, capacity()));
  MOEYARD_TRY(shared.mlp.load(job, *job.layer.shared, 0));
  if (job.layer.shared_gate) {
    shared.gate = MOEYARD_TRY(SharedGate::make(job, capacity()));
    shared.wide_rows = MOEYARD_TRY(DeviceTensor::make(ACL_FLOAT, {capacity(), shape_.hidden}));
  }
  shared_ = std::move(shared);
  return {};
}

Status FfnWorker::make_rows(const Job& job) {
  token_dtype_ = job.type == StoredType::bf16 ? 1 : 0;
  taken_.resize(shape_.sessions * shape_.local_experts);
  rows_ = MOEYARD_TRY(DeviceTensor::make(job.dtype(), {capacity(), shape_.hidden}));
  results_ = MOEYARD_TRY(DeviceTensor::make(job.dtype(), {capacity(), shape_.hidden}));
  groups_ = MOEYARD_TRY(DeviceTensor::make(ACL_INT64, {shape_.local_experts, 2}));
  for (DeviceTensor* labels : {&sessions_, &micro_batches_, &tokens_, &offsets_})
    *labels = MOEYARD_TRY(DeviceTensor::make(ACL_INT32, {capacity()}));
  count_ = MOEYARD_TRY(DeviceTensor::make(ACL_INT64, {1}));
  rows_of_instance_ = MOEYARD_TRY(DeviceTensor::make(ACL_INT64, {instances()}));
  rows_of_shared_ = MOEYARD_TRY(DeviceTensor::make(ACL_INT64, {1}));
  return {};
}

Status FfnWorker::pass(Rank& rank, PhaseTimes& times) {
  while (MOEYARD_TRY(take(rank, times))) {
    const auto rows_of_expert = MOEYARD_TRY(count_rows());
    MOEYARD_TRY(run_experts(rank, rows_of_expert));
    MOEYARD_TRY(send_back(rank));
    MOEYARD_TRY(rank.synchronize());
    MOEYARD_TRY(rank.add_times(times));
  }
  return {};
}

// Waits for micro-batches and sorts their rows by expert; false once the worker is stopped.
Result<bool> FfnWorker::take(Rank& rank, PhaseTimes& times) {
  constexpr std::int32_t kOneSession = 1, kOnce = 0;
  MOEYARD_TRY(rank.call("aclnnInplaceFfnWorkerScheduler", aclnnInplaceFfnWorkerSchedulerGetWorkspaceSize,
                        aclnnInplaceFfnWorkerScheduler, context_.get(), kOneSession, kOnce));
  MOEYARD_TRY(batch(rank));
  MOEYARD_TRY(rank.synchronize());
  const ScheduleContext context = MOEYARD_TRY(context_.read());
  if (context.ffn.out_num == 0) return false;
  MOEYARD_TRY(rank.add_times(times));
  return true;
}

Status FfnWorker::batch(Rank& rank) {
  constexpr std::int64_t kTaken = 0, kOneLayer = 1;
  const IntArray most = int_array({shape_.sessions, shape_.tokens, shape_.slots, shape_.hidden});
  MOEYARD_TRY(rank.begin(Phase::batch));
  MOEYARD_TRY(rank.call("aclnnFfnWorkerBatching", aclnnFfnWorkerBatchingGetWorkspaceSize,
                        aclnnFfnWorkerBatching, context_.get(), shape_.local_experts, most.get(),
                        token_dtype_, kTaken, kOneLayer, rows_.get(), groups_.get(), sessions_.get(),
                        micro_batches_.get(), tokens_.get(), offsets_.get(), /*dynamicScale*/ nullptr,
                        count_.get()));
  return rank.end(Phase::batch);
}

// How many of the rows each local expert got.
Result<std::vector<std::int64_t>> FfnWorker::count_rows() {
  std::vector<std::int64_t> groups(2 * shape_.local_experts), rows_of_expert(shape_.local_experts);
  MOEYARD_TRY(groups_.download(std::as_writable_bytes(std::span(groups))));
  std::vector<std::int32_t> sessions(capacity());
  MOEYARD_TRY(sessions_.download(std::as_writable_bytes(std::span(sessions))));
  std::int64_t row = 0;
  for (std::size_t g = 0; g < groups.size(); g += 2) {
    const std::int64_t local = groups[g], end = row + groups[g + 1];
    if (row == end) continue;
    rows_of_expert[local] = end - row;
    ++(shared_ && local == instances() ? shared_reads_ : instance_reads_);
    for (; row < end; ++row) ++taken_[sessions[row] * shape_.local_experts + local];
  }
  return rows_of_expert;
}

Status FfnWorker::run_experts(Rank& rank, const std::vector<std::int64_t>& rows_of_expert) {
  const auto of_instances = std::span(rows_of_expert).first(instances());
  const std::int64_t rows = std::accumulate(of_instances.begin(), of_instances.end(), std::int64_t{0});
  MOEYARD_TRY(rows_of_instance_.upload(std::as_bytes(of_instances), 0));
  MOEYARD_TRY(rank.begin(Phase::experts));
  if (rows > 0)
    MOEYARD_TRY(mlps_.queue(rank, MOEYARD_TRY(rows_.first_rows(rows)), rows_of_instance_, rows,
                            MOEYARD_TRY(results_.first_rows(rows))));
  if (shared_ && rows_of_expert.back() > 0) MOEYARD_TRY(run_shared(rank, rows, rows_of_expert.back()));
  return rank.end(Phase::experts);
}

// The shared expert's rows stand behind those of the instances.
Status FfnWorker::run_shared(Rank& rank, std::int64_t first, std::int64_t rows) {
  MOEYARD_TRY(rows_of_shared_.upload(std::as_bytes(std::span(&rows, 1)), 0));
  MOEYARD_TRY(shared_->mlp.queue(rank, MOEYARD_TRY(rows_.rows(first, rows)), rows_of_shared_, rows,
                                 MOEYARD_TRY(results_.rows(first, rows))));
  if (!shared_->gate) return {};
  MOEYARD_TRY(rank.call("aclnnCast", aclnnCastGetWorkspaceSize, aclnnCast,
                        rank.keep(MOEYARD_TRY(rows_.rows(first, rows))), ACL_FLOAT,
                        rank.keep(MOEYARD_TRY(shared_->wide_rows.first_rows(rows)))));
  return shared_->gate->queue(rank, MOEYARD_TRY(shared_->wide_rows.first_rows(rows)), rows_of_shared_, rows,
                              MOEYARD_TRY(results_.rows(first, rows)));
}

Status FfnWorker::send_back(Rank& rank) {
  const IntArray info = shape_.attention_info(), data = shape_.attention_data();
  MOEYARD_TRY(rank.begin(Phase::send_back));
  MOEYARD_TRY(rank.call("aclnnFFNToAttention", aclnnFFNToAttentionGetWorkspaceSize, aclnnFFNToAttention,
                        results_.get(), sessions_.get(), micro_batches_.get(), tokens_.get(), offsets_.get(),
                        count_.get(), /*attnRankTable*/ nullptr, rank.group(),
                        static_cast<std::int64_t>(rank.ranks()), info.get(), data.get()));
  return rank.end(Phase::send_back);
}

}  // namespace moeyard::model
