// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/experts_step.h"

#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_sigmoid.h"
#include "aclnnop/aclnn_swi_glu.h"
#include "model/errors.h"
#include "model/grouped_matmul.h"

namespace moeyard::model {
namespace {

// Rounds a matrix to the type of the block and puts it at element `first` of it.
Status load(const Job& job, const Matrix& matrix, const DeviceTensor& block, std::int64_t first) {
  std::vector<std::uint16_t> rounded(matrix.elements());
  narrow(matrix.widened(), job.type, rounded.data());
  const auto bytes = std::as_bytes(std::span(rounded));
  if (find_not_finite(job.type, bytes.data(), matrix.elements()) >= 0)
    return bad_input("tensor {} has values beyond the range of {}: use --dtype bf16.", in_quotes(matrix.name),
                     info_of(job.type).name);
  return block.upload(bytes, first * 2);
}

// Block and buffers of `count` MLPs for up to `rows` rows.
Result<MlpBlock> make_block(const Job& job, std::int64_t count, std::int64_t size, std::int64_t rows) {
  const std::int64_t hidden = job.layer.config.hidden;
  MlpBlock block;
  block.gate_up = MOEYARD_TRY(DeviceTensor::make(job.dtype(), {count, 2 * size, hidden}));
  block.down = MOEYARD_TRY(DeviceTensor::make(job.dtype(), {count, hidden, size}));
  block.both = MOEYARD_TRY(DeviceTensor::make(job.dtype(), {rows, 2 * size}));
  block.inner = MOEYARD_TRY(DeviceTensor::make(job.dtype(), {rows, size}));
  block.out = MOEYARD_TRY(DeviceTensor::make(job.dtype(), {rows, hidden}));
  return block;
}

Status load_mlp(const Job& job, const Mlp& mlp, const MlpBlock& block, std::int64_t index) {
  const std::int64_t matrix = mlp.gate.elements();
  MOEYARD_TRY(load(job, mlp.gate, block.gate_up, 2 * index * matrix));
  MOEYARD_TRY(load(job, mlp.up, block.gate_up, (2 * index + 1) * matrix));
  return load(job, mlp.down, block.down, index * matrix);
}

// out = down(SwiGLU(gate_up(x))) for the first `rows` rows of x, by groups.
Status queue_mlp(Rank& rank, const DeviceTensor& x, const MlpBlock& block, const DeviceTensor& rows_of_group,
                 std::int64_t rows) {
  constexpr std::int64_t kLastDimension = -1;
  MOEYARD_TRY(multiply_groups(rank, MOEYARD_TRY(x.first_rows(rows)), block.gate_up, rows_of_group,
                              MOEYARD_TRY(block.both.first_rows(rows))));
  aclTensor* both = rank.keep(MOEYARD_TRY(block.both.first_rows(rows)));
  aclTensor* inner = rank.keep(MOEYARD_TRY(block.inner.first_rows(rows)));
  MOEYARD_TRY(
      rank.call("aclnnSwiGlu", aclnnSwiGluGetWorkspaceSize, aclnnSwiGlu, both, kLastDimension, inner));
  return multiply_groups(rank, MOEYARD_TRY(block.inner.first_rows(rows)), block.down, rows_of_group,
                         MOEYARD_TRY(block.out.first_rows(rows)));
}

}  // namespace

Result<ExpertsStep> ExpertsStep::make(const Job& job, int rank, const std::function<void()>& loaded) {
  const std::int64_t local = job.local_instances();
  ExpertsStep step;
  step.experts_ = MOEYARD_TRY(make_block(job, local, job.layer.config.intermediate, job.capacity()));
  for (std::int64_t l = 0; l < local; ++l) {
    const std::int32_t expert = job.placement.expert_of_instance[rank * local + l];
    MOEYARD_TRY(load_mlp(job, job.layer.experts[expert], step.experts_, l));
    loaded();
  }
  if (job.layer.shared) MOEYARD_TRY(step.make_shared(job, rank));
  return step;
}

Status ExpertsStep::make_shared(const Job& job, int rank) {
  const std::int64_t tokens = job.tokens_of(rank), hidden = job.layer.config.hidden;
  shared_ = MOEYARD_TRY(make_block(job, 1, job.layer.config.shared_intermediate, tokens));
  MOEYARD_TRY(load_mlp(job, *job.layer.shared, *shared_, 0));
  shared_rows_ = MOEYARD_TRY(DeviceTensor::make(ACL_INT64, {1}, std::as_bytes(std::span(&tokens, 1))));
  if (!job.layer.shared_gate) return {};
  const auto values = job.values_of(rank);
  const std::vector<float> weight = job.layer.shared_gate->widened();
  SharedGate gate;
  gate.weight = MOEYARD_TRY(DeviceTensor::make(ACL_FLOAT, {1, 1, hidden}, std::as_bytes(std::span(weight))));
  gate.tokens = MOEYARD_TRY(DeviceTensor::make(ACL_FLOAT, {tokens, hidden}, std::as_bytes(values)));
  gate.logits = MOEYARD_TRY(DeviceTensor::make(ACL_FLOAT, {tokens, 1}));
  gate.factor = MOEYARD_TRY(DeviceTensor::make(ACL_FLOAT, {tokens, 1}));
  shared_gate_ = std::move(gate);
  return {};
}

Status ExpertsStep::queue(const Job& job, Rank& rank, const DispatchStep& dispatch, std::int64_t rows) {
  MOEYARD_TRY(rank.begin(Phase::experts));
  if (rows > 0) MOEYARD_TRY(queue_mlp(rank, dispatch.rows(), experts_, dispatch.rows_of_expert(), rows));
  if (shared_ && job.tokens_of(rank.number()) > 0) MOEYARD_TRY(queue_shared(job, rank, dispatch));
  return rank.end(Phase::experts);
}

Status ExpertsStep::queue_shared(const Job& job, Rank& rank, const DispatchStep& dispatch) {
  const std::int64_t tokens = job.tokens_of(rank.number());
  MOEYARD_TRY(queue_mlp(rank, dispatch.tokens(), *shared_, shared_rows_, tokens));
  if (!shared_gate_) return {};
  const SharedGate& gate = *shared_gate_;
  MOEYARD_TRY(multiply_groups(rank, MOEYARD_TRY(gate.tokens.all()), gate.weight, shared_rows_,
                              MOEYARD_TRY(gate.logits.all())));
  MOEYARD_TRY(rank.call("aclnnSigmoid", aclnnSigmoidGetWorkspaceSize, aclnnSigmoid, gate.logits.get(),
                        gate.factor.get()));
  return rank.call("aclnnMul", aclnnMulGetWorkspaceSize, aclnnMul, shared_->out.get(), gate.factor.get(),
                   shared_->out.get());
}

}  // namespace moeyard::model
