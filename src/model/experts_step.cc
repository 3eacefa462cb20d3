// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/experts_step.h"

namespace moeyard::model {

Result<ExpertsStep> ExpertsStep::make(const Job& job, int rank, const std::function<void()>& loaded) {
  const LayerConfig& config = job.layer.config;
  const std::int64_t local = job.local_instances();
  ExpertsStep step;
  step.mlps_ = MOEYARD_TRY(MlpBlock::make(job, local, config.intermediate, job.capacity()));
  step.out_ = MOEYARD_TRY(DeviceTensor::make(job.dtype(), {job.capacity(), config.hidden}));
  for (std::int64_t l = 0; l < local; ++l) {
    const std::int32_t expert = job.placement.expert_of_instance[rank * local + l];
    MOEYARD_TRY(step.mlps_.load(job, job.layer.experts[expert], l));
    loaded();
  }
  if (job.layer.shared) MOEYARD_TRY(step.make_shared(job, rank));
  return step;
}

Status ExpertsStep::make_shared(const Job& job, int rank) {
  const LayerConfig& config = job.layer.config;
  const std::int64_t tokens = job.tokens_of(rank);
  Shared shared;
  shared.mlp = MOEYARD_TRY(MlpBlock::make(job, 1, config.shared_intermediate, tokens));
  MOEYARD_TRY(shared.mlp.load(job, *job.layer.shared, 0));
  shared.rows = MOEYARD_TRY(DeviceTensor::make(ACL_INT64, {1}, std::as_bytes(std::span(&tokens, 1))));
  shared.out = MOEYARD_TRY(DeviceTensor::make(job.dtype(), {tokens, config.hidden}));
  if (job.layer.shared_gate) {
    shared.gate = MOEYARD_TRY(SharedGate::make(job, tokens));
    shared.wide_tokens = MOEYARD_TRY(
        DeviceTensor::make(ACL_FLOAT, {tokens, config.hidden}, std::as_bytes(job.values_of(rank))));
  }
  shared_ = std::move(shared);
  return {};
}

Status ExpertsStep::queue(const Job& job, Rank& rank, const DispatchStep& dispatch, std::int64_t rows) {
  MOEYARD_TRY(rank.begin(Phase::experts));
  if (rows > 0)
    MOEYARD_TRY(mlps_.queue(rank, MOEYARD_TRY(dispatch.rows().first_rows(rows)), dispatch.rows_of_expert(),
                            rows, MOEYARD_TRY(out_.first_rows(rows))));
  if (shared_ && job.tokens_of(rank.number()) > 0) MOEYARD_TRY(queue_shared(job, rank, dispatch));
  return rank.end(Phase::experts);
}

Status ExpertsStep::queue_shared(const Job& job, Rank& rank, const DispatchStep& dispatch) {
  const std::int64_t tokens = job.tokens_of(rank.number());
  MOEYARD_TRY(shared_->mlp.queue(rank, MOEYARD_TRY(dispatch.tokens().all()), shared_->rows, tokens,
                                 MOEYARD_TRY(shared_->out.all())));
  if (!shared_->gate) return {};
  return shared_->gate->queue(rank, MOEYARD_TRY(shared_->wide_tokens.all()), shared_->rows, tokens,
                              MOEYARD_TRY(shared_->out.all()));
}

}  // namespace moeyard::model
