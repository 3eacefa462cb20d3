// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/mlp.h"

#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_sigmoid.h"
#include "aclnnop/aclnn_swi_glu.h"
#include "model/errors.h"
#include "model/grouped_matmul.h"

namespace moeyard::model {
namespace {

// Rounds a matrix to the type of the block and puts it at element `first` of it.
Status load_matrix(const Job& job, const Matrix& matrix, const DeviceTensor& block, std::int64_t first) {
  std::vector<std::uint16_t> rounded(matrix.elements());
  narrow(matrix.widened(), job.type, rounded.data());
  const auto bytes = std::as_bytes(std::span(rounded));
  if (find_not_finite(job.type, bytes.data(), matrix.elements()) >= 0)
    return bad_input("tensor {} has values beyond the range of {}: use --dtype bf16.", in_quotes(matrix.name),
                     info_of(job.type).name);
  return block.upload(bytes, first * 2);
}

}  // namespace

Result<MlpBlock> MlpBlock::make(const Job& job, std::int64_t count, std::int64_t size, std::int64_t rows) {
  const std::int64_t hidden = job.layer.config.hidden;
  MlpBlock block;
  block.gate_up_ = MOEYARD_TRY(DeviceTensor::make(job.dtype(), {count, 2 * size, hidden}));
  block.down_ = MOEYARD_TRY(DeviceTensor::make(job.dtype(), {count, hidden, size}));
  block.both_ = MOEYARD_TRY(DeviceTensor::make(job.dtype(), {rows, 2 * size}));
  block.inner_ = MOEYARD_TRY(DeviceTensor::make(job.dtype(), {rows, size}));
  return block;
}

Status MlpBlock::load(const Job& job, const Mlp& mlp, std::int64_t index) {
  const std::int64_t matrix = mlp.gate.elements();
  MOEYARD_TRY(load_matrix(job, mlp.gate, gate_up_, 2 * index * matrix));
  MOEYARD_TRY(load_matrix(job, mlp.up, gate_up_, (2 * index + 1) * matrix));
  return load_matrix(job, mlp.down, down_, index * matrix);
}

Status MlpBlock::queue(Rank& rank, Tensor x, const DeviceTensor& rows_of_mlp, std::int64_t rows, Tensor out) {
  constexpr std::int64_t kLastDimension = -1;
  MOEYARD_TRY(
      multiply_groups(rank, std::move(x), gate_up_, rows_of_mlp, MOEYARD_TRY(both_.first_rows(rows))));
  aclTensor* both = rank.keep(MOEYARD_TRY(both_.first_rows(rows)));
  aclTensor* inner = rank.keep(MOEYARD_TRY(inner_.first_rows(rows)));
  MOEYARD_TRY(
      rank.call("aclnnSwiGlu", aclnnSwiGluGetWorkspaceSize, aclnnSwiGlu, both, kLastDimension, inner));
  return multiply_groups(rank, MOEYARD_TRY(inner_.first_rows(rows)), down_, rows_of_mlp, std::move(out));
}

Result<SharedGate> SharedGate::make(const Job& job, std::int64_t rows) {
  const std::vector<float> weight = job.layer.shared_gate->widened();
  SharedGate gate;
  gate.weight_ = MOEYARD_TRY(
      DeviceTensor::make(ACL_FLOAT, {1, 1, job.layer.config.hidden}, std::as_bytes(std::span(weight))));
  gate.logits_ = MOEYARD_TRY(DeviceTensor::make(ACL_FLOAT, {rows, 1}));
  gate.factor_ = MOEYARD_TRY(DeviceTensor::make(ACL_FLOAT, {rows, 1}));
  return gate;
}

Status SharedGate::queue(Rank& rank, Tensor x, const DeviceTensor& rows_of_mlp, std::int64_t rows,
                         Tensor results) {
  MOEYARD_TRY(
      multiply_groups(rank, std::move(x), weight_, rows_of_mlp, MOEYARD_TRY(logits_.first_rows(rows))));
  aclTensor* logits = rank.keep(MOEYARD_TRY(logits_.first_rows(rows)));
  aclTensor* factor = rank.keep(MOEYARD_TRY(factor_.first_rows(rows)));
  aclTensor* scaled = rank.keep(std::move(results));
  MOEYARD_TRY(rank.call("aclnnSigmoid", aclnnSigmoidGetWorkspaceSize, aclnnSigmoid, logits, factor));
  return rank.call("aclnnMul", aclnnMulGetWorkspaceSize, aclnnMul, scaled, factor, scaled);
}

}  // namespace moeyard::model
