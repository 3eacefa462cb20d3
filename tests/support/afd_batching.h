// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnFfnWorkerBatching as a test calls it, and its definition in plain loops.
#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "aclnnop/aclnn_ffn_worker_batching.h"
#include "support/afd.h"
#include "support/int_array.h"

namespace oracle {

// What one row is and where it came from.
struct BatchedRow {
  std::int32_t expert, session, micro_batch, token, slot;
  friend bool operator==(const BatchedRow&, const BatchedRow&) = default;
};

struct BatchingCall {
  BatchingCall(Context& context, std::vector<std::int64_t> max_shape, std::int64_t expert_num,
               std::int64_t token_dtype, std::int64_t need_schedule)
      : context(&context),
        expert_num(expert_num),
        max_shape(std::move(max_shape)),
        token_dtype(token_dtype),
        need_schedule(need_schedule),
        layer_num(1),
        y(rows_tensor()),
        groups(Tensor::empty<std::int64_t>({expert_num, 2})),
        sessions(ids_tensor()),
        micro_batches(ids_tensor()),
        tokens(ids_tensor()),
        offsets(ids_tensor()),
        scale(Tensor::empty<float>({capacity()})),
        count(Tensor::empty<std::int64_t>({1})) {}

  std::int64_t capacity() const { return max_shape[0] * max_shape[1] * max_shape[2]; }
  std::int64_t hidden() const { return max_shape[3]; }
  std::int64_t row_bytes() const { return hidden() * (token_dtype == 2 ? 1 : 2); }

  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    const IntArray shape(max_shape);
    return aclnnFfnWorkerBatchingGetWorkspaceSize(
        context_tensor ? static_cast<aclTensor*>(*context_tensor) : static_cast<aclTensor*>(*context),
        expert_num, shape, token_dtype, need_schedule, layer_num, y, groups, sessions, micro_batches, tokens,
        offsets, handle(scale), count, size, executor);
  }
  Launched launch(aclrtStream stream) {
    return oracle::launch([this](auto* size, auto** executor) { return phase_one(size, executor); },
                          aclnnFfnWorkerBatching, stream);
  }
  int run(const Device& device) {
    const Launched launched = launch(device.stream());
    return launched.code != 0 ? launched.code : device.synchronize();
  }

  std::int64_t rows() const { return count.values<std::int64_t>()[0]; }
  std::vector<std::int64_t> group_list() const { return groups.values<std::int64_t>(); }

  // The rows that were written; experts from groupList.
  std::vector<BatchedRow> row_ids() const {
    const auto s = sessions.values<std::int32_t>(), m = micro_batches.values<std::int32_t>(),
               t = tokens.values<std::int32_t>(), k = offsets.values<std::int32_t>();
    const auto list = group_list();
    std::vector<BatchedRow> all;
    for (std::size_t g = 0; g < list.size(); g += 2)
      for (std::int64_t n = 0; n < list[g + 1]; ++n) {
        const std::size_t i = all.size();
        all.push_back({static_cast<std::int32_t>(list[g]), s[i], m[i], t[i], k[i]});
      }
    return all;
  }
  const unsigned char* row(std::int64_t i) const {
    return static_cast<const unsigned char*>(y.memory()) + i * row_bytes();
  }
  // Whether rows from `first` on hold what they held before the call, in every output.
  bool untouched_from(std::int64_t first) const {
    const auto tail_untouched = [&](const Tensor& tensor, std::int64_t element_bytes) {
      const auto* bytes = static_cast<const unsigned char*>(tensor.memory());
      return std::all_of(bytes + first * element_bytes, bytes + tensor.bytes(),
                         [](unsigned char byte) { return byte == Tensor::kSentinel; });
    };
    const bool scales = !scale || tail_untouched(*scale, token_dtype == 2 ? 4 : 0);
    return scales && tail_untouched(y, row_bytes()) && tail_untouched(sessions, 4) &&
           tail_untouched(micro_batches, 4) && tail_untouched(tokens, 4) && tail_untouched(offsets, 4);
  }
  bool nothing_written() const {
    for (const Tensor* tensor : {&groups, &count})
      for (const std::int64_t value : tensor->values<std::int64_t>())
        if (value != 0x5A5A5A5A5A5A5A5A) return false;
    return untouched_from(0);
  }

  Context* context;
  std::optional<Tensor> context_tensor;  // instead of *context
  std::int64_t expert_num;
  std::vector<std::int64_t> max_shape;
  std::int64_t token_dtype, need_schedule, layer_num;
  Tensor y, groups, sessions, micro_batches, tokens, offsets;
  std::optional<Tensor> scale;
  Tensor count;

 private:
  Tensor rows_tensor() const {
    const std::vector<std::int64_t> shape{capacity(), hidden()};
    if (token_dtype == 2) return Tensor::empty<std::int8_t>(shape);
    return token_dtype == 1 ? Tensor::empty<B16>(shape) : Tensor::empty<F16>(shape);
  }
  Tensor ids_tensor() const { return Tensor::empty<std::int32_t>({capacity()}); }
};

// One micro-batch that is to be batched.
struct CollectedSession {
  std::int32_t session, micro_batch;
  std::vector<std::int32_t> ids;  // [tokens][slots]
};

// The definition: number the slots, drop those that hold nothing, sort by expert and keep the order.
inline std::vector<BatchedRow> batching_reference(const std::vector<CollectedSession>& collected,
                                                  std::int64_t slots) {
  std::vector<BatchedRow> rows;
  for (const CollectedSession& c : collected)
    for (std::size_t i = 0; i < c.ids.size(); ++i) {
      if (c.ids[i] < 0 || c.ids[i] >= 1000000) continue;
      const auto at = static_cast<std::int32_t>(i), width = static_cast<std::int32_t>(slots);
      rows.push_back({c.ids[i], c.session, c.micro_batch, at / width, at % width});
    }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const BatchedRow& a, const BatchedRow& b) { return a.expert < b.expert; });
  return rows;
}

inline std::vector<std::int64_t> group_list_reference(const std::vector<BatchedRow>& rows,
                                                      std::int64_t expert_num) {
  std::map<std::int32_t, std::int64_t> counts;
  for (const BatchedRow& row : rows) ++counts[row.expert];
  std::vector<std::int64_t> list;
  for (const auto& [expert, count] : counts) list.insert(list.end(), {expert, count});
  list.resize(static_cast<std::size_t>(2 * expert_num), 0);
  return list;
}

// Compares everything that the operator writes with the definition.
inline void expect_batched(const BatchingCall& call, const FfnSide& side,
                           const std::vector<CollectedSession>& collected) {
  const std::vector<BatchedRow> want = batching_reference(collected, side.counts.slots);
  ASSERT_EQ(call.rows(), static_cast<std::int64_t>(want.size()));
  EXPECT_EQ(call.group_list(), group_list_reference(want, call.expert_num));
  const auto s = call.sessions.values<std::int32_t>(), m = call.micro_batches.values<std::int32_t>(),
             t = call.tokens.values<std::int32_t>(), k = call.offsets.values<std::int32_t>();
  const auto scales = call.token_dtype == 2 ? call.scale->values<float>() : std::vector<float>();
  for (std::size_t i = 0; i < want.size(); ++i) {
    const BatchedRow& row = want[i];
    ASSERT_EQ((BatchedRow{row.expert, s[i], m[i], t[i], k[i]}), row) << "row " << i;
    const unsigned char* slot = side.slot(row.session, row.micro_batch, row.token, row.slot);
    ASSERT_EQ(
        std::memcmp(call.row(static_cast<std::int64_t>(i)), slot, static_cast<std::size_t>(call.row_bytes())),
        0)
        << "row " << i;
    if (call.token_dtype != 2) continue;
    ASSERT_EQ(std::memcmp(&scales[i], slot + call.hidden(), 4), 0) << "scale " << i;
  }
  EXPECT_TRUE(call.untouched_from(call.rows()));
}

}  // namespace oracle
