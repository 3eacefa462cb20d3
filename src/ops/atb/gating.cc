// Moeyard. SPDX-License-Identifier: Apache-2.0
// Which experts a token goes to, and in which order the rows of all tokens come.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/parallel.h"
#include "ops/atb/indices.h"
#include "ops/atb/operation.h"
#include "ops/scratch.h"
#include "ops/typed.h"

namespace moeyard::ops::atb {
namespace {

constexpr std::int64_t kRowsPerTask = 64;

struct GatingParts {
  Scratch scratch;
  Part<std::int32_t> order;   // places of the input, sorted by expert
  Part<std::int64_t> counts;  // rows per expert, then the first row of each
  Part<std::int32_t> chosen;  // the experts of the list, sorted
  explicit GatingParts(const Call& call)
      : order(scratch.add<std::int32_t>(call[0].numel())),
        counts(scratch.add<std::int64_t>(call.integers[1] + 1)),
        chosen(scratch.add<std::int32_t>(static_cast<std::int64_t>(call.list.size()))) {}
};

std::int64_t gating_workspace(const Call& call) { return GatingParts(call).scratch.bytes(); }

void store_count(const TensorView& counts, std::int64_t i, std::int64_t value) {
  if (counts.dtype == ACL_INT64)
    counts.begin_as<std::int64_t>()[i] = value;
  else
    counts.begin_as<std::int32_t>()[i] = static_cast<std::int32_t>(value);
}

Status run_gating(const Call& call, std::byte* workspace) {
  const GatingParts parts(call);
  const auto* experts = call[0].begin_as<std::int32_t>();
  const auto* slots = call[1].begin_as<std::int32_t>();
  auto* tokens = call[2].begin_as<std::int32_t>();
  auto* originals = call[4].begin_as<std::int32_t>();
  const std::int64_t n = call[0].numel(), per_token = call.integers[0], limit = call.integers[1];
  std::int32_t* order = parts.order.in(workspace);
  std::int64_t* counts = parts.counts.in(workspace);
  if (limit == 0) {
    std::iota(order, order + n, 0);
    std::sort(order, order + n, [&](std::int32_t a, std::int32_t b) {
      return experts[a] != experts[b] ? experts[a] < experts[b] : a < b;
    });
    for (std::int64_t i = 0; i < n; ++i) {
      originals[i] = slots[order[i]];
      tokens[i] = 0;
    }
    store_count(call[3], 0, 0);
    return {};
  }
  for (std::int64_t i = 0; i < n; ++i)
    if (experts[i] < 0 || experts[i] >= limit)
      return wrong_data(call.name, "expert {} is {} but must be in [0, {})", i, experts[i], limit);
  std::fill_n(counts, limit + 1, 0);
  for (std::int64_t i = 0; i < n; ++i) ++counts[experts[i] + 1];
  std::partial_sum(counts, counts + limit + 1, counts);
  for (std::int64_t i = 0; i < n; ++i) order[counts[experts[i]]++] = static_cast<std::int32_t>(i);
  // Now counts[e] is the end of expert e.
  const auto write = [&](std::int64_t row, std::int32_t place) {
    originals[row] = slots[place];
    tokens[row] = static_cast<std::int32_t>(slots[place] / per_token);
  };
  for (std::int64_t i = 0; i < n; ++i) write(i, order[i]);
  if (call.list.empty()) {
    for (std::int64_t e = 0; e < limit; ++e) store_count(call[3], e, counts[e]);
    return {};
  }
  const std::span<std::int32_t> chosen = parts.chosen.span_in(workspace);
  std::copy(call.list.begin(), call.list.end(), chosen.begin());
  std::sort(chosen.begin(), chosen.end());
  std::int64_t row = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const std::int32_t expert = chosen[i];
    for (std::int64_t at = expert == 0 ? 0 : counts[expert - 1]; at < counts[expert]; ++at)
      write(row++, order[at]);
    store_count(call[3], static_cast<std::int64_t>(i), row);
  }
  *call[5].begin_as<std::int32_t>() = static_cast<std::int32_t>(row);
  return {};
}

// Chooses groups of a row: those of the largest sums of their n largest values; of equal sums, the lower group's. On the
// stack of its thread.
class Chooser {
 public:
  Chooser(const Call& call, std::int64_t size)
      : groups_(call.integers[0]),
        kept_(call.integers[1]),
        n_(call.integers[2]),
        size_(size),
        width_(size / groups_) {}
  float& value(std::int64_t i) { return values_[i]; }
  bool keeps(std::int64_t i) const { return stays_[i / width_]; }
  void choose() {
    for (std::int64_t g = 0; g < groups_; ++g) {
      std::copy_n(values_ + g * width_, width_, sorted_);
      std::partial_sort(sorted_, sorted_ + n_, sorted_ + width_, std::greater<>());
      scores_[g] = std::accumulate(sorted_, sorted_ + n_, 0.0f);
      order_[g] = static_cast<std::int32_t>(g);
    }
    sort_by(scores_, kept_, groups_);
    std::fill_n(stays_, groups_, false);
    for (std::int64_t g = 0; g < kept_; ++g) stays_[order_[g]] = true;
  }
  // The numbers of the k largest values; of equal ones, the lower.
  const std::int32_t* largest(std::int64_t k) {
    std::iota(order_, order_ + size_, 0);
    sort_by(values_, k, size_);
    return order_;
  }

 private:
  static constexpr std::int64_t kMost = 1024;  // columns, and so groups
  void sort_by(const float* by, std::int64_t k, std::int64_t n) {
    std::partial_sort(order_, order_ + k, order_ + n, larger_first(by));
  }

  const std::int64_t groups_, kept_, n_, size_, width_;
  float values_[kMost] = {}, sorted_[kMost] = {}, scores_[kMost] = {};
  std::int32_t order_[kMost] = {};
  bool stays_[kMost] = {};
};

Status group_top_k(const Call& call, std::byte* /*workspace*/) {
  const TensorView &x = call[0], &out = call.last();
  const std::int64_t size = x.dim(1);
  parallel_for(x.dim(0), kRowsPerTask, [&](Range range) {
    Chooser chooser(call, size);
    for (std::int64_t row = range.begin; row < range.end; ++row) {
      for (std::int64_t i = 0; i < size; ++i)
        chooser.value(i) = load_number(x.data + bytes_of(x.dtype, row * size + i), x.dtype);
      chooser.choose();
      for (std::int64_t i = 0; i < size; ++i)
        store_number(chooser.keeps(i) ? chooser.value(i) : 0.0f,
                     out.data + bytes_of(out.dtype, row * size + i), out.dtype);
    }
  });
  return {};
}

// The number that stands for expert e in the tables of instances.
std::int32_t mapped(const Call& call, std::int64_t token, std::int64_t expert) {
  if (call.integers[5] == 0) return static_cast<std::int32_t>(expert);
  const TensorView& table = call[3];
  const std::int64_t instances = std::max<std::int32_t>(1, call[2].begin_as<std::int32_t>()[expert]);
  return table.begin_as<std::int32_t>()[expert * table.dim(1) + token % instances];
}

Status check_mapping(const Call& call) {
  const TensorView &counts = call[2], &table = call[3];
  for (std::int64_t e = 0; e < counts.dim(0); ++e) {
    const std::int32_t instances = counts.begin_as<std::int32_t>()[e];
    if (instances > table.dim(1))
      return wrong_data(call.name, "mappingNum[{}] is {} but mappingTable has {} columns", e, instances,
                        table.dim(1));
    for (std::int64_t i = 0; i < std::max<std::int32_t>(1, instances); ++i)
      if (const std::int32_t id = table.at<std::int32_t>(e, i); id < 0)
        return wrong_data(call.name, "mappingTable[{}][{}] is {} but must be the number of an expert", e, i,
                          id);
  }
  return {};
}

Status fused_add_top_k_div(const Call& call, std::byte* /*workspace*/) {
  const bool has_mapping = call.integers[5] != 0;
  const TensorView &x = call[0], &bias = call[1], &y = call[has_mapping ? 4 : 2], &indices = call.last();
  const std::int64_t size = x.dim(1), k = call.integers[3];
  if (has_mapping) MOEYARD_TRY(check_mapping(call));
  const auto weight_of = [&](std::int64_t token, std::int64_t expert) {
    const double logit = load_number(x.data + bytes_of(x.dtype, token * size + expert), x.dtype);
    return static_cast<float>(1 / (1 + std::exp(-logit)));
  };
  parallel_for(x.dim(0), kRowsPerTask, [&](Range range) {
    Chooser chooser(call, size);
    for (std::int64_t token = range.begin; token < range.end; ++token) {
      for (std::int64_t e = 0; e < size; ++e)
        chooser.value(e) = weight_of(token, e) + load_number(bias.data + bytes_of(bias.dtype, e), bias.dtype);
      chooser.choose();
      for (std::int64_t e = 0; e < size; ++e)
        if (!chooser.keeps(e)) chooser.value(e) = 0;
      const std::int32_t* best = chooser.largest(k);
      float* weights = y.begin_as<float>() + token * k;
      float sum = 0;
      for (std::int64_t i = 0; i < k; ++i) sum += weights[i] = weight_of(token, best[i]);
      for (std::int64_t i = 0; i < k; ++i) {
        if (call.integers[4] != 0) weights[i] = weights[i] / sum * static_cast<float>(call.numbers[0]);
        indices.begin_as<std::int32_t>()[token * k + i] = mapped(call, token, best[i]);
      }
    }
  });
  return {};
}

}  // namespace

std::span<const Entry> gating() {
  static constexpr Entry kEntries[] = {
      {MOEYARD_ATB_GATING, run_gating, gating_workspace},
      {MOEYARD_ATB_GROUP_TOP_K, group_top_k},
      {MOEYARD_ATB_FUSED_ADD_TOP_K_DIV, fused_add_top_k_div},
  };
  return kEntries;
}

}  // namespace moeyard::ops::atb
