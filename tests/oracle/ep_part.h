// Moeyard. SPDX-License-Identifier: Apache-2.0
// One rank's part in a small, good call of dispatch and of the combine that follows, for tests that spoil it.
#pragma once
#include "oracle/ep_calls.h"

namespace oracle {

struct PartSize {
  int tokens = 3, topk = 2, hidden = 8, experts_per_rank = 2;
  bool quantized = false;
};

class EpPart {
 public:
  using Size = PartSize;

  // Of a group with a size() and a name().
  template <class Group>
  EpPart(const Group& group, int rank, Size size = {})
      : ranks(group.size()),
        experts(ranks * size.experts_per_rank),
        rows_fit(std::int64_t{size.tokens} * ranks * std::min(size.experts_per_rank, size.topk)),
        x(Tensor::of<B16>({size.tokens, size.hidden}, numbers(size.tokens * size.hidden, rank))),
        ids(Tensor::of<std::int32_t>({size.tokens, size.topk}, good_ids(size, rank))),
        weights(
            Tensor::of<float>({size.tokens, size.topk},
                              std::vector<float>(static_cast<std::size_t>(size.tokens * size.topk), 0.5f))),
        rows(size.quantized ? Tensor::empty<std::int8_t>({rows_fit, size.hidden})
                            : Tensor::empty<B16>({rows_fit, size.hidden})),
        scales(Tensor::empty<float>({rows_fit})),
        assist(Tensor::empty<std::int32_t>({rows_fit * 128})),
        nums(Tensor::empty<std::int64_t>({size.experts_per_rank})),
        counts(Tensor::empty<std::int32_t>({experts})),
        expand_scales(Tensor::empty<float>({rows_fit})),
        results(
            Tensor::of<B16>({rows_fit, size.hidden},
                            std::vector<B16>(static_cast<std::size_t>(rows_fit * size.hidden), B16(1.0f)))),
        out(Tensor::empty<B16>({size.tokens, size.hidden})) {
    dispatch.group = combine.group = group.name();
    dispatch.ranks = combine.ranks = ranks;
    dispatch.rank = combine.rank = rank;
    dispatch.experts = combine.experts = experts;
    dispatch.quant_mode = size.quantized ? 2 : 0;
    dispatch.x = x, dispatch.ids = ids, dispatch.weights = weights;
    dispatch.expand_x = rows, dispatch.dynamic_scales = scales, dispatch.assist = assist,
    dispatch.nums = nums;
    dispatch.counts = counts, dispatch.expand_scales = expand_scales;
    combine.expand_x = results, combine.ids = ids, combine.assist = assist, combine.counts = counts;
    combine.weights = weights, combine.expand_scales = expand_scales, combine.out = out;
  }

  // Whether dispatch has written none of its outputs.
  bool outputs_untouched() const {
    for (const Tensor* tensor : {&rows, &scales, &assist, &nums, &counts, &expand_scales})
      for (std::size_t i = 0; i < tensor->bytes(); ++i)
        if (static_cast<unsigned char*>(tensor->memory())[i] != Tensor::kSentinel) return false;
    return true;
  }

  const int ranks, experts;
  const std::int64_t rows_fit;
  DispatchParams dispatch;
  CombineParams combine;
  Tensor x, ids, weights, rows, scales, assist, nums, counts, expand_scales, results, out;

 private:
  static std::vector<B16> numbers(int n, int rank) {
    std::vector<B16> made;
    for (int i = 0; i < n; ++i) made.push_back(B16(static_cast<float>(rank * 100 + i % 100)));
    return made;
  }
  std::vector<std::int32_t> good_ids(Size size, int rank) const {
    std::vector<std::int32_t> made;
    for (int t = 0; t < size.tokens; ++t)
      for (int k = 0; k < size.topk; ++k) made.push_back((rank + t + k) % experts);
    return made;
  }
};

}  // namespace oracle
