// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnGroupedMatmulV4 of INT8: sums are exact, every step to the result is one fp32 operation, so results match bit for
// bit unless an activation lies between.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "aclnnop/aclnn_grouped_matmul_v4.h"
#include "support/device.h"

namespace oracle {
namespace {

enum class ActType : std::int64_t { none, relu, gelu_tanh, fast_gelu = 4, silu };

// How results come about: the rows of CANN's table.
struct Mode {
  aclDataType scale = ACL_DT_UNDEFINED;  // none
  aclDataType bias = ACL_DT_UNDEFINED;
  bool per_token = false;
  ActType act = ActType::none;
};

struct Case {
  std::vector<std::int64_t> sizes;
  std::int64_t uncovered = 0, depth = 0, columns = 0;
  Mode mode;
  std::int64_t list_type = 0;
  Layout x = Layout::dense, weight = Layout::dense, out = Layout::dense;
  bool extreme = false;  // -128 everywhere
};

template <class Out>
class Call {
 public:
  Call(const Case& c, unsigned seed) : c_(c), random_(seed) {
    const auto groups = static_cast<std::int64_t>(c.sizes.size());
    rows_ = std::accumulate(c.sizes.begin(), c.sizes.end(), c.uncovered);
    x_ = bytes(rows_ * c.depth), w_ = bytes(groups * c.depth * c.columns);
    for (std::int64_t i = 0; i < groups * c.columns; ++i) {
      scales_.push_back(widen(B16(0.0005f + 0.00001f * static_cast<float>(random_() % 100))));
      offsets_.push_back(static_cast<std::int32_t>(random_() % 40) - 20);
      integer_biases_.push_back(static_cast<std::int32_t>(random_() % 4001) - 2000);
      biases_.push_back(widen(B16(static_cast<float>(random_() % 100) * 0.05f - 2.5f)));
    }
    for (std::int64_t r = 0; r < rows_; ++r)
      row_scales_.push_back(0.25f + static_cast<float>(random_() % 64) * 0.05f);
    make_tensors(groups);
  }

  int run(const Device& device) {
    return oracle::run(
        [this](auto* size, auto** executor) {
          return aclnnGroupedMatmulV4GetWorkspaceSize(x, weight, bias, scale, nullptr, nullptr, nullptr,
                                                      per_token, *list, nullptr, nullptr, nullptr, 3, 0,
                                                      c_.list_type, static_cast<std::int64_t>(c_.mode.act),
                                                      out, nullptr, nullptr, size, executor);
        },
        aclnnGroupedMatmulV4, device);
  }

  void expect_right() const {
    EXPECT_TRUE(out[0].gaps_untouched());
    const std::vector<Out> got = out[0].template values<Out>();
    std::int64_t row = 0;
    for (const std::size_t g : order_)
      for (std::int64_t end = row + c_.sizes[g]; row < end; ++row)
        for (std::int64_t n = 0; n < c_.columns; ++n)
          expect_element(static_cast<std::int64_t>(g), row, n,
                         got[static_cast<std::size_t>(row * c_.columns + n)]);
    const std::vector<char> sentinel(sizeof(Out), Tensor::kSentinel);
    for (auto i = static_cast<std::size_t>(row * c_.columns); i < got.size(); ++i)
      ASSERT_EQ(std::memcmp(&got[i], sentinel.data(), sizeof(Out)), 0) << "an uncovered row is written";
  }

  TensorList x, weight, bias, scale, per_token, out;
  std::optional<Tensor> list;

 private:
  std::vector<std::int8_t> bytes(std::int64_t n) {
    std::vector<std::int8_t> all;
    for (std::int64_t i = 0; i < n; ++i)
      all.push_back(c_.extreme ? std::int8_t{-128}
                               : static_cast<std::int8_t>(static_cast<int>(random_() % 256) - 128));
    return all;
  }

  void make_tensors(std::int64_t groups) {
    x = list_of(Tensor::of<std::int8_t>({rows_, c_.depth}, x_, c_.x));
    weight = list_of(Tensor::of<std::int8_t>({groups, c_.depth, c_.columns}, w_, c_.weight));
    out = list_of(Tensor::empty<Out>({rows_, c_.columns}, c_.out));
    const std::vector<std::int64_t> per_column = {groups, c_.columns};
    if (c_.mode.scale == ACL_FLOAT) scale = list_of(Tensor::of<float>(per_column, scales_, c_.x));
    if (c_.mode.scale == ACL_BF16) scale = list_of(Tensor::of<B16>(per_column, halves(scales_), c_.x));
    if (c_.mode.scale == ACL_UINT64) scale = list_of(Tensor::of<std::uint64_t>(per_column, packed(), c_.x));
    if (c_.mode.bias == ACL_INT32)
      bias = list_of(Tensor::of<std::int32_t>(per_column, integer_biases_, c_.x));
    if (c_.mode.bias == ACL_BF16) bias = list_of(Tensor::of<B16>(per_column, halves(biases_), c_.x));
    if (c_.mode.per_token) per_token = list_of(Tensor::of<float>({rows_}, row_scales_, c_.x));
    order_.resize(c_.sizes.size());
    std::iota(order_.begin(), order_.end(), 0);
    if (c_.list_type == 2) return make_pairs();
    std::vector<std::int64_t> entries = c_.sizes;
    if (c_.list_type == 0) std::partial_sum(entries.begin(), entries.end(), entries.begin());
    list.emplace(Tensor::of<std::int64_t>({groups}, entries));
  }

  // Groups with rows first, in any order, then the empty ones.
  void make_pairs() {
    std::shuffle(order_.begin(), order_.end(), random_);
    std::stable_partition(order_.begin(), order_.end(), [&](std::size_t g) { return c_.sizes[g] > 0; });
    std::vector<std::int64_t> pairs;
    for (const std::size_t g : order_) pairs.insert(pairs.end(), {static_cast<std::int64_t>(g), c_.sizes[g]});
    list.emplace(Tensor::of<std::int64_t>({static_cast<std::int64_t>(order_.size()), 2}, pairs));
  }

  static std::vector<B16> halves(const std::vector<float>& values) {
    std::vector<B16> all;
    for (const float value : values) all.push_back(B16(value));
    return all;
  }
  std::vector<std::uint64_t> packed() const {
    std::vector<std::uint64_t> all;
    for (std::size_t i = 0; i < scales_.size(); ++i)
      all.push_back(std::uint64_t{bits_of(scales_[i])} |
                    static_cast<std::uint64_t>(offsets_[i] & 0x1FF) << 37 | UINT64_C(1) << 46);
    return all;
  }

  void expect_element(std::int64_t g, std::int64_t row, std::int64_t n, Out got) const {
    std::int32_t sum = 0;
    for (std::int64_t k = 0; k < c_.depth; ++k)
      sum += std::int32_t{x_[static_cast<std::size_t>(row * c_.depth + k)]} *
             w_[static_cast<std::size_t>((g * c_.depth + k) * c_.columns + n)];
    const auto column = static_cast<std::size_t>(g * c_.columns + n);
    if (c_.mode.bias == ACL_INT32) sum += integer_biases_[column];
    if constexpr (std::is_same_v<Out, std::int32_t>) {
      ASSERT_EQ(got, sum) << "row " << row << " column " << n;
    } else {
      float f = static_cast<float>(sum);
      f = f * scales_[column];
      if (c_.mode.per_token) f = f * row_scales_[static_cast<std::size_t>(row)];
      if (c_.mode.bias == ACL_BF16) f = f + biases_[column];
      expect_rounded(f, column, got);
    }
  }

  void expect_rounded(float f, std::size_t column, Out got) const {
    const double v = f;
    double want = v;
    if (c_.mode.act == ActType::relu) want = std::max(v, 0.0);
    if (c_.mode.act == ActType::gelu_tanh)
      want = 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
    if (c_.mode.act == ActType::fast_gelu) want = v / (1 + std::exp(-1.702 * v));
    if (c_.mode.act == ActType::silu) want = v / (1 + std::exp(-v));
    if constexpr (std::is_same_v<Out, std::int8_t>) {
      const double shifted = std::nearbyint(v) + offsets_[column];
      ASSERT_EQ(got, std::min(std::max(shifted, -128.0), 127.0));
    } else if (c_.mode.act == ActType::none || c_.mode.act == ActType::relu) {
      ASSERT_EQ(got.bits, Out(static_cast<float>(want)).bits) << f;
    } else {
      const double rounding = std::is_same_v<Out, B16> ? 0x1p-8 : 0x1p-11;
      // Far below 0 an activation is a small difference: its error is one of v.
      ASSERT_NEAR(widen(got), want, rounding * std::fabs(want) + 1e-6 * (1 + std::fabs(v))) << f;
    }
  }

  const Case c_;
  std::mt19937 random_;
  std::int64_t rows_ = 0;
  std::vector<std::int8_t> x_, w_;
  std::vector<float> scales_, biases_, row_scales_;
  std::vector<std::int32_t> integer_biases_, offsets_;
  std::vector<std::size_t> order_;
};

class GroupedMatmulInt8Test : public testing::Test {
 protected:
  Device device;
};

Case random_case(std::mt19937& random) {
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  Case c;
  const std::int64_t groups = 1 + below(6);
  for (std::int64_t g = 0; g < groups; ++g)
    c.sizes.push_back(below(3) == 0 ? 0 : below(below(8) == 0 ? 120 : 14));
  c.uncovered = below(2) != 0 ? below(7) : 0;
  c.depth = below(9) == 0 ? 0 : 1 + below(below(3) == 0 ? 900 : 60),
  c.columns = 1 + below(below(3) == 0 ? 200 : 40);
  c.list_type = below(3);
  c.x = static_cast<Layout>(below(4)), c.weight = static_cast<Layout>(below(4)),
  c.out = static_cast<Layout>(below(4));
  return c;
}

template <class Out>
void try_modes(const Device& device, std::initializer_list<Mode> modes) {
  std::mt19937 random(seed());
  int number = 0;
  for (const Mode& mode : modes)
    for (int i = 0; i < 12; ++i) {
      SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()) + ", case " + std::to_string(number++));
      Case c = random_case(random);
      c.mode = mode;
      Call<Out> call(c, random());
      ASSERT_EQ(call.run(device), 0) << recent_message();
      call.expect_right();
      if (testing::Test::HasFatalFailure()) return;
    }
}

constexpr aclDataType kNone = ACL_DT_UNDEFINED;

TEST_F(GroupedMatmulInt8Test, ScalesToBF16) {
  try_modes<B16>(device, {{ACL_FLOAT, kNone, false, ActType::none},
                          {ACL_FLOAT, kNone, true, ActType::none},
                          {ACL_BF16, kNone, true, ActType::none},
                          {ACL_FLOAT, ACL_INT32, true, ActType::none},
                          {ACL_BF16, ACL_INT32, false, ActType::none},
                          {ACL_FLOAT, ACL_BF16, true, ActType::none},
                          {ACL_BF16, ACL_BF16, false, ActType::none}});
}

TEST_F(GroupedMatmulInt8Test, ScalesToFP16) {
  try_modes<F16>(device, {{ACL_FLOAT, kNone, false, ActType::none},
                          {ACL_FLOAT, kNone, true, ActType::none},
                          {ACL_FLOAT, ACL_INT32, true, ActType::none}});
}

TEST_F(GroupedMatmulInt8Test, Activates) {
  for (const ActType act : {ActType::relu, ActType::gelu_tanh, ActType::fast_gelu, ActType::silu}) {
    try_modes<B16>(device, {{ACL_BF16, ACL_BF16, true, act}});
    try_modes<F16>(device, {{ACL_FLOAT, ACL_INT32, true, act}});
  }
}

TEST_F(GroupedMatmulInt8Test, QuantisesToINT8WithAnOffset) {
  try_modes<std::int8_t>(
      device, {{ACL_UINT64, kNone, false, ActType::none}, {ACL_UINT64, ACL_INT32, false, ActType::none}});
}

TEST_F(GroupedMatmulInt8Test, HandsExactSumsOn) {
  try_modes<std::int32_t>(device,
                          {{kNone, kNone, false, ActType::none}, {kNone, ACL_INT32, false, ActType::none}});
}

TEST_F(GroupedMatmulInt8Test, IsExactForTheLargestProducts) {
  Case c;
  c.sizes = {7, 3}, c.depth = 5000, c.columns = 33, c.extreme = true;
  Call<std::int32_t> call(c, 1);
  ASSERT_EQ(call.run(device), 0) << recent_message();
  for (const std::int32_t sum : call.out[0].values<std::int32_t>()) ASSERT_EQ(sum, 5000 * 16384);
}

TEST_F(GroupedMatmulInt8Test, GivesTheWorkedExample) {
  const std::vector<std::int8_t> x = {10, -20, 127, 5, 3, 4},
                                 w = {1, 2, 3, 4, 5, 6, -7, 8, 2, -1, 0, 3, 1, 1, 1, -2};
  TensorList xs = list_of(Tensor::of<std::int8_t>({3, 2}, x)),
             ws = list_of(Tensor::of<std::int8_t>({2, 2, 4}, w)),
             scales = list_of(Tensor::of<float>({2, 4}, {.01f, .02f, .01f, .05f, .1f, .1f, .2f, .1f})),
             per_token = list_of(Tensor::of<float>({3}, {.5f, .25f, 2})),
             out = list_of(Tensor::empty<B16>({3, 4})), sums = list_of(Tensor::empty<std::int32_t>({3, 4}));
  Tensor list = Tensor::of<std::int64_t>({2}, {2, 3});
  const auto call = [&](const TensorList& scale, const TensorList& row_scale, const TensorList& to) {
    return run(
        [&](auto* size, auto** executor) {
          return aclnnGroupedMatmulV4GetWorkspaceSize(xs, ws, nullptr, scale, nullptr, nullptr, nullptr,
                                                      row_scale, list, nullptr, nullptr, nullptr, 3, 0, 0, 0,
                                                      to, nullptr, nullptr, size, executor);
        },
        aclnnGroupedMatmulV4, device);
  };
  ASSERT_EQ(call(TensorList(), TensorList(), sums), 0) << recent_message();
  EXPECT_EQ(sums[0].values<std::int32_t>(),
            (std::vector<std::int32_t>{-90, -100, 170, -120, 152, 284, 346, 548, 10, 1, 4, 1}));
  ASSERT_EQ(call(scales, per_token, out), 0) << recent_message();
  const std::vector<float> want = {-.44921875f, -1,       .8515625f, -3,           .380859375f, 1.421875f,
                                   .86328125f,  6.84375f, 2,         .2001953125f, 1.6015625f,  .2001953125f};
  const std::vector<B16> got = out[0].values<B16>();
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_EQ(widen(got[i]), want[i]) << i;
}

TEST_F(GroupedMatmulInt8Test, RefusesAPairThatNamesNoGroup) {
  Case c;
  c.sizes = {2, 3}, c.depth = 4, c.columns = 5, c.list_type = 2;
  Call<std::int32_t> call(c, 1);
  call.list->set<std::int64_t>({0, 2, 2, 3});
  EXPECT_EQ(call.run(device), 507015);
  EXPECT_NE(recent_message().find("groupListOptional[1][0] is 2 but must be a group in [0, 2)"),
            std::string::npos);
  for (const std::int32_t sum : call.out[0].values<std::int32_t>())
    EXPECT_EQ(sum, 0x5A5A5A5A) << "something is written";
  call.list->set<std::int64_t>({1, 2, -9, 0});  // an empty pair may name anything
  EXPECT_EQ(call.run(device), 0) << recent_message();
}

}  // namespace
}  // namespace oracle
