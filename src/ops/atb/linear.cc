// Moeyard. SPDX-License-Identifier: Apache-2.0
// Products of matrices, through the grouped product.
#include <algorithm>
#include <bit>

#include "ops/atb/matrices.h"
#include "ops/atb/operation.h"
#include "ops/compute/grouped_matmul.h"
#include "ops/compute/strided.h"
#include "ops/scratch.h"

namespace moeyard::ops::atb {
namespace {

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

// Scales that are the low half of 64 bits are taken out first.
struct Int8Parts {
  Scratch scratch;
  Part<float> scales;
  Part<std::byte> product;
  explicit Int8Parts(const Call& call)
      : scales(scratch.add<float>(call.last().dim(call.last().rank - 1))),
        product(scratch.add<std::byte>(GroupedMatmul::plan(call.name, arguments(call))->workspace_bytes)) {}
};
std::int64_t int8_workspace(const Call& call) { return Int8Parts(call).scratch.bytes(); }

// One product after the other, as each has row scales of its own.
Status linear_int8(const Call& call, std::byte* workspace) {
  const Int8Parts parts(call);
  const GroupedMatmulArgs all = arguments(call);
  TensorView scale = call[call.integers[2] == 1 ? 3 : 2];
  if (scale.dtype == ACL_UINT64) {
    const auto* pairs = scale.begin_as<std::uint64_t>();
    for (std::int64_t i = 0; i < parts.scales.count; ++i)
      parts.scales.in(workspace)[i] = std::bit_cast<float>(static_cast<std::uint32_t>(pairs[i]));
    scale.data = reinterpret_cast<std::byte*>(parts.scales.in(workspace));
    scale.dtype = ACL_FLOAT;
  }
  scale.shape[0] = parts.scales.count;
  scale.strides[0] = scale.rank = 1;
  for (std::size_t batch = 0; batch < all.x.items.size(); ++batch) {
    GroupedMatmulArgs args;
    args.x.items = {all.x.items[batch]};
    args.weight.items = {all.weight.items[batch]};
    args.out.items = {all.out.items[batch]};
    if (!all.bias.items.empty()) args.bias.items = {all.bias.items[batch]};
    args.scale.items = {scale};
    if (call.integers[4] != 0) {
      TensorView rows = call[call.tensors.size() - 2];
      rows.shape[0] = args.out[0].dim(0);
      rows.strides[0] = rows.rank = 1;
      rows.offset = static_cast<std::int64_t>(batch) * rows.shape[0];
      args.per_token_scale.items = {rows};
    }
    const GroupedMatmul::Plan plan = MOEYARD_TRY(GroupedMatmul::plan(call.name, args));
    MOEYARD_TRY(GroupedMatmul::run({call.name, parts.product.in(workspace), 0}, args, plan));
  }
  return {};
}

}  // namespace

std::span<const Entry> linear() {
  static constexpr Entry kEntries[] = {
      {MOEYARD_ATB_LINEAR, linear_run, workspace_of},
      {MOEYARD_ATB_LINEAR_INT8, linear_int8, int8_workspace},
  };
  return kEntries;
}

}  // namespace moeyard::ops::atb
