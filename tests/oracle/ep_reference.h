// Moeyard. SPDX-License-Identifier: Apache-2.0
// What dispatch and combine do, as their definition says it: plain loops over ranks, experts, tokens and slots.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "oracle/ep_quantise.h"
#include "support/numbers.h"

namespace oracle {

// Whose the factors in scalesOptional are.
enum class Factors { none, of_experts, of_elements, of_all };

// What all ranks agree on.
struct EpShape {
  int ranks = 1, experts = 1, topk = 1, hidden = 1;
  int shared = 0, shared_ranks = 0;
  int zero = 0, copy = 0, constant = 0;
  Quantisation quantised;
  Factors factors = Factors::none;
  int global_bs = 0;
  int comm_mode = 0;  // commQuantMode
  // Where ranks have gone: what there was before, which the attributes still say, and the former numbers of those that are
  // left. Everything else speaks of what is left.
  int ranks_before = 0, shared_ranks_before = 0, experts_before = 0;
  std::vector<int> left;

  bool first_version = false;  // which divides tokens between shared-expert ranks in its own way

  bool shrunk() const { return !left.empty(); }
  EpShape before() const {
    if (!shrunk()) return *this;
    EpShape whole = *this;
    whole.ranks = ranks_before, whole.shared_ranks = shared_ranks_before, whole.experts = experts_before;
    whole.left.clear();
    return whole;
  }
  int first_special() const { return shrunk() ? experts_before : experts; }
  // Numbers among those that are left and in the whole group; -1: has gone.
  int rank_now(int before) const {
    if (!shrunk()) return before;
    const auto found = std::find(left.begin(), left.end(), before);
    return found == left.end() ? -1 : static_cast<int>(found - left.begin());
  }
  int rank_then(int now) const { return shrunk() ? left[static_cast<std::size_t>(now)] : now; }
  std::vector<std::int32_t> elastic_info() const {
    std::vector<std::int32_t> info = {1, ranks, shared_ranks, experts};
    for (int rank = 0; rank < ranks_before; ++rank) info.push_back(rank_now(rank));
    for (int now = 0; now < ranks_before; ++now) info.push_back(now < ranks ? rank_then(now) : -1);
    return info;
  }

  std::vector<std::int64_t> shape_of_factors() const {
    if (factors == Factors::of_all) return {1};
    if (factors == Factors::of_elements) return {hidden};
    return {before().used_shared() + before().experts, hidden};
  }

  int local_experts(int rank) const { return rank < shared_ranks ? 1 : experts / (ranks - shared_ranks); }
  int used_shared() const { return shared_ranks > 0 ? shared : 0; }
  int rank_of(int expert) const { return shared_ranks + expert / (experts / (ranks - shared_ranks)); }
  int local_of(int expert) const { return expert % (experts / (ranks - shared_ranks)); }
  int shared_rank(int s, int source, int t, int bs) const {
    for (int rank = 0; first_version && source >= shared_ranks && rank < shared_ranks; ++rank)
      if ((rank + source) * bs / shared_ranks - source * bs / shared_ranks <= t &&
          t < (rank + 1 + source) * bs / shared_ranks - source * bs / shared_ranks)
        return rank;
    if (first_version) return source;
    const int group = shared_ranks / shared;
    return s * group + source % group;
  }
  int most_local_experts() const { return experts / (ranks - shared_ranks); }
  int capacity(int rank, int bs) const {
    if (shrunk()) return std::max(before().capacity(0, bs), before().capacity(ranks_before - 1, bs));
    const int all = global_bs != 0 ? global_bs : bs * ranks;
    if (rank >= shared_ranks) return all * std::min(local_experts(rank), topk);
    const int group = shared_ranks / shared;
    return all / ranks * ((ranks + group - 1) / group);
  }
};

// One rank's inputs.
template <class T>
struct EpRank {
  int bs = 0;
  std::vector<T> x;               // [bs, H]
  std::vector<std::int32_t> ids;  // [bs, K]
  int mask_dims = 0;
  std::vector<std::uint8_t> mask;                   // [bs] or [bs, K]
  std::vector<float> weights;                       // [bs, K]
  std::vector<float> factors;                       // [shared + experts, H], [H] or [1]
  std::vector<T> shared_x;                          // [bs, H]; empty: none
  std::vector<std::uint8_t> small_x, small_scales;  // tokens that are quantised already, as bytes

  bool slot_active(int t, int k, int topk) const {
    if (mask_dims == 1) return mask[static_cast<std::size_t>(t)] != 0;
    if (mask_dims == 2) return mask[static_cast<std::size_t>(t * topk + k)] != 0;
    return true;
  }
  bool token_active(int t, int topk) const {
    for (int k = 0; k < topk; ++k)
      if (slot_active(t, k, topk)) return true;
    return false;
  }
};

// A row that a rank receives.
struct ReceivedRow {
  int source, token, slot;  // slot K + s for shared expert s
  int expert;               // -1 - s for shared expert s
  float weight;
  QuantisedRow quantised;
};

template <class T>
struct Received {
  std::vector<ReceivedRow> rows;
  std::vector<int> sums;            // [L * W] inclusive
  std::vector<int> rows_of_expert;  // [L]
};

template <class T>
QuantisedRow quantise(const EpShape& shape, const EpRank<T>& from, const ReceivedRow& row) {
  if (shape.quantised.travels) {
    const std::size_t width = shape.quantised.row_bytes(shape.hidden),
                      t = static_cast<std::size_t>(row.token);
    const std::size_t scales = from.small_scales.size() / static_cast<std::size_t>(from.bs);
    const auto piece = [t](const std::vector<std::uint8_t>& all, std::size_t bytes) {
      return std::vector<std::uint8_t>(all.begin() + static_cast<std::ptrdiff_t>(t * bytes),
                                       all.begin() + static_cast<std::ptrdiff_t>((t + 1) * bytes));
    };
    return {piece(from.small_x, width), piece(from.small_scales, scales)};
  }
  const int expert = row.expert < 0 ? -1 - row.expert : shape.used_shared() + row.expert;
  std::vector<float> y;
  for (int h = 0; h < shape.hidden; ++h) {
    float value = widen(from.x[static_cast<std::size_t>(row.token * shape.hidden + h)]);
    if (shape.factors == Factors::of_experts)
      value = value * from.factors[static_cast<std::size_t>(expert * shape.hidden + h)];
    if (shape.factors == Factors::of_elements) value = value * from.factors[static_cast<std::size_t>(h)];
    if (shape.factors == Factors::of_all) value = value * from.factors[0];
    y.push_back(value);
  }
  return quantise(shape.quantised, y);
}

template <class T>
Received<T> reference_dispatch(const EpShape& shape, const std::vector<EpRank<T>>& ranks, int me) {
  Received<T> received;
  for (int local = 0; local < shape.local_experts(me); ++local) {
    received.rows_of_expert.push_back(0);
    for (int source = 0; source < shape.ranks; ++source) {
      const EpRank<T>& from = ranks[static_cast<std::size_t>(source)];
      for (int t = 0; t < from.bs; ++t) {
        const auto take = [&](int slot, int expert, float weight) {
          ReceivedRow row{source, t, slot, expert, weight, {}};
          if (!shape.quantised.plain()) row.quantised = quantise(shape, from, row);
          received.rows.push_back(std::move(row));
          ++received.rows_of_expert.back();
        };
        for (int k = 0; k < shape.topk && me >= shape.shared_ranks; ++k) {
          const int id = from.ids[static_cast<std::size_t>(t * shape.topk + k)];
          if (id < shape.experts && from.slot_active(t, k, shape.topk) && shape.rank_of(id) == me &&
              shape.local_of(id) == local)
            take(k, id, from.weights[static_cast<std::size_t>(t * shape.topk + k)]);
        }
        for (int s = 0; s < shape.used_shared(); ++s)
          if (from.token_active(t, shape.topk) && shape.shared_rank(s, source, t, from.bs) == me)
            take(shape.topk + s, -1 - s, 1.0f);
      }
      const int bs = from.bs, shared = shape.shared_ranks;
      if (shape.first_version && me < shared &&
          source < shared) {  // own tokens are said to come from all of these
        int said = source == 0 ? 0 : received.sums.back();
        said += (source + 1 + me) * bs / shared - (source + me) * bs / shared;
        received.sums.push_back(said);
        continue;
      }
      received.sums.push_back(static_cast<int>(received.rows.size()));
    }
  }
  return received;
}

// What special experts and the sum need beside the rows.
template <class T>
struct Constants {
  std::vector<T> alpha1, alpha2, v;  // [constant, H]
};

// One token of xOut. row_of(slot) is the row that the slot's expert returned, as communication leaves it.
template <class T, class RowOf>
std::vector<T> reference_combine(const EpShape& shape, const EpRank<T>& rank, const Constants<T>& constants,
                                 int t, bool weighted, RowOf&& row_of) {
  std::vector<T> out;
  const std::size_t width = static_cast<std::size_t>(shape.hidden);
  for (std::size_t h = 0; h < width; ++h) {
    float z = 0;
    const float x = widen(rank.x[static_cast<std::size_t>(t) * width + h]);
    for (int k = 0; k < shape.topk; ++k) {
      if (!rank.slot_active(t, k, shape.topk)) continue;
      const int id = rank.ids[static_cast<std::size_t>(t * shape.topk + k)];
      const float c = weighted ? rank.weights[static_cast<std::size_t>(t * shape.topk + k)] : 1.0f;
      float y;
      if (id < shape.experts) {
        y = widen(row_of(k)[h]);
      } else if (id < shape.first_special() + shape.zero) {
        continue;
      } else if (id < shape.first_special() + shape.zero + shape.copy) {
        y = x;
      } else {
        const std::size_t j = static_cast<std::size_t>(id - shape.first_special() - shape.zero - shape.copy);
        double p1 = 0, p2 = 0;
        for (std::size_t i = 0; i < width; ++i) {
          const double token = widen(rank.x[static_cast<std::size_t>(t) * width + i]);
          p1 += static_cast<double>(widen(constants.alpha1[j * width + i])) * token;
          p2 += static_cast<double>(widen(constants.alpha2[j * width + i])) * token;
        }
        const float a = static_cast<float>(p1), b = static_cast<float>(p2), most = std::fmax(a, b);
        const float ea = std::exp(a - most), eb = std::exp(b - most);
        const float own = ea / (ea + eb) * x, other = eb / (ea + eb) * widen(constants.v[j * width + h]);
        y = own + other;
      }
      const float product = c * y;
      z = z + product;
    }
    for (int s = 0; s < shape.used_shared(); ++s) z = z + widen(row_of(shape.topk + s)[h]);
    if (!rank.shared_x.empty()) z = z + widen(rank.shared_x[static_cast<std::size_t>(t) * width + h]);
    out.push_back(T(z));
  }
  return out;
}

}  // namespace oracle
