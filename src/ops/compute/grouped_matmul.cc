// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/compute/grouped_matmul.h"

#include <algorithm>

#include "base/parallel.h"
#include "kernels/finish_tile/finish_tile.h"
#include "kernels/matmul_tile/matmul_tile.h"
#include "ops/rows.h"

namespace moeyard::ops {
namespace {

using A = GroupedMatmulArgs;
using Form = A::Form;
using kernels::kMatmulColumns;
using kernels::kMatmulRows;

// One product, x[row_begin ..][k_begin ..] * w, as the group list cuts it out; lives in the workspace.
struct Group {
  std::int64_t index;      // of weight, bias and scale
  std::int64_t row_begin;  // in x and, unless every group has an output of its own, in out
  std::int64_t rows;
  std::int64_t k_begin;
  std::int64_t depth;
  std::int64_t tile_rows;   // of its tiles; all but the last have as many
  std::int64_t first_task;  // number of this group's first tile among all
  std::int64_t tasks;
};

constexpr std::int64_t round_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }
constexpr std::int64_t tiles_of(std::int64_t n, std::int64_t tile) { return (n + tile - 1) / tile; }

// Where data ends up in groups: reads the group list, which is device data, and numbers the tiles.
class Groups {
 public:
  Groups(const char* function, const A& args, Group* groups, std::int64_t count)
      : function_(function), args_(args), groups_(groups), count_(count) {}

  // The tiles of all groups.
  Result<std::int64_t> divide() {
    MOEYARD_TRY(args_.group_list_type == 2 ? read_pairs() : read_list());
    std::int64_t tasks = 0;
    for (std::int64_t g = 0; g < count_; ++g) {
      Group& group = groups_[g];
      // Tiles of equal size: a last one of few rows would have the whole cost of widening w.
      const std::int64_t tiles = tiles_of(group.rows, kMatmulRows);
      group.tile_rows = tiles == 0 ? 1 : std::min(round_up(tiles_of(group.rows, tiles), 6), kMatmulRows);
      group.first_task = tasks;
      group.tasks = tiles_of(group.rows, group.tile_rows) * tiles_of(columns(group), kMatmulColumns);
      tasks += group.tasks;
    }
    return tasks;
  }

  const Group& of_task(std::int64_t task) const {
    const Group* after =
        std::upper_bound(groups_, groups_ + count_, task,
                         [](std::int64_t wanted, const Group& group) { return wanted < group.first_task; });
    return *(after -
             1);  // groups without tiles share their first_task with the next one: the last of them counts
  }

  std::int64_t columns(const Group& group) const {
    const TensorView& w = args_.weight[args_.weight.size() == 1 ? 0 : group.index];
    return w.dim(w.rank - 1);
  }

 private:
  std::int64_t entry(std::int64_t g) const {
    return args_.host_group_list.given ? args_.host_group_list[g] : args_.group_list.at<std::int64_t>(g);
  }

  // Sizes that device data gives are cut to what is left; those that lists of tensors give must agree with it.
  Status read_list() {
    const Form form = args_.form();
    const std::int64_t depth = args_.x[0].dim(args_.x[0].rank - 1);
    const bool along_depth = args_.group_type == 2;
    const std::int64_t limit = along_depth                  ? depth
                               : form == Form::rows_of_list ? sum_of_rows()
                                                            : rows_of(args_.x[0]);
    std::int64_t begin = 0;
    for (std::int64_t g = 0; g < count_; ++g) {
      std::int64_t size = given_size(form, g);
      if (args_.has_group_list()) {
        const std::int64_t listed =
            std::max<std::int64_t>(entry(g), -1) - (args_.group_list_type == 0 ? begin : 0);
        if (size >= 0 && listed != size)
          return wrong_data(function_, "groupListOptional gives group {} {} {} but its tensor has {}", g,
                            listed, along_depth ? "values of k" : "rows", size);
        size = std::clamp<std::int64_t>(listed, 0, limit - begin);
      }
      groups_[g] = form == Form::separate
                       ? Group{g, 0, rows_of(args_.x[g]), 0, args_.x[g].dim(args_.x[g].rank - 1)}
                   : along_depth ? Group{g, 0, args_.x[0].dim(0), begin, size}
                                 : Group{g, begin, size, 0, depth};
      begin += size;
    }
    return {};
  }

  std::int64_t sum_of_rows() const {
    std::int64_t rows = 0;
    for (const TensorView& x : args_.x.items) rows += x.dim(0);
    return rows;
  }

  // What the lists of tensors say about group g: -1 nothing.
  std::int64_t given_size(Form form, std::int64_t g) const {
    if (form == Form::rows_of_list) return args_.x[g].dim(0);
    if (form == Form::rows_to_list) return args_.out[g].dim(0);
    if (form == Form::depth_of_list) return args_.weight[g].dim(0);
    return form == Form::separate ? 0 : -1;
  }

  Status read_pairs() {
    const std::int64_t rows = args_.x[0].dim(0);
    std::int64_t begin = 0;
    for (std::int64_t i = 0; i < count_; ++i) {
      const std::int64_t group = args_.group_list.at<std::int64_t>(i, 0);
      const std::int64_t size =
          std::clamp<std::int64_t>(args_.group_list.at<std::int64_t>(i, 1), 0, rows - begin);
      if (size > 0 && (group < 0 || group >= count_))
        return wrong_data(function_, "groupListOptional[{}][0] is {} but must be a group in [0, {})", i,
                          group, count_);
      groups_[i] = Group{size > 0 ? group : 0, begin, size, 0, args_.x[0].dim(1)};
      begin += size;
    }
    return {};
  }

  const char* function_;
  const A& args_;
  Group* groups_;
  std::int64_t count_;
};

// Where row `row` of a group lies.
const std::byte* x_row(const A& args, const Group& group, std::int64_t row) {
  const bool own = args.x.size() > 1;
  const TensorView& x = args.x[own ? group.index : 0];
  return row_begin(x, own ? row : group.row_begin + row) + bytes_of(x.dtype, group.k_begin * step_of(x));
}

std::byte* out_row(const A& args, const Group& group, std::int64_t row) {
  if (args.form() == Form::depth) {
    const TensorView& out = args.out[0];
    return out.begin() + bytes_of(out.dtype, group.index * out.strides[0] + row * out.strides[1]);
  }
  const bool own = args.split_item < 2;
  return row_begin(args.out[own ? group.index : 0], own ? row : group.row_begin + row);
}

// The part of a list with one tensor (g, N), or one of (N) per group, that a tile's columns need.
kernels::FinishTile::PerColumn per_column(const TensorListView& list, const Group& group,
                                          std::int64_t column) {
  if (absent(list)) return {};
  const TensorView& view = list[list.size() == 1 ? 0 : group.index];
  const std::int64_t at = (view.rank == 2 ? group.index * view.strides[0] : 0) + column * step_of(view);
  return {view.begin() + bytes_of(view.dtype, at), view.dtype, step_of(view)};
}

kernels::Activation activation_of(std::int64_t act_type) {
  using kernels::Activation;
  constexpr Activation kActivations[] = {Activation::none, Activation::relu,      Activation::gelu_tanh,
                                         Activation::none, Activation::fast_gelu, Activation::silu};
  return kActivations[act_type];
}

// A tile that one thread works on at a time. 320 KiB, on the stack: it is the same for every call, and each thread's
// stays in its cache.
struct TileMemory {
  alignas(64) std::byte scratch[kernels::kMatmulScratchBytes];
  alignas(64) float sum[kMatmulRows * kMatmulColumns];
  const std::byte* x_rows[kMatmulRows];
  std::byte* out_rows[kMatmulRows];
};

void run_tile(const A& args, const Group& group, std::int64_t columns, std::int64_t tile,
              TileMemory& memory) {
  static const kernels::MatmulTileFn matmul_tile = kernels::matmul_tile_variants().front().run;
  static const kernels::FinishTileFn finish_tile = kernels::finish_tile_variants().front().run;
  // Tiles of the same columns follow each other, so that w comes from cache from the second one on.
  const std::int64_t row_tiles = tiles_of(group.rows, group.tile_rows);
  const std::int64_t row = tile % row_tiles * group.tile_rows;
  const std::int64_t column = tile / row_tiles * kMatmulColumns;
  const std::int64_t rows = std::min(group.tile_rows, group.rows - row);
  const std::int64_t width = std::min(kMatmulColumns, columns - column);
  for (std::int64_t r = 0; r < rows; ++r) {
    memory.x_rows[r] = x_row(args, group, row + r);
    memory.out_rows[r] = out_row(args, group, row + r);
  }
  const TensorView& x = args.x[args.x.size() > 1 ? group.index : 0];
  const TensorView& w = args.weight[args.weight.size() > 1 ? group.index : 0];
  const TensorView& out = args.out[args.out.size() > 1 ? group.index : 0];
  const std::int64_t k_step = w.strides[w.rank - 2], column_step = w.strides[w.rank - 1];
  const std::int64_t w_k = args.form() == Form::depth ? group.k_begin : 0;
  const std::int64_t w_at =
      (w.rank == 3 ? group.index * w.strides[0] : 0) + w_k * k_step + column * column_step;
  const std::int64_t out_step = step_of(out);
  for (std::int64_t r = 0; r < rows; ++r) memory.out_rows[r] += bytes_of(out.dtype, column * out_step);
  matmul_tile({memory.x_rows, step_of(x), w.begin() + bytes_of(w.dtype, w_at), k_step, column_step, x.dtype,
               rows, width, group.depth, memory.sum, memory.scratch});
  const TensorView* per_token = absent(args.per_token_scale) ? nullptr : &args.per_token_scale[0];
  finish_tile({.sum = memory.sum,
               .sum_stride = kMatmulColumns,
               .integer_sum = args.quantised(),
               .rows = rows,
               .columns = width,
               .bias = per_column(args.bias, group, column),
               .scale = per_column(args.scale, group, column),
               .row_scale = per_token != nullptr ? &per_token->at<float>(group.row_begin + row) : nullptr,
               .row_scale_step = per_token != nullptr ? per_token->strides[0] : 0,
               .activation = activation_of(args.act_type),
               .to_rows = memory.out_rows,
               .to_dtype = out.dtype,
               .to_step = out_step});
}

}  // namespace

Result<GroupedMatmul::Plan> GroupedMatmul::plan(const char* /*function*/, const Args& args) {
  Plan plan;
  plan.groups = args.groups();
  plan.workspace_bytes = plan.groups * static_cast<std::int64_t>(sizeof(Group));
  plan.tiny = std::ranges::all_of(args.out.items, [](const TensorView& out) { return out.numel() == 0; });
  return plan;
}

Status GroupedMatmul::run(const executor::Run& run, const Args& args, const Plan& plan) {
  Groups groups(run.function, args, reinterpret_cast<Group*>(run.workspace), plan.groups);
  const std::int64_t tasks = MOEYARD_TRY(groups.divide());
  parallel_for(tasks, 1, [&](Range range) {
    TileMemory memory;
    for (std::int64_t task = range.begin; task < range.end; ++task) {
      const Group& group = groups.of_task(task);
      run_tile(args, group, groups.columns(group), task - group.first_task, memory);
    }
  });
  return {};
}

}  // namespace moeyard::ops
