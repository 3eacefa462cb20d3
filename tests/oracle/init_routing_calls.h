// Moeyard. SPDX-License-Identifier: Apache-2.0
// Calls of aclnnMoeInitRouting, V2 to V4, and what they should give.
#pragma once
#include "aclnnop/aclnn_moe_init_routing.h"
#include "aclnnop/aclnn_moe_init_routing_v2.h"
#include "aclnnop/aclnn_moe_init_routing_v3.h"
#include "aclnnop/aclnn_moe_init_routing_v4.h"
#include "support/int_array.h"
#include "support/rows.h"

namespace oracle::init_routing {

using Ids = std::vector<std::int32_t>;
using Values = std::vector<std::int64_t>;
using Floats = std::vector<float>;

struct Case {
  int version = 2;
  std::int64_t tokens = 0, topk = 0, hidden = 0, experts = 0;
  Ids ids;
  std::int64_t active = 0, capacity = 0;
  bool pad = false;
  std::int64_t count_type = 0;  // as the version has it
  bool count_flag = false;
  std::optional<Values> range;
  std::int64_t row_idx_type = 0;
  bool scaled = false, in_blocks = false;  // scales of E8M0
  bool packed = false;                     // FP4: `hidden` counts bytes
  bool weighted = false;                   // version 4
  std::optional<std::int64_t> there;       // version 4: rows of expandedX, which may be more than `active`

  std::int64_t slots() const { return tokens * topk; }
  std::int64_t begin() const { return range && !range->empty() ? (*range)[0] : 0; }
  std::int64_t end() const { return range && !range->empty() ? (*range)[1] : experts; }
  std::int64_t rows() const {
    if (version == 1) return std::min(tokens, active) * topk;
    if (pad) return experts * capacity;
    if (there) return *there;
    return kept();
  }
  std::int64_t kept() const {
    if (pad) return rows();
    return active > 0 ? std::min(active, slots()) : slots();
  }
  bool counts() const {
    return version == 2 ? (pad ? count_flag : count_type > 0) : version >= 3 && count_flag;
  }
  Values count_shape() const {
    return version >= 3 && count_type == 2 ? Values{experts, 2} : Values{end() - begin()};
  }
  // Bytes per token.
  std::int64_t scale_columns() const { return in_blocks ? (hidden * (packed ? 2 : 1) + 63) / 64 * 2 : 4; }
};

struct Expected {
  std::vector<std::int64_t> slot_of_row;  // by row of expandedX; -1: none
  Ids row_idx, expert_idx;                // sentinel where nothing is written
  Values counts;
};

inline constexpr std::int32_t kUntouched = 0x5A5A5A5A;

inline Expected reference(const Case& c) {
  Expected expected;
  Ids order;
  for (std::int32_t slot = 0; slot < c.slots(); ++slot) {
    const std::int32_t id = c.ids[static_cast<std::size_t>(slot)];
    const bool all = c.version == 1 || (c.version == 2 && !c.pad);
    if (all || (c.begin() <= id && id < c.end())) order.push_back(slot);
  }
  auto id_of = [&](std::int32_t slot) { return c.ids[static_cast<std::size_t>(slot)]; };
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return id_of(a) < id_of(b); });
  expected.slot_of_row.assign(static_cast<std::size_t>(c.rows()), -1);
  expected.row_idx.assign(static_cast<std::size_t>(c.slots()), c.row_idx_type == 1 ? kUntouched : -1);
  std::int64_t in_expert = 0;
  for (std::size_t row = 0; row < order.size(); ++row) {
    const std::int32_t slot = order[row];
    in_expert = row > 0 && id_of(order[row - 1]) == id_of(slot) ? in_expert + 1 : 0;
    std::int64_t place = static_cast<std::int64_t>(row);
    if (c.pad) place = in_expert < c.capacity ? id_of(slot) * c.capacity + in_expert : -1;
    if (0 <= place && place < (c.version == 1 ? c.rows() : c.kept()))
      expected.slot_of_row[static_cast<std::size_t>(place)] = slot;
    expected.expert_idx.push_back(id_of(slot));
    const std::int64_t column = slot % c.topk * c.tokens + slot / c.topk;  // of version 1
    if (c.row_idx_type == 1)
      expected.row_idx[row] = slot;
    else
      expected.row_idx[static_cast<std::size_t>(c.version == 1 ? column : slot)] =
          static_cast<std::int32_t>(place);
  }
  std::int64_t sum = 0;
  for (std::int64_t e = c.begin(); e < c.end(); ++e) {
    const auto count = std::count(c.ids.begin(), c.ids.end(), static_cast<std::int32_t>(e));
    sum += count;
    const bool cumulated = !c.pad && c.count_type == (c.version == 2 ? 1 : 0);
    if (c.version >= 3 && c.count_type == 2) {
      if (count > 0) expected.counts.insert(expected.counts.end(), {e, count});
    } else {
      expected.counts.push_back(cumulated ? sum : count);
    }
  }
  if (c.version >= 3 && c.count_type == 2) expected.counts.resize(static_cast<std::size_t>(2 * c.experts), 0);
  return expected;
}

template <class T>
struct Call {
  Call(const Case& c, std::mt19937& random, bool views = false) : c(c) {
    auto layout = [&] { return views ? random_layout(random) : Layout::dense; };
    values = random_bits<T>(random, c.tokens * c.hidden);
    scales = random_bits<std::int8_t>(random, c.tokens * c.scale_columns());
    x = Tensor::of<T>({c.tokens, c.hidden}, values, layout());
    ids = Tensor::of<std::int32_t>({c.tokens, c.topk}, c.ids, layout());
    Values rows_shape{c.rows(), c.hidden};
    if (c.pad) rows_shape = {c.experts, c.capacity, c.hidden};
    out = Tensor::empty<T>(rows_shape, layout());
    out_idx = Tensor::empty<std::int32_t>({c.slots()}, layout());
    if (c.version == 1) {
      Ids column;
      for (std::int64_t i = 0; i < c.slots(); ++i)
        column.push_back(static_cast<std::int32_t>(i % c.topk * c.tokens + i / c.topk));
      row_idx = Tensor::of<std::int32_t>({c.tokens, c.topk}, column, layout());
      out_experts = Tensor::empty<std::int32_t>({c.slots()}, layout());
    }
    if (c.version == 2 && c.counts())
      (c.pad ? before : counts) = Tensor::empty<std::int32_t>({c.experts}, layout());
    if (c.version >= 3) make_outputs_of_v3(views, layout);
    if (c.version == 4) make_tensors_of_v4(random, layout);
    if (c.packed) {
      x->split_bytes(ACL_FLOAT4_E2M1);
      out->split_bytes(ACL_FLOAT4_E2M1);
    }
  }
  template <class NextLayout>
  void make_outputs_of_v3(bool views, NextLayout&& layout) {
    counts = Tensor::empty<std::int64_t>(c.count_shape(), layout());
    out_scale = Tensor::empty<float>(views ? Values{c.rows(), 1} : Values{c.rows()}, layout());
    if (!c.scaled) return;
    if (c.in_blocks) {
      scale = Tensor(ACL_FLOAT8_E8M0, {c.tokens, c.scale_columns() / 2, 2}, 1, layout());
      scale->set(scales);
      out_scale = Tensor(ACL_FLOAT8_E8M0, {c.rows(), c.scale_columns() / 2, 2}, 1, layout());
    } else {
      Floats narrow(static_cast<std::size_t>(c.tokens));
      if (!narrow.empty()) std::memcpy(narrow.data(), scales.data(), scales.size());
      scale = Tensor::of<float>({c.tokens}, narrow, layout());
    }
  }
  template <class NextLayout>
  void make_tensors_of_v4(std::mt19937& random, NextLayout&& layout) {
    if (c.there)
      active = Tensor::of<std::int64_t>(c.active % 2 == 0 ? Values{} : Values{1}, {c.active}, layout());
    if (!c.weighted) return;
    weights = random_bits<float>(random, c.slots());
    weight = Tensor::of<float>({c.tokens, c.topk}, weights, layout());
    out_weight = Tensor::empty<float>({c.rows(), 1}, layout());
  }
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    if (c.version == 1)
      return aclnnMoeInitRoutingGetWorkspaceSize(handle(x), handle(row_idx), handle(ids), c.active,
                                                 handle(out), handle(out_idx), handle(out_experts), size,
                                                 executor);
    if (c.version == 2)
      return aclnnMoeInitRoutingV2GetWorkspaceSize(
          handle(x), handle(ids), c.active, c.capacity, c.experts, mode(), c.count_type, c.count_flag,
          handle(out), handle(out_idx), handle(counts), handle(before), size, executor);
    if (c.version == 4)
      return aclnnMoeInitRoutingV4GetWorkspaceSize(
          handle(x), handle(ids), handle(scale), nullptr, handle(active), handle(weight), c.capacity,
          c.experts, mode(), c.count_type, c.count_flag, quant_mode, IntArray(c.range), c.row_idx_type,
          handle(out), handle(out_idx), handle(counts), handle(out_scale), handle(out_weight), size,
          executor);
    return aclnnMoeInitRoutingV3GetWorkspaceSize(
        handle(x), handle(ids), handle(scale), nullptr, c.active, c.capacity, c.experts, mode(), c.count_type,
        c.count_flag, quant_mode, IntArray(c.range), c.row_idx_type, handle(out), handle(out_idx),
        handle(counts), handle(out_scale), size, executor);
  }
  std::int64_t mode() const { return drop_pad_mode ? *drop_pad_mode : (c.pad ? 1 : 0); }
  int run(const Device& device) {
    return oracle::run([this](auto* size, auto** executor) { return phase_one(size, executor); },
                       c.version == 1   ? aclnnMoeInitRouting
                       : c.version == 2 ? aclnnMoeInitRoutingV2
                       : c.version == 3 ? aclnnMoeInitRoutingV3
                                        : aclnnMoeInitRoutingV4,
                       device);
  }
  Values counted() const {
    if (c.version >= 3) return counts->values<std::int64_t>();
    const Ids narrow = (c.pad ? before : counts)->values<std::int32_t>();
    return Values(narrow.begin(), narrow.end());
  }

  Case c;
  std::vector<T> values;
  std::vector<std::int8_t> scales;  // bytes
  Floats weights;
  std::optional<Tensor> x, row_idx, ids, scale, active, weight, out, out_idx, out_experts, counts, before,
      out_scale, out_weight;
  std::optional<std::int64_t> drop_pad_mode;
  std::int64_t quant_mode = -1;
};

// 3 tokens of one element, 2 of 4 experts each.
inline Case example(int version) {
  Case c{version, 3, 2, 1, 4, {2, 0, 1, 2, 0, 3}};
  if (version == 1) c.active = 3;
  return c;
}

}  // namespace oracle::init_routing
