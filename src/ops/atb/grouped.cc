// Moeyard. SPDX-License-Identifier: Apache-2.0
// Products of groups of rows, or of k, through the grouped product.
#include <algorithm>

#include "base/parallel.h"
#include "ops/atb/indices.h"
#include "ops/atb/matrices.h"
#include "ops/atb/operation.h"
#include "ops/compute/grouped_matmul.h"
#include "ops/compute/strided.h"
#include "ops/typed.h"

namespace moeyard::ops::atb {
namespace {

// A dense tensor in the workspace.
TensorView dense(void* data, aclDataType dtype, std::initializer_list<std::int64_t> dims) {
  TensorView view;
  view.data = static_cast<std::byte*>(data);
  view.dtype = dtype;
  view.format = ACL_FORMAT_ND;
  view.rank = static_cast<std::int32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), view.shape);
  std::int64_t stride = 1;
  for (int axis = view.rank - 1; axis >= 0; stride *= view.shape[axis--]) view.strides[axis] = stride;
  return view;
}

// Ends of groups: rising, and not beyond `limit`.
Status check_ends(const Call& call, const TensorView& ends, std::int64_t limit) {
  std::int64_t before = 0;
  for (std::int64_t g = 0; g < ends.numel(); ++g) {
    const std::int64_t end = index_at(ends, g);
    if (end < before || end > limit)
      return wrong_data(call.name, "the end of group {} is {} but must be in [{}, {}]", g, end, before,
                        limit);
    before = end;
  }
  return {};
}

std::int64_t plan_bytes(std::int64_t groups) {
  GroupedMatmulArgs args;  // what the product itself needs depends on the number of groups
  args.group_type = 0;
  args.weight.items.push_back(dense(nullptr, ACL_FLOAT, {groups, 1, 1}));
  args.x.items.push_back(dense(nullptr, ACL_FLOAT, {1, 1}));
  args.out.items.push_back(dense(nullptr, ACL_FLOAT, {1, 1}));
  args.group_list = dense(nullptr, ACL_INT64, {groups});
  args.split_item = 3;
  return GroupedMatmul::plan("", args)->workspace_bytes;
}

Status multiply(const Call& call, const GroupedMatmulArgs& args, std::byte* workspace) {
  const GroupedMatmul::Plan plan = MOEYARD_TRY(GroupedMatmul::plan(call.name, args));
  return GroupedMatmul::run({call.name, workspace, 0}, args, plan);
}

// ---- out[g] += x[:, range g] * weight[range g, :] ----

struct InplaceAddParts {
  Scratch scratch;
  Part<float> sums;
  Part<std::byte> product;
  explicit InplaceAddParts(const Call& call)
      : sums(scratch.add<float>(call.last().numel())),
        product(scratch.add<std::byte>(plan_bytes(call[2].numel()))) {}
};
std::int64_t inplace_add_workspace(const Call& call) { return InplaceAddParts(call).scratch.bytes(); }

// x, weight, ends, what is added to -> out. integers[0]: whether x is transposed.
Status inplace_add(const Call& call, std::byte* workspace) {
  const InplaceAddParts parts(call);
  const TensorView x = matrix_of(call[0], 0, 0, call.integers[0] != 0), &ends = call[2], &out = call.last();
  MOEYARD_TRY(check_ends(call, ends, x.dim(1)));
  GroupedMatmulArgs args;
  args.group_type = 2;
  args.split_item = 3;
  args.x.items.push_back(x);
  args.weight.items.push_back(call[1]);
  args.group_list = ends;
  args.out.items.push_back(
      dense(parts.sums.in(workspace), ACL_FLOAT, {ends.numel(), x.dim(0), call[1].dim(1)}));
  MOEYARD_TRY(multiply(call, args, parts.product.in(workspace)));
  StridedRows rows(out.dims());
  rows.add(call[3]);
  rows.add(args.out[0].data, ACL_FLOAT, {out.strides, static_cast<std::size_t>(out.rank)});
  rows.add(out);
  run_elements(kernels::ElementOp::add, rows, ACL_FLOAT, ACL_FLOAT, ACL_FLOAT);
  return {};
}

// ---- rows of tokens, each times the weight of its expert ----

// Inputs: activation, weight [E, N, K] or [E, K, N], ends of the experts' rows, token of each row [, scales of columns [E, N],
// scales of activation's rows]. integers: whether weight is transposed, whether rows go down to tokens.
struct Routed {
  explicit Routed(const Call& call)
      : call(call),
        down(call.integers[1] != 0),
        quantised(call[0].dtype == ACL_INT8),
        rows(call[3].numel()),
        depth(call[0].dim(1)),
        columns(call.last().dim(1)),
        experts(call[1].dim(0)),
        tokens(down ? call.last().dim(0) : call[0].dim(0)),
        ends(scratch.add<std::int64_t>(experts)),
        product(scratch.add<std::byte>(plan_bytes(experts))),
        x(scratch.add<std::byte>(down ? 0 : bytes_of(call[0].dtype, rows * depth))),
        row_scales(scratch.add<float>(quantised && !down ? rows : 0)),
        results(scratch.add<float>(down ? rows * columns : 0)),
        places(scratch, down ? rows : 0, down ? tokens : 0) {}

  const Call& call;
  const bool down, quantised;
  const std::int64_t rows, depth, columns, experts, tokens;
  Scratch scratch;
  Part<std::int64_t> ends;
  Part<std::byte> product, x;
  Part<float> row_scales, results;
  PlacesByIndex places;
};
std::int64_t routed_workspace(const Call& call) { return Routed(call).scratch.bytes(); }

void gather_rows(const Routed& parts, std::byte* workspace) {
  const TensorView &from = parts.call[0], &tokens = parts.call[3];
  const std::int64_t bytes = bytes_of(from.dtype, parts.depth);
  parallel_for(parts.rows, std::max<std::int64_t>(1, 65536 / bytes), [&](Range range) {
    for (std::int64_t row = range.begin; row < range.end; ++row) {
      const std::int64_t token = index_at(tokens, row);
      std::copy_n(from.data + token * bytes, bytes, parts.x.in(workspace) + row * bytes);
      if (parts.quantised) parts.row_scales.in(workspace)[row] = parts.call[5].begin_as<float>()[token];
    }
  });
}

// Each token's rows in rising order, in fp32, rounded once.
void add_up(const Routed& parts, std::byte* workspace, std::int64_t used) {
  const TensorView& out = parts.call.last();
  parts.places.sort(workspace, parts.call[3], used);
  constexpr std::int64_t kBlock = 512;
  parallel_for(parts.tokens, std::max<std::int64_t>(1, 8192 / parts.columns), [&](Range range) {
    float sum[kBlock];
    for (std::int64_t token = range.begin; token < range.end; ++token)
      for (std::int64_t begin = 0; begin < parts.columns; begin += kBlock) {
        const std::int64_t width = std::min(kBlock, parts.columns - begin);
        std::fill_n(sum, width, 0.0f);
        for (const std::int32_t row : parts.places.of(workspace, token)) {
          const float* result = parts.results.in(workspace) + row * parts.columns + begin;
          for (std::int64_t i = 0; i < width; ++i) sum[i] += result[i];
        }
        for (std::int64_t i = 0; i < width; ++i)
          store_number(sum[i], out.data + bytes_of(out.dtype, token * parts.columns + begin + i), out.dtype);
      }
  });
}

Status routed(const Call& call, std::byte* workspace) {
  const Routed parts(call);
  MOEYARD_TRY(check_ends(call, call[2], parts.rows));
  MOEYARD_TRY(check_indices(call.name, call[3], parts.tokens, "the number of tokens"));
  std::int64_t* ends = parts.ends.in(workspace);
  for (std::int64_t e = 0; e < parts.experts; ++e) ends[e] = index_at(call[2], e);
  if (!parts.down) gather_rows(parts, workspace);
  GroupedMatmulArgs args;
  args.group_type = 0;
  args.split_item = 3;
  args.x.items.push_back(parts.down ? call[0]
                                    : dense(parts.x.in(workspace), call[0].dtype, {parts.rows, parts.depth}));
  TensorView weight = call[1];
  if (call.integers[0] != 0) {
    std::swap(weight.shape[1], weight.shape[2]);
    std::swap(weight.strides[1], weight.strides[2]);
  }
  args.weight.items.push_back(weight);
  args.group_list = dense(ends, ACL_INT64, {parts.experts});
  if (parts.quantised) {
    args.scale.items.push_back(call[4]);
    args.per_token_scale.items.push_back(
        parts.down ? call[5] : dense(parts.row_scales.in(workspace), ACL_FLOAT, {parts.rows}));
  }
  args.out.items.push_back(
      parts.down ? dense(parts.results.in(workspace), ACL_FLOAT, {parts.rows, parts.columns}) : call.last());
  MOEYARD_TRY(multiply(call, args, parts.product.in(workspace)));
  if (parts.down) add_up(parts, workspace, ends[parts.experts - 1]);
  return {};
}

}  // namespace

std::span<const Entry> grouped() {
  static constexpr Entry kEntries[] = {
      {MOEYARD_ATB_GROUPED_INPLACE_ADD, inplace_add, inplace_add_workspace},
      {MOEYARD_ATB_GROUPED_ROUTED, routed, routed_workspace},
  };
  return kEntries;
}

}  // namespace moeyard::ops::atb
