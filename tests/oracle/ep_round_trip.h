// Moeyard. SPDX-License-Identifier: Apache-2.0
// One random problem of dispatch and combine: made from a seed, run through the public functions on every rank, compared
// with the reference bit by bit.
#pragma once
#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <string>

#include "oracle/ep_calls.h"
#include "oracle/ep_reference.h"
#include "oracle/ep_split.h"

namespace oracle {

struct EpOptions {
  bool views = true;          // tensors that are no dense blocks
  bool types_of_nums = true;  // expertTokenNumsType 0 as well as 1
  bool repeats = false;       // real experts named twice by a token
  bool indices = false;       // assistInfo numbers sent slots instead of naming received ones (A2)
  const char* algorithm = "";
  bool split = false;     // by Setup and Teardown
  int rows_to_spare = 2;  // that the outputs have beyond the capacity
};

template <class T>
class EpRoundTrip {
 public:
  EpShape shape;
  std::vector<EpRank<T>> ranks;
  Constants<T> constants;
  EpOptions options;
  bool weighted = true, weights_travel = true;

  // Tokens, ids, masks and weights for the shape; bs[r] tokens on rank r, mask of `mask_dims` dimensions.
  EpRoundTrip(EpShape of, std::vector<int> bs, int mask_dims, std::uint32_t seed, EpOptions with = {})
      : shape(of), options(with), random_(seed), seed_(seed) {
    int count = 1;
    for (const std::int64_t size : shape.shape_of_factors()) count *= static_cast<int>(size);
    // With quantMode 1 they are the scales: some elements leave the range of INT8.
    const std::vector<float> factors =
        shape.quantised.mode == 1 ? floats(count, 20.0f, 70.0f) : floats(count, 0.5f, 2.0f);
    for (const int tokens : bs) {
      EpRank<T> rank;
      rank.bs = tokens;
      rank.x = numbers(tokens * shape.hidden);
      for (int t = 0; t < tokens; ++t) add_ids(rank);
      rank.mask_dims = mask_dims;
      if (mask_dims == 1) {
        const int active = static_cast<int>(random_() % static_cast<unsigned>(tokens + 1));
        for (int t = 0; t < tokens; ++t) rank.mask.push_back(t < active ? 1 : 0);
      }
      for (int s = 0; mask_dims == 2 && s < tokens * shape.topk; ++s)
        rank.mask.push_back(random_() % 3 != 0 ? 1 : 0);
      rank.weights = floats(tokens * shape.topk, -0.25f, 1.0f);
      rank.factors = factors;
      if (shape.quantised.travels) {
        const auto bytes_of_all = [tokens](int per_token) {
          return static_cast<std::size_t>(tokens * per_token);
        };
        rank.small_x = bytes(bytes_of_all(static_cast<int>(shape.quantised.row_bytes(shape.hidden))));
        rank.small_scales =
            bytes(bytes_of_all(shape.quantised.scales_per_row(shape.hidden) * shape.quantised.scale_bytes()));
      }
      ranks.push_back(std::move(rank));
    }
    constants = {numbers(shape.constant * shape.hidden), numbers(shape.constant * shape.hidden),
                 numbers(shape.constant * shape.hidden)};
  }
  void add_shared_x() {
    for (EpRank<T>& rank : ranks) rank.shared_x = numbers(rank.bs * shape.hidden);
  }

  // Runs both operators on all ranks and compares everything that they write. Returns a digest of the bits of xOut.
  std::uint64_t check(const EpGroup& group) {
    prepare();
    const auto of_ranks = group.results<std::uint64_t>([&](int rank, const Device& device) {
      const int me = shape.rank_now(rank);
      return me < 0 ? std::uint64_t{0} : check_rank(group, me, device);
    });
    std::vector<std::uint64_t> digests(ranks.size());
    for (int rank = 0; rank < group.size(); ++rank)
      if (const int me = shape.rank_now(rank); me >= 0)
        digests[static_cast<std::size_t>(me)] = of_ranks[static_cast<std::size_t>(rank)];
    std::uint64_t all = 1469598103934665603u;
    for (const std::uint64_t digest : digests) all = (all ^ digest) * 1099511628211u;
    return all;
  }

  std::string describe() const {
    std::string text = "seed " + std::to_string(seed_) + ": W " + std::to_string(shape.ranks) + " M " +
                       std::to_string(shape.experts) + " K " + std::to_string(shape.topk) + " H " +
                       std::to_string(shape.hidden) + (shape.first_version ? " V1" : "") + " S/R " +
                       std::to_string(shape.shared) + "/" + std::to_string(shape.shared_ranks) + " ZCN " +
                       std::to_string(shape.zero) + "," + std::to_string(shape.copy) + "," +
                       std::to_string(shape.constant) + " quantMode " + std::to_string(shape.quantised.mode) +
                       (shape.quantised.travels ? " travels" : "") + " to " +
                       std::to_string(shape.quantised.to) + " factors " +
                       std::to_string(static_cast<int>(shape.factors)) + " BS";
    for (const auto& rank : ranks) text += " " + std::to_string(rank.bs);
    text += " commQuantMode " + std::to_string(shape.comm_mode);
    return text + " mask " + std::to_string(ranks[0].mask_dims);
  }

 private:
  using Row = std::vector<T>;
  using Sent = std::vector<float>;  // a row behind communication

  std::vector<float> floats(int n, float low, float high) {
    std::uniform_real_distribution<float> between(low, high);
    std::vector<float> made;
    for (int i = 0; i < n; ++i) made.push_back(between(random_));
    return made;
  }
  std::vector<std::uint8_t> bytes(std::size_t n) {
    std::vector<std::uint8_t> made(n);
    for (std::uint8_t& byte : made) byte = static_cast<std::uint8_t>(random_());
    return made;
  }
  std::vector<T> numbers(int n) {
    std::normal_distribution<float> normal;
    std::vector<T> made;
    for (int i = 0; i < n; ++i) made.push_back(T(normal(random_)));
    return made;
  }
  void add_ids(EpRank<T>& rank) {
    const int special = shape.zero + shape.copy + shape.constant, all = shape.experts + special;
    std::vector<int> order(static_cast<std::size_t>(all));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    for (int k = 0; k < shape.topk; ++k) {
      int id = order[static_cast<std::size_t>(k)];
      if (options.repeats) id = static_cast<int>(random_() % static_cast<unsigned>(all));
      if (id >= shape.experts) id += shape.first_special() - shape.experts;
      rank.ids.push_back(id);
    }
  }
  Layout layout(std::mt19937& random) const {
    constexpr Layout kAll[] = {Layout::dense, Layout::padded_rows, Layout::transposed, Layout::offset,
                               Layout::spread};
    return options.views ? kAll[random() % 5] : Layout::dense;
  }

  // What every rank receives, what its experts make of it, and where each slot's row is.
  void prepare() {
    received_.clear();
    results_.clear();
    sent_.clear();
    place_.clear();
    int rows = 0, slots = 0;
    for (int me = 0; me < shape.ranks; ++me) {
      received_.push_back(reference_dispatch(shape, ranks, me));
      results_.emplace_back();
      sent_.emplace_back();
      for (const ReceivedRow& row : received_.back().rows) {
        place_[{row.source, row.token, row.slot}] = {me, static_cast<int>(results_.back().size())};
        results_.back().push_back(expert(row));
        sent_.back().push_back(communicated(shape.comm_mode, results_.back().back()));
      }
      rows += static_cast<int>(received_.back().rows.size());
    }
    for (const EpRank<T>& rank : ranks)
      for (int t = 0; t < rank.bs; ++t) {
        for (int k = 0; k < shape.topk; ++k)
          slots += rank.slot_active(t, k, shape.topk) &&
                   rank.ids[static_cast<std::size_t>(t * shape.topk + k)] < shape.experts;
        slots += rank.token_active(t, shape.topk) ? shape.used_shared() : 0;
      }
    EXPECT_EQ(rows, slots) << "the reference itself loses rows";
  }
  Row expert(const ReceivedRow& row) const {
    Row out;
    const float factor = row.expert < 0 ? 3.0f : 1.0f + 0.125f * static_cast<float>(row.expert);
    for (int h = 0; h < shape.hidden; ++h) {
      float value;
      if (shape.quantised.plain() || shape.quantised.travels)
        value = widen(ranks[static_cast<std::size_t>(row.source)]
                          .x[static_cast<std::size_t>(row.token * shape.hidden + h)]);
      else
        value = dequantise(shape.quantised, row.quantised, shape.hidden, h);
      out.push_back(T(value * factor));
    }
    return out;
  }

  std::uint64_t check_rank(const EpGroup& group, int me, const Device& device) const {
    std::mt19937 random(seed_ * 977u + static_cast<unsigned>(me));
    const EpRank<T>& mine = ranks[static_cast<std::size_t>(me)];
    const Received<T>& want = received_[static_cast<std::size_t>(me)];
    const std::int64_t bs = mine.bs, n = static_cast<std::int64_t>(want.rows.size());
    const std::int64_t fit =
        std::max<std::int64_t>(shape.capacity(me, mine.bs), options.repeats ? n : 0) + options.rows_to_spare;

    // Dispatch.
    DispatchParams p;
    set_attributes(p, group, me);
    const Tensor x = tokens_of(mine, random);
    const Tensor ids = Tensor::of<std::int32_t>({bs, shape.topk}, mine.ids, layout(random));
    const Tensor weights = Tensor::of<float>({bs, shape.topk}, mine.weights, layout(random));
    std::optional<Tensor> mask, smooth, scales, expand_scales;
    if (mine.mask_dims == 1) mask = Tensor::of<std::uint8_t>({bs}, mine.mask, layout(random));
    if (mine.mask_dims == 2) mask = Tensor::of<std::uint8_t>({bs, shape.topk}, mine.mask, layout(random));
    if (shape.factors != Factors::none)
      smooth = Tensor::of<float>(shape.shape_of_factors(), mine.factors, layout(random));
    if (shape.quantised.travels) smooth = travelling_scales(mine, random);
    if (shape.quantised.has_scales()) scales = scales_out(fit, random);
    if (weights_travel) expand_scales = Tensor::empty<float>({fit}, layout(random));
    const Tensor rows = shape.quantised.plain() ? Tensor::empty<T>({fit, shape.hidden}, layout(random))
                                                : small_rows(fit, random);
    const Tensor assist =
        Tensor::empty<std::int32_t>({shape.first_version ? bs * shape.topk : fit * 128}, layout(random));
    const int local = shape.shrunk() ? shape.before().most_local_experts() : shape.local_experts(me);
    const Tensor nums = Tensor::empty<std::int64_t>({local}, layout(random));
    const Tensor counts = Tensor::empty<std::int32_t>({shape.before().ranks * local}, layout(random));
    const Tensor tp_counts = Tensor::empty<std::int32_t>({1});
    std::optional<Tensor> elastic;
    if (shape.shrunk())
      elastic = Tensor::of<std::int32_t>({4 + 2 * shape.ranks_before}, shape.elastic_info(), layout(random));
    p.elastic = handle(elastic);
    p.quant_mode = shape.quantised.mode;
    p.nums_type = options.types_of_nums && seed_ % 2 == 0 ? 0 : 1;
    p.x = x, p.ids = ids, p.scales = handle(smooth), p.mask = handle(mask),
    p.weights = weights_travel ? static_cast<aclTensor*>(weights) : nullptr;
    p.expand_x = rows, p.dynamic_scales = handle(scales), p.assist = assist, p.nums = nums, p.counts = counts;
    p.tp_counts = tp_counts, p.expand_scales = handle(expand_scales);
    SplitLayer split;
    const auto run_dispatch = [&] {
      if (options.split) return dispatch_in_halves(p, split, layout(random), device);
      return shape.first_version ? run_first(p, device) : run(p, device);
    };
    EXPECT_EQ(run_dispatch(), 0) << describe() << ": rank " << me << ": " << recent_message();
    if (options.split) check_index(me, split.index());
    check_rows(me, rows, handle(scales) != nullptr ? &*scales : nullptr, want, fit);
    check_labels(me, want, fit, assist, nums, counts, expand_scales, p.nums_type);
    for (const Tensor* tensor : {&rows, &assist, &nums, &counts})
      EXPECT_TRUE(tensor->gaps_untouched()) << describe();
    EXPECT_EQ(tp_counts.values<std::uint32_t>()[0], 0x5A5A5A5Au);

    // The experts, then combine.
    std::vector<T> results = std::vector<T>(static_cast<std::size_t>(fit * shape.hidden), T::raw(0x7FC1));
    for (std::size_t i = 0; i < want.rows.size(); ++i)
      std::copy_n(results_[static_cast<std::size_t>(me)][i].begin(), shape.hidden,
                  results.begin() + static_cast<std::ptrdiff_t>(i) * shape.hidden);
    CombineParams c;
    set_attributes(c, group, me);
    c.quant_mode = shape.comm_mode;
    const Tensor expand_x = Tensor::of<T>({fit, shape.hidden}, results, layout(random));
    const Tensor out = Tensor::empty<T>({bs, shape.hidden}, layout(random));
    const Tensor empty = Tensor::empty<float>({0});
    std::optional<Tensor> shared_x, ori_x, alpha1, alpha2, v;
    if (!mine.shared_x.empty() || (bs == 0 && !ranks[0].shared_x.empty()))
      shared_x = bs % 2 == 0 ? Tensor::of<T>({bs / 2, 2, shape.hidden}, mine.shared_x, layout(random))
                             : Tensor::of<T>({bs, shape.hidden}, mine.shared_x, layout(random));
    if (shape.copy + shape.constant > 0) ori_x = Tensor::of<T>({bs, shape.hidden}, mine.x, layout(random));
    if (shape.constant > 0) {
      alpha1 = Tensor::of<T>({shape.constant, shape.hidden}, constants.alpha1, layout(random));
      alpha2 = Tensor::of<T>({shape.constant, shape.hidden}, constants.alpha2, layout(random));
      v = Tensor::of<T>({shape.constant, shape.hidden}, constants.v, layout(random));
    }
    c.expand_x = expand_x, c.ids = ids, c.assist = assist, c.counts = counts, c.tp_counts = tp_counts,
    c.mask = handle(mask);
    c.weights = weighted ? static_cast<aclTensor*>(weights) : static_cast<aclTensor*>(empty);
    c.elastic = handle(elastic);
    c.expand_scales = handle(expand_scales), c.shared_x = handle(shared_x), c.ori_x = handle(ori_x);
    c.alpha1 = handle(alpha1), c.alpha2 = handle(alpha2), c.v = handle(v), c.out = out;
    const auto run_combine = [&] {
      if (options.split) return split.combine(c, device);
      return shape.first_version ? run_first(c, device) : run(c, device);
    };
    EXPECT_EQ(run_combine(), 0) << describe() << ": rank " << me << ": " << recent_message();
    // No peer reads the rows any more.
    std::memset(expand_x.memory(), 0xFF, expand_x.bytes());
    check_sums(me, out);
    EXPECT_TRUE(out.gaps_untouched()) << describe();
    std::uint64_t digest = 1469598103934665603u;
    for (const std::uint16_t bits : out.values<std::uint16_t>()) digest = (digest ^ bits) * 1099511628211u;
    return digest;
  }

  int dispatch_in_halves(const DispatchParams& p, SplitLayer& split, Layout layout,
                         const Device& device) const {
    const bool plain = shape.quantised.plain();
    return split.dispatch(p, plain ? DtypeOf<T>::value : shape.quantised.to, plain ? sizeof(T) : 1, layout,
                          device);
  }

  void check_index(int me, const Tensor& index) const {
    std::vector<std::int32_t> want(index.values<std::int32_t>().size(), 0x5A5A5A5A);
    fill_indices(me, want);
    EXPECT_EQ(index.values<std::int32_t>(), want) << describe() << ": expandIdxOut of rank " << me;
  }

  // Rows of bytes: 4-bit ones have no gaps between them.
  Tensor small_rows(std::int64_t count, std::mt19937& random) const {
    const Layout any = layout(random);
    if (shape.quantised.is_fp4())
      return Tensor::packed(shape.quantised.to, {count, shape.hidden},
                            any == Layout::transposed || any == Layout::spread ? Layout::padded_rows : any);
    return Tensor(shape.quantised.to, {count, shape.hidden}, shape.quantised.to == ACL_INT32 ? 4 : 1, any);
  }
  Tensor tokens_of(const EpRank<T>& rank, std::mt19937& random) const {
    if (!shape.quantised.travels) return Tensor::of<T>({rank.bs, shape.hidden}, rank.x, layout(random));
    Tensor x = small_rows(rank.bs, random);
    set_bytes(x, rank.small_x);
    return x;
  }
  Tensor travelling_scales(const EpRank<T>& rank, std::mt19937& random) const {
    const Quantisation& how = shape.quantised;
    std::vector<std::int64_t> of{rank.bs};
    if (how.columns > 0) of.push_back(how.columns);
    Tensor scales(how.scale_type, of, static_cast<std::size_t>(how.scale_bytes()), layout(random));
    set_bytes(scales, rank.small_scales);
    return scales;
  }
  Tensor scales_out(std::int64_t fit, std::mt19937& random) const {
    const Quantisation& how = shape.quantised;
    const std::int64_t columns = how.scales_per_row(shape.hidden);
    std::vector<std::int64_t> of{fit};
    if (how.in_blocks() && seed_ % 2 == 0)
      of.insert(of.end(), {columns / 2, 2});
    else if (how.travels ? how.columns > 0 : how.mode > 2)
      of.push_back(columns);
    const aclDataType type = how.in_blocks() ? ACL_FLOAT8_E8M0 : how.travels ? how.scale_type : ACL_FLOAT;
    return Tensor(type, of, static_cast<std::size_t>(how.scale_bytes()), layout(random));
  }
  static void set_bytes(Tensor& tensor, const std::vector<std::uint8_t>& bytes) {
    const auto n = static_cast<std::size_t>(tensor.numel());
    if (n == 0 || bytes.size() == n) return tensor.set(bytes);
    std::vector<std::uint32_t> words(n);
    std::memcpy(words.data(), bytes.data(), bytes.size());
    tensor.set(words);
  }
  static std::vector<std::uint8_t> bytes_of_all(const Tensor& tensor, std::size_t element) {
    if (element == 1) return tensor.values<std::uint8_t>();
    const std::vector<std::uint32_t> words = tensor.values<std::uint32_t>();
    std::vector<std::uint8_t> bytes(words.size() * 4);
    if (!words.empty()) std::memcpy(bytes.data(), words.data(), bytes.size());
    return bytes;
  }

  template <class Params>
  void set_attributes(Params& p, const EpGroup& group, int me) const {
    const EpShape whole = shape.before();
    p.group = group.name(), p.ranks = whole.ranks, p.rank = shape.rank_then(me), p.experts = whole.experts;
    p.shared = shape.shared, p.shared_ranks = whole.shared_ranks, p.global_bs = shape.global_bs;
    p.zero = shape.zero, p.copy = shape.copy, p.constant = shape.constant, p.algorithm = options.algorithm;
  }

  void check_rows(int me, const Tensor& rows, const Tensor* scales, const Received<T>& want,
                  std::int64_t fit) const {
    const std::size_t width = static_cast<std::size_t>(shape.hidden), n = want.rows.size();
    if (!shape.quantised.plain()) {
      const std::size_t row_bytes = shape.quantised.row_bytes(shape.hidden);
      const auto scale_bytes = static_cast<std::size_t>(shape.quantised.scale_bytes());
      const std::size_t per_row =
          static_cast<std::size_t>(shape.quantised.scales_per_row(shape.hidden)) * scale_bytes;
      std::vector<std::uint8_t> q(static_cast<std::size_t>(fit) * row_bytes, 0x5A);
      std::vector<std::uint8_t> s(static_cast<std::size_t>(fit) * per_row, 0x5A);
      for (std::size_t i = 0; i < n; ++i) {
        const QuantisedRow& row = want.rows[i].quantised;
        std::copy_n(row.bits.begin(), row_bytes, q.begin() + static_cast<std::ptrdiff_t>(i * row_bytes));
        std::copy_n(row.scales.begin(), per_row, s.begin() + static_cast<std::ptrdiff_t>(i * per_row));
      }
      EXPECT_TRUE(bytes_of_all(rows, shape.quantised.to == ACL_INT32 ? 4 : 1) == q)
          << describe() << ": expandXOut of rank " << me;
      if (scales == nullptr) return;
      EXPECT_EQ(bytes_of_all(*scales, scale_bytes), s) << describe() << ": dynamicScalesOut of rank " << me;
      EXPECT_TRUE(scales->gaps_untouched());
      return;
    }
    std::vector<std::uint16_t> bits(static_cast<std::size_t>(fit) * width, 0x5A5A);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t h = 0; h < width; ++h)
        bits[i * width + h] = ranks[static_cast<std::size_t>(want.rows[i].source)]
                                  .x[static_cast<std::size_t>(want.rows[i].token) * width + h]
                                  .bits;
    EXPECT_TRUE(rows.values<std::uint16_t>() == bits) << describe() << ": expandXOut of rank " << me;
  }

  void check_labels(int me, const Received<T>& want, std::int64_t fit, const Tensor& assist,
                    const Tensor& nums, const Tensor& counts, const std::optional<Tensor>& expand_scales,
                    std::int64_t nums_type) const {
    const bool indices = options.indices || shape.first_version;
    std::vector<std::int32_t> triples(assist.values<std::int32_t>().size(), 0x5A5A5A5A);
    if (indices) fill_indices(me, triples);
    std::vector<std::uint32_t> weights(static_cast<std::size_t>(fit), 0x5A5A5A5Au);
    for (std::size_t i = 0; i < want.rows.size(); ++i) {
      weights[i] = bits_of(want.rows[i].weight);
      if (indices) continue;
      triples[3 * i] = want.rows[i].source;
      triples[3 * i + 1] = want.rows[i].token;
      triples[3 * i + 2] = want.rows[i].slot;
    }
    EXPECT_TRUE(assist.values<std::int32_t>() == triples)
        << describe() << ": assistInfoForCombineOut of rank " << me;
    if (expand_scales) {
      EXPECT_EQ(expand_scales->values<std::uint32_t>(), weights)
          << describe() << ": expandScalesOut of rank " << me;
    }
    std::vector<std::int32_t> sums;
    if (!options.split) sums.assign(want.sums.begin(), want.sums.end());  // else there is no such output
    sums.resize(counts.values<std::int32_t>().size(), 0x5A5A5A5A);
    EXPECT_EQ(counts.values<std::int32_t>(), sums) << describe() << ": epRecvCountsOut of rank " << me;
    std::vector<std::int64_t> per_expert(want.rows_of_expert.begin(), want.rows_of_expert.end());
    if (nums_type == 0) std::partial_sum(per_expert.begin(), per_expert.end(), per_expert.begin());
    per_expert.resize(nums.values<std::int64_t>().size(), 0x5A5A5A5A5A5A5A5A);
    EXPECT_EQ(nums.values<std::int64_t>(), per_expert) << describe() << ": expertTokenNumsOut of rank " << me;
  }

  // Per slot of an active token: its number among the slots that this rank sends to the same expert.
  void fill_indices(int me, std::vector<std::int32_t>& indices) const {
    const EpRank<T>& mine = ranks[static_cast<std::size_t>(me)];
    std::vector<int> sent(static_cast<std::size_t>(shape.experts));
    for (int t = 0; t < mine.bs; ++t) {
      if (mine.mask_dims == 1 && !mine.token_active(t, shape.topk)) break;
      for (int k = 0; k < shape.topk; ++k) {
        const int id = mine.ids[static_cast<std::size_t>(t * shape.topk + k)];
        const bool is_sent = id < shape.experts && mine.slot_active(t, k, shape.topk);
        indices[static_cast<std::size_t>(t * shape.topk + k)] =
            is_sent ? sent[static_cast<std::size_t>(id)]++ : 0;
      }
    }
  }

  void check_sums(int me, const Tensor& out) const {
    const EpRank<T>& mine = ranks[static_cast<std::size_t>(me)];
    const std::vector<std::uint16_t> got = out.values<std::uint16_t>();
    const std::size_t width = static_cast<std::size_t>(shape.hidden);
    for (int t = 0; t < mine.bs; ++t) {
      if (!mine.token_active(t, shape.topk)) {
        for (std::size_t h = 0; h < width; ++h)
          EXPECT_EQ(got[static_cast<std::size_t>(t) * width + h], 0x5A5A)
              << describe() << ": inactive token " << t;
        continue;
      }
      const std::vector<T> want =
          reference_combine(shape, mine, constants, t, weighted, [&](int slot) -> const Sent& {
            const auto [rank, row] = place_.at({me, t, slot});
            return sent_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(row)];
          });
      for (std::size_t h = 0; h < width; ++h) {
        const T value = T::raw(got[static_cast<std::size_t>(t) * width + h]);
        if (value == want[h]) continue;
        // The order of the sums in a constant expert's gate is free.
        const float bound = names_constant(mine, t) ? 0.01f * (1 + std::fabs(widen(want[h]))) : 0.0f;
        ASSERT_LE(std::fabs(widen(value) - widen(want[h])), bound)
            << describe() << ": xOut[t " << t << ", h " << h << "] of rank " << me;
      }
    }
  }
  bool names_constant(const EpRank<T>& rank, int t) const {
    for (int k = 0; k < shape.topk; ++k)
      if (rank.ids[static_cast<std::size_t>(t * shape.topk + k)] >=
          shape.first_special() + shape.zero + shape.copy)
        return true;
    return false;
  }

  mutable std::mt19937 random_;
  const std::uint32_t seed_;
  std::vector<Received<T>> received_;
  std::vector<std::vector<Row>> results_;
  std::vector<std::vector<Sent>> sent_;
  std::map<std::tuple<int, int, int>, std::pair<int, int>> place_;
};

}  // namespace oracle
