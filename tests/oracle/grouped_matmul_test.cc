// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnGroupedMatmul of floating-point types, all versions. INT8: grouped_matmul_int8_test.cc.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "aclnnop/aclnn_grouped_matmul.h"
#include "aclnnop/aclnn_grouped_matmul_v2.h"
#include "aclnnop/aclnn_grouped_matmul_v3.h"
#include "aclnnop/aclnn_grouped_matmul_v4.h"
#include "aclnnop/aclnn_grouped_matmul_v5.h"
#include "support/device.h"

namespace oracle {
namespace {

using Sizes = std::vector<std::int64_t>;

// The forms of CANN's table, by how many tensors x, weight and out are.
enum class Form { separate, one_each, weights, lists_to_one, one_to_lists, depth, depth_to_lists };
constexpr Form kForms[] = {Form::separate,     Form::one_each, Form::weights,       Form::lists_to_one,
                           Form::one_to_lists, Form::depth,    Form::depth_to_lists};

struct Case {
  Form form = Form::one_each;
  Sizes sizes;                       // of the groups: rows, or values of k
  std::int64_t uncovered = 0;        // rows (values of k) after the last group
  std::int64_t rows = 0, depth = 0;  // of the axis that the groups do not cut
  Sizes columns;                     // of each group
  bool bias = false;
  std::int64_t list_type = 0;
  Layout x = Layout::dense, weight = Layout::dense, out = Layout::dense;

  std::size_t groups() const { return sizes.size(); }
  bool along_depth() const { return form == Form::depth || form == Form::depth_to_lists; }
  std::int64_t cut() const { return std::accumulate(sizes.begin(), sizes.end(), uncovered); }
};

// A matrix of plain numbers.
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<float> values;
  float& at(std::int64_t r, std::int64_t c) { return values[static_cast<std::size_t>(r * columns + c)]; }
  float at(std::int64_t r, std::int64_t c) const { return values[static_cast<std::size_t>(r * columns + c)]; }
};

template <class T>
Matrix draw(std::int64_t rows, std::int64_t columns, std::mt19937& random) {
  std::normal_distribution<float> normal;
  Matrix made{rows, columns, {}};
  for (std::int64_t i = 0; i < rows * columns; ++i) made.values.push_back(widen(T(normal(random))));
  return made;
}

template <class T>
std::vector<T> narrowed(const std::vector<float>& values) {
  std::vector<T> all;
  for (const float value : values) all.push_back(T(value));
  return all;
}

template <class T>
Tensor tensor_of(const Matrix& matrix, Layout layout) {
  return Tensor::of<T>({matrix.rows, matrix.columns}, narrowed<T>(matrix.values), layout);
}

// x, the groups' weights and biases as numbers, and the same as tensors of the form.
template <class T, class Bias>
class Call {
 public:
  Call(const Case& c, unsigned seed) : c_(c) {
    std::mt19937 random(seed);
    const std::int64_t rows = c.along_depth() ? c.rows : c.cut(), depth = c.along_depth() ? c.cut() : c.depth;
    x_ = draw<T>(rows, depth, random);
    for (std::size_t g = 0; g < c.groups(); ++g) {
      weights_.push_back(draw<T>(c.along_depth() ? c.sizes[g] : c.depth, c.columns[g], random));
      biases_.push_back(draw<Bias>(1, c.columns[g], random));
    }
    make_tensors();
  }

  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    const std::int64_t split = out_list_ ? 0 : 3;
    const std::int64_t type = c_.form == Form::separate ? -1 : c_.along_depth() ? 2 : 0;
    return aclnnGroupedMatmulV4GetWorkspaceSize(x, weight, bias, nullptr, nullptr, nullptr, nullptr, nullptr,
                                                handle(list), nullptr, nullptr, nullptr, split, type,
                                                c_.list_type, 0, out, nullptr, nullptr, size, executor);
  }
  int run(const Device& device) {
    return oracle::run([this](auto* size, auto** executor) { return phase_one(size, executor); },
                       aclnnGroupedMatmulV4, device);
  }

  // Every element of out: the product up to the rounding of K additions and of the result, or untouched.
  void expect_right() {
    for (std::size_t i = 0; i < out.size(); ++i) EXPECT_TRUE(out[i].gaps_untouched());
    std::int64_t begin = 0;
    for (std::size_t g = 0; g < c_.groups(); ++g) {
      const std::int64_t size = c_.sizes[g];
      const std::int64_t first_row = c_.along_depth() ? 0 : begin, rows = c_.along_depth() ? c_.rows : size;
      const std::int64_t first_k = c_.along_depth() ? begin : 0;
      const std::vector<T> got = out[out_list_ ? g : 0].template values<T>();
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t n = 0; n < c_.columns[g]; ++n) {
          double want = 0, magnitude = 0;
          for (std::int64_t k = 0; k < weights_[g].rows; ++k) {
            const double term = double{x_.at(first_row + r, first_k + k)} * double{weights_[g].at(k, n)};
            want += term, magnitude += std::fabs(term);
          }
          if (c_.bias) want += biases_[g].at(0, n), magnitude += std::fabs(biases_[g].at(0, n));
          const std::int64_t row = out_list_                ? r
                                   : c_.form == Form::depth ? static_cast<std::int64_t>(g) * c_.rows + r
                                                            : begin + r;
          const double rounding = sizeof(T) == 4 ? 0x1p-24 : std::is_same_v<T, B16> ? 0x1p-8 : 0x1p-11;
          const double bound = rounding * std::fabs(want) +
                               static_cast<double>(weights_[g].rows + 1) * 0x1p-24 * magnitude + 6e-8;
          ASSERT_NEAR(widen(got[static_cast<std::size_t>(row * c_.columns[g] + n)]), want, bound)
              << "group " << g << " row " << r << " column " << n;
        }
      begin += size;
    }
    if (c_.along_depth() || out_list_) return;
    const std::vector<T> all = out[0].template values<T>();
    for (std::int64_t i = begin * c_.columns[0]; i < static_cast<std::int64_t>(all.size()); ++i) {
      const std::vector<char> sentinel(sizeof(T), Tensor::kSentinel);
      ASSERT_EQ(std::memcmp(&all[static_cast<std::size_t>(i)], sentinel.data(), sizeof(T)), 0)
          << "an uncovered row is written";
    }
  }

  std::vector<std::vector<T>> results() const {
    std::vector<std::vector<T>> all;
    for (std::size_t i = 0; i < out.size(); ++i) all.push_back(out[i].template values<T>());
    return all;
  }

  TensorList x, weight, bias, out;
  std::optional<Tensor> list;

 private:
  void make_tensors() {
    const Form form = c_.form;
    out_list_ = form == Form::separate || form == Form::one_to_lists || form == Form::depth_to_lists;
    const bool x_list = form == Form::separate || form == Form::lists_to_one;
    std::vector<Tensor> xs, ws, bs, outs;
    std::int64_t begin = 0;
    for (std::size_t g = 0; g < c_.groups(); ++g) {
      if (x_list) {
        Matrix part{c_.sizes[g], c_.depth, {}};
        part.values.assign(x_.values.begin() + begin * c_.depth,
                           x_.values.begin() + (begin + c_.sizes[g]) * c_.depth);
        xs.push_back(tensor_of<T>(part, c_.x));
      }
      if (form != Form::one_each && form != Form::depth) {
        ws.push_back(tensor_of<T>(weights_[g], c_.weight));
        bs.push_back(Tensor::of<Bias>({c_.columns[g]}, narrowed<Bias>(biases_[g].values)));
      }
      if (out_list_)
        outs.push_back(Tensor::empty<T>({c_.along_depth() ? c_.rows : c_.sizes[g], c_.columns[g]}, c_.out));
      begin += c_.sizes[g];
    }
    if (!x_list) xs.push_back(tensor_of<T>(x_, c_.x));
    const auto groups = static_cast<std::int64_t>(c_.groups());
    if (form == Form::one_each) {
      std::vector<float> all, all_biases;
      for (const Matrix& w : weights_) all.insert(all.end(), w.values.begin(), w.values.end());
      for (const Matrix& b : biases_) all_biases.insert(all_biases.end(), b.values.begin(), b.values.end());
      ws.push_back(Tensor::of<T>({groups, c_.depth, c_.columns[0]}, narrowed<T>(all), c_.weight));
      bs.push_back(Tensor::of<Bias>({groups, c_.columns[0]}, narrowed<Bias>(all_biases)));
    }
    if (form == Form::depth) {
      Matrix all{c_.cut(), c_.columns[0], {}};
      for (const Matrix& w : weights_) all.values.insert(all.values.end(), w.values.begin(), w.values.end());
      all.values.resize(static_cast<std::size_t>(all.rows * all.columns), 9.0f);
      ws.push_back(tensor_of<T>(all, c_.weight));
      outs.push_back(Tensor::empty<T>({groups, c_.rows, c_.columns[0]}, c_.out));
    } else if (!out_list_) {
      outs.push_back(Tensor::empty<T>({c_.cut(), c_.columns[0]}, c_.out));
    }
    x = TensorList(std::move(xs)), weight = TensorList(std::move(ws)), out = TensorList(std::move(outs));
    if (c_.bias) bias = TensorList(std::move(bs));
    if (form == Form::separate || form == Form::depth_to_lists) return;
    Sizes entries = c_.sizes;
    if (c_.list_type == 0) std::partial_sum(entries.begin(), entries.end(), entries.begin());
    list.emplace(Tensor::of<std::int64_t>({groups}, entries));
  }

  const Case c_;
  Matrix x_;
  std::vector<Matrix> weights_, biases_;
  bool out_list_ = false;
};

class GroupedMatmulTest : public testing::Test {
 protected:
  Device device;
};

Case random_case(Form form, std::mt19937& random) {
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  Case c;
  c.form = form;
  const std::int64_t groups = 1 + below(6);
  const std::int64_t most = below(8) == 0 ? 230 : 20;  // over several tiles, or inside one
  for (std::int64_t g = 0; g < groups; ++g) c.sizes.push_back(below(3) == 0 ? 0 : below(most));
  if (below(4) == 0) std::fill(c.sizes.begin() + 1, c.sizes.end(), 0);  // one expert gets all
  const bool may_leave_rows = form == Form::one_each || form == Form::weights || form == Form::depth;
  c.uncovered = may_leave_rows && below(2) != 0 ? below(9) : 0;
  c.rows = below(9) == 0 ? 0 : 1 + below(70),
  c.depth = below(9) == 0 ? 0 : 1 + below(below(4) == 0 ? 600 : 40);
  const std::int64_t columns = 1 + below(below(3) == 0 ? 300 : 40);
  const bool widths_differ = form == Form::separate || form == Form::one_to_lists;
  for (std::int64_t g = 0; g < groups; ++g) c.columns.push_back(widths_differ ? 1 + below(50) : columns);
  c.bias = !c.along_depth() && below(2) != 0;
  c.list_type = below(2);
  c.x = static_cast<Layout>(below(4)), c.weight = static_cast<Layout>(below(4)),
  c.out = static_cast<Layout>(below(4));
  return c;
}

template <class T, class Bias>
void try_random_cases(const Device& device) {
  std::mt19937 random(seed());
  for (const Form form : kForms)
    for (int i = 0; i < 30; ++i) {
      SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()) + ", form " +
                   std::to_string(static_cast<int>(form)) + ", case " + std::to_string(i));
      Call<T, Bias> call(random_case(form, random), random());
      ASSERT_EQ(call.run(device), 0) << recent_message();
      call.expect_right();
      if (testing::Test::HasFatalFailure()) return;
    }
}

TEST_F(GroupedMatmulTest, MultipliesFP32) { try_random_cases<float, float>(device); }
TEST_F(GroupedMatmulTest, MultipliesFP16) { try_random_cases<F16, F16>(device); }
TEST_F(GroupedMatmulTest, MultipliesFP16WithAWideBias) { try_random_cases<F16, float>(device); }
TEST_F(GroupedMatmulTest, MultipliesBF16) { try_random_cases<B16, float>(device); }
TEST_F(GroupedMatmulTest, MultipliesBF16WithANarrowBias) { try_random_cases<B16, B16>(device); }

constexpr std::int64_t kTwo = 2;
const std::vector<float> kExampleX = {1, 2, 3, -4, 5, 6};
const std::vector<float> kExampleWeights = {1, 0, 2, 0, 1, -1, 2, 1, 0, 1, 1, 1};

std::vector<float> run_example(const Device& device, std::int64_t list_type,
                               std::vector<std::int64_t> entries) {
  TensorList x = list_of(Tensor::of<float>({3, 2}, kExampleX)),
             weight = list_of(Tensor::of<float>({2, 2, 3}, kExampleWeights)),
             out = list_of(Tensor::empty<float>({3, 3}));
  Tensor list = Tensor::of<std::int64_t>({kTwo}, entries);
  const int code = run(
      [&](auto* size, auto** executor) {
        return aclnnGroupedMatmulV5GetWorkspaceSize(x, weight, nullptr, nullptr, nullptr, nullptr, nullptr,
                                                    nullptr, list, nullptr, nullptr, nullptr, 3, 0, list_type,
                                                    0, nullptr, out, nullptr, nullptr, size, executor);
      },
      aclnnGroupedMatmulV5, device);
  EXPECT_EQ(code, 0) << recent_message();
  return out[0].values<float>();
}

TEST_F(GroupedMatmulTest, GivesTheWorkedExample) {
  EXPECT_EQ(run_example(device, 0, {2, 3}), (std::vector<float>{1, 2, 0, 3, -4, 10, 16, 11, 6}));
  EXPECT_EQ(run_example(device, 0, {1, 3}), (std::vector<float>{1, 2, 0, 2, -1, -4, 16, 11, 6}));
  EXPECT_EQ(run_example(device, 1, {1, 2}), (std::vector<float>{1, 2, 0, 2, -1, -4, 16, 11, 6}));
}

TEST_F(GroupedMatmulTest, CutsOffWhatPointsOutside) {
  const std::vector<float> all_in_second = {4, 3, 2, 2, -1, -4, 16, 11, 6};
  EXPECT_EQ(run_example(device, 0, {-5, 99}), all_in_second);
  EXPECT_EQ(run_example(device, 1, {-5, INT64_MAX}), all_in_second);
  const std::vector<float> all_in_first = {1, 2, 0, 3, -4, 10, 5, 6, 4};
  EXPECT_EQ(run_example(device, 0, {INT64_MAX, 2}), all_in_first);
  EXPECT_EQ(run_example(device, 1, {3, INT64_MAX}), all_in_first);
  EXPECT_EQ(run_example(device, 0, {INT64_MIN, INT64_MAX}), all_in_second);
}

TEST_F(GroupedMatmulTest, GivesTheWorkedExampleAlongK) {
  Tensor memory = Tensor::of<float>({2, 3}, {1, 3, 5, 2, 4, 6}, Layout::transposed);
  TensorList x = list_of(std::move(memory)), weight = list_of(Tensor::of<float>({3, 2}, {1, 0, 0, 1, 2, 2})),
             out = list_of(Tensor::empty<float>({2, 2, 2}));
  Tensor list = Tensor::of<std::int64_t>({2}, {2, 3});
  const int code = run(
      [&](auto* size, auto** executor) {
        return aclnnGroupedMatmulV4GetWorkspaceSize(x, weight, nullptr, nullptr, nullptr, nullptr, nullptr,
                                                    nullptr, list, nullptr, nullptr, nullptr, 2, 2, 0, 0, out,
                                                    nullptr, nullptr, size, executor);
      },
      aclnnGroupedMatmulV4, device);
  ASSERT_EQ(code, 0) << recent_message();
  EXPECT_EQ(out[0].values<float>(), (std::vector<float>{1, 3, 2, 4, 10, 10, 12, 12}));
}

TEST_F(GroupedMatmulTest, GivesEarlierVersionsTheSameResult) {
  const std::vector<float> want = {1, 2, 0, 3, -4, 10, 16, 11, 6};
  const Sizes ends = {2, 3};
  aclIntArray* host_list = aclCreateIntArray(ends.data(), ends.size());
  Tensor list = Tensor::of<std::int64_t>({2}, ends);
  for (int version = 1; version <= 3; ++version) {
    SCOPED_TRACE(version);
    TensorList x = list_of(Tensor::of<float>({3, 2}, kExampleX)),
               weight = list_of(Tensor::of<float>({2, 2, 3}, kExampleWeights)),
               out = list_of(Tensor::empty<float>({3, 3}));
    constexpr PhaseTwo kPhaseTwo[] = {aclnnGroupedMatmul, aclnnGroupedMatmulV2, aclnnGroupedMatmulV3};
    const int code = run(
        [&](auto* size, auto** executor) {
          if (version == 1)
            return aclnnGroupedMatmulGetWorkspaceSize(x, weight, nullptr, nullptr, nullptr, nullptr, nullptr,
                                                      host_list, 2, out, size, executor);
          if (version == 2)
            return aclnnGroupedMatmulV2GetWorkspaceSize(x, weight, nullptr, nullptr, nullptr, nullptr,
                                                        nullptr, host_list, 2, 0, out, size, executor);
          return aclnnGroupedMatmulV3GetWorkspaceSize(x, weight, nullptr, nullptr, nullptr, nullptr, nullptr,
                                                      list, 2, 0, out, size, executor);
        },
        kPhaseTwo[version - 1], device);
    ASSERT_EQ(code, 0) << recent_message();
    EXPECT_EQ(out[0].values<float>(), want);
  }
  aclDestroyIntArray(host_list);
}

TEST_F(GroupedMatmulTest, TakesSeparateRowsOfUpToSixDimensions) {
  std::vector<float> values(2 * 3 * 2 * 4), weights = {1, 0, 0, 1, 1, 1, 2, -1};
  std::iota(values.begin(), values.end(), 0.0f);
  for (const Layout layout : {Layout::dense, Layout::padded_rows, Layout::transposed}) {
    TensorList x = list_of(Tensor::of<float>({2, 1, 3, 2, 4}, values, layout)),
               weight = list_of(Tensor::of<float>({4, 2}, weights)),
               out = list_of(Tensor::empty<float>({2, 1, 3, 2, 2}, layout));
    const int code = run(
        [&](auto* size, auto** executor) {
          return aclnnGroupedMatmulGetWorkspaceSize(x, weight, nullptr, nullptr, nullptr, nullptr, nullptr,
                                                    nullptr, 0, out, size, executor);
        },
        aclnnGroupedMatmul, device);
    ASSERT_EQ(code, 0) << recent_message();
    std::vector<float> want;
    for (std::size_t r = 0; r < values.size(); r += 4) {
      want.push_back(values[r] + values[r + 2] + 2 * values[r + 3]);
      want.push_back(values[r + 1] + values[r + 2] - values[r + 3]);
    }
    EXPECT_EQ(out[0].values<float>(), want);
  }
}

TEST_F(GroupedMatmulTest, GivesCumulativeAndCountedListsTheSameBits) {
  std::mt19937 random(seed());
  for (int i = 0; i < 10; ++i) {
    Case c = random_case(Form::one_each, random);
    const unsigned data = random();
    c.list_type = 0;
    Call<B16, float> ends(c, data);
    c.list_type = 1;
    Call<B16, float> counts(c, data);
    ASSERT_EQ(ends.run(device), 0) << recent_message();
    ASSERT_EQ(counts.run(device), 0) << recent_message();
    EXPECT_EQ(ends.results(), counts.results());
  }
}

TEST_F(GroupedMatmulTest, GivesARowTheSameBitsInEveryFormAndLayout) {
  std::mt19937 random(seed());
  for (int i = 0; i < 10; ++i) {
    Case c = random_case(Form::one_each, random);
    c.uncovered = 0;
    const unsigned data = random();
    Call<B16, float> whole(c, data);
    ASSERT_EQ(whole.run(device), 0) << recent_message();
    for (const Form form : {Form::weights, Form::lists_to_one, Form::one_to_lists, Form::separate}) {
      c.form = form;
      c.x = static_cast<Layout>(random() % 4), c.weight = static_cast<Layout>(random() % 4);
      Call<B16, float> other(c, data);
      ASSERT_EQ(other.run(device), 0) << recent_message();
      std::vector<B16> joined;
      for (const auto& part : other.results()) joined.insert(joined.end(), part.begin(), part.end());
      EXPECT_EQ(joined, whole.results()[0]) << "form " << static_cast<int>(form);
    }
  }
}

TEST_F(GroupedMatmulTest, FailsTheStreamWhereTheListDisagreesWithTheTensors) {
  for (const Form form : {Form::lists_to_one, Form::one_to_lists}) {
    Case c;
    c.form = form, c.sizes = {2, 3}, c.depth = 4, c.columns = {5, 5}, c.list_type = 1;
    Call<float, float> call(c, 1);
    call.list->set<std::int64_t>({3, 2});
    EXPECT_EQ(call.run(device), 507015);
    EXPECT_NE(recent_message().find("groupListOptional gives group 0 3 rows but its tensor has 2"),
              std::string::npos)
        << recent_message();
    for (const auto& part : call.results())
      for (const float value : part) EXPECT_EQ(bits_of(value), 0x5A5A5A5Au) << "something is written";
  }
}

}  // namespace
}  // namespace oracle
