// Moeyard. SPDX-License-Identifier: Apache-2.0
// Permute and unpermute against PyTorch on as many threads: Megatron's formulation (sort the map, gather rows and weights;
// multiply rows, scatter them to sums), and the gathering of rows alone.
#include <torch/torch.h>

#include <cmath>
#include <cstring>

#include "base/parallel.h"
#include "bench/permute/scenario.h"

namespace bench::permute {
namespace {

Ours& ours() {
  static Ours one;
  return one;
}

torch::Tensor wrap(const DeviceTensor& tensor, at::IntArrayRef shape, at::ScalarType type) {
  return torch::from_blob(tensor.data<void>(), shape, type);
}

class Torch {
 public:
  Torch()
      : tokens_(wrap(ours().tokens, {kTokens, kHidden}, at::kBFloat16)),
        map_(wrap(ours().map, {kTokens, kExperts}, at::kBool)),
        probs_(wrap(ours().probs, {kTokens, kExperts}, at::kBFloat16)) {
    torch::set_num_threads(moeyard::parallel_threads());
    rows_of_slots_ =
        torch::from_blob(const_cast<std::int32_t*>(scenario().row_of_slot.data()), {kRows}, at::kInt)
            .to(at::kLong);
    tokens_of_rows_ =
        torch::from_blob(const_cast<std::int32_t*>(scenario().token_of_row.data()), {kRows}, at::kInt)
            .to(at::kLong);
  }

  void permute() {
    const torch::NoGradGuard no_grad;
    const auto flat = map_.t().contiguous().view({-1}).to(at::kChar);
    order_ = flat.argsort(/*stable=*/true, /*dim=*/0, /*descending=*/true).slice(0, 0, kRows);
    sorted_ = order_.remainder(kTokens);
    rows = tokens_.index_select(0, sorted_);
    row_probs = probs_.t().contiguous().view({-1}).index_select(0, order_);
  }
  void unpermute() {
    const torch::NoGradGuard no_grad;
    const auto weighted = rows * row_probs.unsqueeze(-1);
    sums = torch::zeros({kTokens, kHidden}, at::kBFloat16);
    sums.scatter_add_(0, sorted_.unsqueeze(1).expand({kRows, kHidden}), weighted);
  }
  void select_tokens() {
    const torch::NoGradGuard no_grad;
    selected = tokens_.index_select(0, tokens_of_rows_);
  }
  void select_rows() {
    const torch::NoGradGuard no_grad;
    selected = rows.index_select(0, rows_of_slots_);
  }
  torch::Tensor rows, row_probs, sums, selected;

 private:
  torch::Tensor tokens_, map_, probs_, order_, sorted_, rows_of_slots_, tokens_of_rows_;
};

Torch& rival() {
  static Torch one;
  return one;
}

constexpr double kBytes = static_cast<double>((kTokens + kRows) * kRowBytes);

bool permute_agrees() {
  ours().permute(), rival().permute();
  return std::memcmp(ours().rows.data<char>(), rival().rows.data_ptr(), kRows * kRowBytes) == 0;
}
// Torch adds up in BF16: each of 8 additions rounds to 8 bits.
bool unpermute_agrees() {
  ours().unpermute(), rival().unpermute();
  const auto own = wrap(ours().out, {kTokens, kHidden}, at::kBFloat16).to(at::kFloat);
  return (own - rival().sums.to(at::kFloat)).abs().max().item<float>() < 0.5f;
}

void race_permute(benchmark::State& state, bool bare) {
  if (!permute_agrees()) return state.SkipWithError("other rows than torch's");
  race(
      state, kBytes, "GB/s", [] { ours().permute(); },
      [bare] { bare ? rival().select_tokens() : rival().permute(); });
}
void race_unpermute(benchmark::State& state, bool bare) {
  if (!permute_agrees() || !unpermute_agrees()) return state.SkipWithError("other sums than torch's");
  race(
      state, kBytes, "GB/s", [] { ours().unpermute(); },
      [bare] { bare ? rival().select_rows() : rival().unpermute(); });
}

[[maybe_unused]] const bool registered = [] {
  for (const bool bare : {false, true}) {
    const std::string against = bare ? "/against_index_select" : "/against_megatron";
    benchmark::RegisterBenchmark(("permute" + against).c_str(), race_permute, bare)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("unpermute" + against).c_str(), race_unpermute, bare)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace bench::permute
