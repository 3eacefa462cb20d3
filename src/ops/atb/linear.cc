// Moeyard. SPDX-License-Identifier: Apache-2.0
// Products of matrices, through the grouped product.
#include <algorithm>

#include "ops/atb/operation.h"
#include "ops/compute/grouped_matmul.h"
#include "ops/compute/strided.h"

namespace moeyard::ops::atb {
namespace {

// Matrix `batch` of a tensor of 2 or 3 dimensions, the one at `batch_axis` numbering them; `transposed`: its other way round.
TensorView matrix_of(const TensorView& view, std::int64_t batch, int batch_axis, bool transposed) {
  TensorView matrix = view;
  if (view.rank == 3) {
    matrix.offset += batch * view.strides[batch_axis];
    const int row = batch_axis == 0 ? 1 : 0;
    matrix.shape[0] = view.shape[row];
    matrix.strides[0] = view.strides[row];
    matrix.shape[1] = view.shape[2];
    matrix.strides[1] = view.strides[2];
    matrix.rank = 2;
  }
  if (transposed) {
    std::swap(matrix.shape[0], matrix.shape[1]);
    std::swap(matrix.strides[0], matrix.strides[1]);
  }
  return matrix;
}

GroupedMatmulArgs arguments(const Call& call) {
  const TensorView &x = call[0], &weight = call[1], &out = call.last();
  const int axis = call.integers[3] != 0 ? 1 : 0;
  const std::int64_t batches = out.rank == 3 ? out.dim(axis) : 1;
  GroupedMatmulArgs args;
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    args.x.items.push_back(matrix_of(x, batch, axis, call.integers[0] != 0));
    args.weight.items.push_back(matrix_of(weight, batch, 0, call.integers[1] != 0));
    args.out.items.push_back(matrix_of(out, batch, axis, false));
    if (call.integers[2] == 1) {
      TensorView bias = call[2];  // (n) or (1, n)
      bias.shape[0] = bias.dim(bias.rank - 1);
      bias.strides[0] = 1;
      bias.rank = 1;
      args.bias.items.push_back(bias);
    }
  }
  return args;
}

std::int64_t workspace_of(const Call& call) {
  const auto plan = GroupedMatmul::plan(call.name, arguments(call));
  return plan->workspace_bytes;
}

Status linear_run(const Call& call, std::byte* workspace) {
  const GroupedMatmulArgs args = arguments(call);
  const GroupedMatmul::Plan plan = MOEYARD_TRY(GroupedMatmul::plan(call.name, args));
  MOEYARD_TRY(GroupedMatmul::run({call.name, workspace, 0}, args, plan));
  if (call.integers[2] != 2) return {};
  StridedRows rows(call.last().dims());
  for (const TensorView* view : {&call[2], &call.last(), &call.last()}) rows.add(*view);
  run_elements(kernels::ElementOp::add, rows, call[2].dtype, call.last().dtype, call.last().dtype);
  return {};
}

}  // namespace

std::span<const Entry> linear() {
  static constexpr Entry kEntries[] = {{MOEYARD_ATB_LINEAR, linear_run, workspace_of}};
  return kEntries;
}

}  // namespace moeyard::ops::atb
