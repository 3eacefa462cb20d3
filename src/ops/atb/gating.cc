// Moeyard. SPDX-License-Identifier: Apache-2.0
// Which experts a token goes to, and in which order the rows of all tokens come.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/parallel.h"
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
  explicit GatingParts(const Call& call)
      : order(scratch.add<std::int32_t>(call[0].numel())),
        counts(scratch.add<std::int64_t>(call.integers[1] + 1)) {}
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
    std::stable_sort(order, order + n,
                     [&](std::int32_t a, std::int32_t b) { return experts[a] < experts[b]; });
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
  std::vector<std::int32_t> chosen = call.list;
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

// Marks the `kept` groups of the largest sums of their n largest values; equal sums: the lower group.
void choose_groups(const float* values, std::int64_t size, std::int64_t groups, std::int64_t kept,
                   std::int64_t n, std::vector<float>& scratch,
                   std::vector<std::pair<float, std::int64_t>>& scores, std::vector<char>& stays) {
  const std::int64_t width = size / groups;
  for (std::int64_t g = 0; g < groups; ++g) {
    scratch.assign(values + g * width, values + (g + 1) * width);
    std::partial_sort(scratch.begin(), scratch.begin() + n, scratch.end(), std::greater<>());
    scores[static_cast<std::size_t>(g)] = {std::accumulate(scratch.begin(), scratch.begin() + n, 0.0f), g};
  }
  std::stable_sort(scores.begin(), scores.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::fill(stays.begin(), stays.end(), 0);
  for (std::int64_t g = 0; g < kept; ++g)
    stays[static_cast<std::size_t>(scores[static_cast<std::size_t>(g)].second)] = 1;
}

// What a thread needs to choose groups of rows.
struct Chooser {
  explicit Chooser(const Call& call, std::int64_t size)
      : groups(call.integers[0]),
        kept(call.integers[1]),
        n(call.integers[2]),
        values(static_cast<std::size_t>(size)),
        scores(static_cast<std::size_t>(groups)),
        stays(static_cast<std::size_t>(groups)) {}
  bool keeps(std::int64_t i) const {
    return stays[static_cast<std::size_t>(i / (static_cast<std::int64_t>(values.size()) / groups))] != 0;
  }
  void choose() {
    scores.resize(static_cast<std::size_t>(groups));
    choose_groups(values.data(), static_cast<std::int64_t>(values.size()), groups, kept, n, scratch, scores,
                  stays);
  }

  const std::int64_t groups, kept, n;
  std::vector<float> values, scratch;
  std::vector<std::pair<float, std::int64_t>> scores;
  std::vector<char> stays;
};

Status group_top_k(const Call& call, std::byte* /*workspace*/) {
  const TensorView &x = call[0], &out = call.last();
  const std::int64_t size = x.dim(1);
  parallel_for(x.dim(0), kRowsPerTask, [&](Range range) {
    Chooser chooser(call, size);
    for (std::int64_t row = range.begin; row < range.end; ++row) {
      for (std::int64_t i = 0; i < size; ++i)
        chooser.values[static_cast<std::size_t>(i)] =
            load_number(x.data + bytes_of(x.dtype, row * size + i), x.dtype);
      chooser.choose();
      for (std::int64_t i = 0; i < size; ++i)
        store_number(chooser.keeps(i) ? chooser.values[static_cast<std::size_t>(i)] : 0.0f,
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

Status fused_add_top_k_div(const Call& call, std::byte* /*workspace*/) {
  const bool has_mapping = call.integers[5] != 0;
  const TensorView &x = call[0], &bias = call[1], &y = call[has_mapping ? 4 : 2], &indices = call.last();
  const std::int64_t size = x.dim(1), k = call.integers[3];
  if (has_mapping)
    for (std::int64_t e = 0; e < size; ++e)
      if (const std::int32_t instances = call[2].begin_as<std::int32_t>()[e]; instances > call[3].dim(1))
        return wrong_data(call.name, "mappingNum[{}] is {} but mappingTable has {} columns", e, instances,
                          call[3].dim(1));
  parallel_for(x.dim(0), kRowsPerTask, [&](Range range) {
    Chooser chooser(call, size);
    std::vector<float> weights(static_cast<std::size_t>(size));
    std::vector<std::int64_t> order(static_cast<std::size_t>(size));
    for (std::int64_t token = range.begin; token < range.end; ++token) {
      for (std::int64_t e = 0; e < size; ++e) {
        const auto at = static_cast<std::size_t>(e);
        const double logit = load_number(x.data + bytes_of(x.dtype, token * size + e), x.dtype);
        weights[at] = static_cast<float>(1 / (1 + std::exp(-logit)));
        chooser.values[at] = weights[at] + load_number(bias.data + bytes_of(bias.dtype, e), bias.dtype);
      }
      chooser.choose();
      for (std::int64_t e = 0; e < size; ++e)
        if (!chooser.keeps(e)) chooser.values[static_cast<std::size_t>(e)] = 0;
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
        return chooser.values[static_cast<std::size_t>(a)] > chooser.values[static_cast<std::size_t>(b)];
      });
      float sum = 0;
      for (std::int64_t i = 0; i < k; ++i)
        sum += weights[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])];
      for (std::int64_t i = 0; i < k; ++i) {
        const std::int64_t expert = order[static_cast<std::size_t>(i)];
        const float weight = weights[static_cast<std::size_t>(expert)];
        y.begin_as<float>()[token * k + i] =
            call.integers[4] != 0 ? weight / sum * static_cast<float>(call.numbers[0]) : weight;
        indices.begin_as<std::int32_t>()[token * k + i] = mapped(call, token, expert);
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
