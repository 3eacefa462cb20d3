// Moeyard. SPDX-License-Identifier: Apache-2.0
// ATB's operations on places of elements and on dimensions: Sort, Onehot, IndexAdd, ScatterElementsV2, Reduce, Cumsum.
#include <cmath>
#include <limits>

#include "support/atb.h"

namespace oracle {
namespace {

namespace infer = atb::infer;
using testing::HasSubstr;
using Ints = std::vector<std::int32_t>;
using Longs = std::vector<std::int64_t>;

class AtbIndexingTest : public testing::Test {
 protected:
  // The code of a run whose outputs are as InferShape says; the first one keeps its bytes if data is wrong.
  template <class Param>
  int run(const Param& param, const std::vector<const AtbTensor*>& inputs) {
    const OperationPtr operation(make(param));
    atb::SVector<atb::TensorDesc> in, out;
    for (const AtbTensor* tensor : inputs) in.push_back(tensor->desc());
    EXPECT_EQ(operation->InferShape(in, out), 0) << recent_message();
    std::vector<AtbTensor> made;
    std::vector<const AtbTensor*> handles;
    for (const atb::TensorDesc& desc : out) made.emplace_back(desc);
    for (const AtbTensor& tensor : made) handles.push_back(&tensor);
    const std::vector<char> before = made[0].values<char>();
    const int code = atb.run(*operation, Atb::pack(inputs, handles));
    EXPECT_EQ(made[0].values<char>(), before) << "nothing is written";
    return code;
  }

  Atb atb;
  std::mt19937 random{seed()};
};

template <class T>
void check_sort(const Atb& atb, std::mt19937& random) {
  for (int round = 0; round < 10; ++round) {
    const auto rows = static_cast<std::int64_t>(1 + random() % 9),
               n = static_cast<std::int64_t>(1 + random() % 70);
    const auto kept = static_cast<std::int64_t>(1 + random() % static_cast<unsigned>(n));
    std::vector<T> x;
    for (std::int64_t i = 0; i < rows * n; ++i)
      x.push_back(random() % 20 == 0 ? T(std::numeric_limits<float>::quiet_NaN())
                                     : T(static_cast<float>(random() % 16)));
    infer::SortParam param;
    param.num = {static_cast<std::int32_t>(kept)};
    const AtbTensor in = AtbTensor::of<T>({rows, 1, n}, x);
    const std::vector<AtbTensor> got = atb.outputs_of(param, {&in});
    ASSERT_EQ(got[0].shape(), (Shape{rows, 1, kept}));
    const std::vector<T> values = got[0].template values<T>();
    const Ints indices = got[1].template values<std::int32_t>();
    for (std::int64_t row = 0; row < rows; ++row) {
      Ints order(static_cast<std::size_t>(n));
      std::iota(order.begin(), order.end(), 0);
      const auto at = [&](std::int32_t i) {
        const float value = widen(x[static_cast<std::size_t>(row * n + i)]);
        return std::isnan(value) ? -std::numeric_limits<float>::infinity() : value;
      };
      std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return at(a) > at(b); });
      for (std::int64_t i = 0; i < kept; ++i) {
        const auto place = static_cast<std::size_t>(row * kept + i);
        ASSERT_EQ(indices[place], order[static_cast<std::size_t>(i)]);
        const float want = widen(x[static_cast<std::size_t>(row * n + indices[place])]);
        ASSERT_TRUE(widen(values[place]) == want || std::isnan(want));
      }
    }
  }
}

TEST_F(AtbIndexingTest, SortKeepsTheLargest) {
  check_sort<float>(atb, random);
  check_sort<F16>(atb, random);
  check_sort<B16>(atb, random);
  infer::SortParam param;
  refused(param, "num has 0 members");
  param.num = {0};
  refused(param, "but must have one, above 0");
  param.num = {4};
  EXPECT_EQ(Atb::infer(param, {desc_of(ACL_FLOAT, {2, 3})}), 8);
}

TEST_F(AtbIndexingTest, OnehotAddsADimension) {
  infer::OnehotParam param;
  param.depth = 3;
  param.axis = -1;
  const AtbTensor indices = AtbTensor::of<std::int32_t>({2, 2}, {0, 2, 3, -1}),
                  one = AtbTensor::of<float>({1}, {5}), zero = AtbTensor::of<float>({1}, {-1});
  std::vector<AtbTensor> got = atb.outputs_of(param, {&indices, &one, &zero});
  EXPECT_EQ(got[0].shape(), (Shape{2, 2, 3}));
  EXPECT_EQ(got[0].values<float>(), (std::vector<float>{5, -1, -1, -1, -1, 5, -1, -1, -1, -1, -1, -1}));
  param.axis = 0;
  const AtbTensor long_indices = AtbTensor::of<std::int64_t>({2}, {2, 0}),
                  long_one = AtbTensor::of<std::int64_t>({1}, {1}),
                  long_zero = AtbTensor::of<std::int64_t>({1}, {0});
  got = atb.outputs_of(param, {&long_indices, &long_one, &long_zero});
  EXPECT_EQ(got[0].shape(), (Shape{3, 2}));
  EXPECT_EQ(got[0].values<std::int64_t>(), (Longs{0, 1, 0, 0, 1, 0}));
  param.depth = 0;
  refused(param, "depth is 0");
  param.depth = 1;
  param.axis = 2;
  EXPECT_EQ(Atb::infer(param, {desc_of(ACL_INT32, {2}), one.desc(), zero.desc()}), 8);
  param.axis = 1;
  EXPECT_EQ(Atb::infer(param, {desc_of(ACL_INT32, {2}), desc_of(ACL_FLOAT, {2}), zero.desc()}), 8);
  EXPECT_EQ(Atb::infer(param, {desc_of(ACL_INT32, {1, 1, 1, 1, 1, 1, 1, 1}), one.desc(), zero.desc()}), 16);
}

// Small whole numbers, so that every sum is exact.
template <class T>
std::vector<T> whole_numbers(std::size_t n, std::mt19937& random) {
  std::vector<T> values;
  for (std::size_t i = 0; i < n; ++i) values.push_back(T(static_cast<float>(random() % 7) - 3));
  return values;
}

template <class T, class Index>
void check_index_add(const Atb& atb, std::mt19937& random, std::int64_t inner, bool in_place) {
  const std::int64_t outer = 3, size = 5, n = 11;
  const std::vector<T> x = whole_numbers<T>(static_cast<std::size_t>(outer * size * inner), random),
                       updates = whole_numbers<T>(static_cast<std::size_t>(outer * n * inner), random);
  std::vector<Index> indices;
  for (std::int64_t i = 0; i < n; ++i) indices.push_back(static_cast<Index>(random() % 4));  // never 4
  std::vector<T> want = x;
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < inner; ++j) {
        const auto to =
            static_cast<std::size_t>((o * size + indices[static_cast<std::size_t>(i)]) * inner + j);
        want[to] = T(widen(want[to]) + 2 * widen(updates[static_cast<std::size_t>((o * n + i) * inner + j)]));
      }
  infer::IndexAddParam param;
  param.indexType = infer::IndexAddParam::INDEX_ADD;
  param.axis = 1;
  const AtbTensor a = AtbTensor::of<T>({outer, size, inner}, x), b = AtbTensor::of<Index>({n}, indices),
                  c = AtbTensor::of<T>({outer, n, inner}, updates), alpha = AtbTensor::of<T>({1}, {T(2.0f)});
  const OperationPtr operation(make(param));
  if (in_place) {
    ASSERT_EQ(atb.run(*operation, Atb::pack({&a, &b, &c, &alpha}, {&a})), 0) << recent_message();
    ASSERT_EQ(a.template values<T>(), want);
  } else {
    ASSERT_EQ(atb.outputs(*operation, {&a, &b, &c, &alpha})[0].template values<T>(), want);
  }
}

TEST_F(AtbIndexingTest, IndexAddAddsSlices) {
  for (const bool in_place : {false, true})
    for (const std::int64_t inner : {1, 7, 600}) {
      check_index_add<float, std::int32_t>(atb, random, inner, in_place);
      check_index_add<F16, std::int64_t>(atb, random, inner, in_place);
      check_index_add<B16, std::int32_t>(atb, random, inner, in_place);
    }
  // 2048 + 1 is 2048 in FP16: the sum is rounded once.
  infer::IndexAddParam param;
  param.indexType = infer::IndexAddParam::INDEX_ADD;
  const AtbTensor x = AtbTensor::of<F16>({2}, {F16(2048.0f), F16(1.0f)}),
                  twice = AtbTensor::of<std::int32_t>({2}, {0, 0}),
                  ones = AtbTensor::of<F16>({2}, {F16(1.0f), F16(1.0f)}),
                  alpha = AtbTensor::of<F16>({1}, {F16(1.0f)});
  EXPECT_EQ(widen(atb.outputs_of(param, {&x, &twice, &ones, &alpha})[0].values<F16>()[0]), 2050);
  const AtbTensor wrong = AtbTensor::of<std::int32_t>({2}, {0, 2});
  EXPECT_EQ(run(param, {&x, &wrong, &ones, &alpha}), 507015);
  EXPECT_THAT(recent_message(), HasSubstr("IndexAddOperation: index 1 is 2 but must be in [0, 2)"));
  param.axis = 1;
  EXPECT_EQ(Atb::infer(param, {x.desc(), twice.desc(), ones.desc(), alpha.desc()}), 8);
  param.axis = 0;
  EXPECT_EQ(Atb::infer(param, {x.desc(), twice.desc(), desc_of(ACL_FLOAT16, {3}), alpha.desc()}), 8);
  param.indexType = infer::IndexAddParam::INDEX_ADD_VALID;
  refused(param, "not supported yet");
  param.indexType = infer::IndexAddParam::INDEX_UNDEFINED;
  refused(param, "indexType is 0");
}

template <class T, class Index>
void check_scatter(const Atb& atb, std::mt19937& random, int axis, bool adds, bool in_place) {
  const Shape x_shape = {4, 5, 6};
  Shape shape = {3, 4, 6};
  shape[static_cast<std::size_t>(axis)] = 9;  // more than x has: some are named twice
  const std::vector<T> x = whole_numbers<T>(120, random),
                       updates = whole_numbers<T>(elements_of(shape), random);
  std::vector<Index> indices;
  for (std::size_t i = 0; i < updates.size(); ++i)
    indices.push_back(
        static_cast<Index>(random() % static_cast<unsigned>(x_shape[static_cast<std::size_t>(axis)])));
  std::vector<T> want = x;
  for (std::size_t i = 0; i < updates.size(); ++i) {
    std::int64_t place[3] = {static_cast<std::int64_t>(i) / (shape[1] * shape[2]),
                             static_cast<std::int64_t>(i) / shape[2] % shape[1],
                             static_cast<std::int64_t>(i) % shape[2]};
    place[axis] = indices[i];
    T& to = want[static_cast<std::size_t>((place[0] * 5 + place[1]) * 6 + place[2])];
    if (!adds)
      to = updates[i];
    else if constexpr (std::is_integral_v<T>)
      to = static_cast<T>(to + updates[i]);
    else
      to = T(widen(to) + widen(updates[i]));
  }
  infer::ScatterElementsV2Param param;
  param.axis = axis == 2 ? -1 : axis;
  param.reduction = adds ? infer::ScatterElementsV2Param::ADD : infer::ScatterElementsV2Param::NONE;
  const AtbTensor a = AtbTensor::of<T>(x_shape, x), b = AtbTensor::of<Index>(shape, indices),
                  c = AtbTensor::of<T>(shape, updates);
  const OperationPtr operation(make(param));
  if (in_place) {
    ASSERT_EQ(atb.run(*operation, Atb::pack({&a, &b, &c}, {&a})), 0) << recent_message();
    ASSERT_EQ(a.template values<T>(), want);
  } else {
    ASSERT_EQ(atb.outputs(*operation, {&a, &b, &c})[0].template values<T>(), want);
  }
}

TEST_F(AtbIndexingTest, ScatterElementsWritesOrAddsInOrder) {
  for (const bool adds : {false, true})
    for (const int axis : {0, 1, 2}) {
      check_scatter<float, std::int32_t>(atb, random, axis, adds, false);
      check_scatter<F16, std::int64_t>(atb, random, axis, adds, true);
      check_scatter<B16, std::int32_t>(atb, random, axis, adds, false);
      check_scatter<std::int8_t, std::int32_t>(atb, random, axis, adds, true);
      check_scatter<std::int32_t, std::int64_t>(atb, random, axis, adds, false);
      check_scatter<std::int64_t, std::int64_t>(atb, random, axis, adds, true);
    }
  infer::ScatterElementsV2Param param;
  const AtbTensor x = AtbTensor::of<float>({2}, {1, 2}), wrong = AtbTensor::of<std::int32_t>({1}, {-1}),
                  update = AtbTensor::of<float>({1}, {3});
  EXPECT_EQ(run(param, {&x, &wrong, &update}), 507015);
  EXPECT_THAT(recent_message(), HasSubstr("ScatterElementsV2Operation: index 0 is -1"));
  EXPECT_EQ(Atb::infer(param, {x.desc(), desc_of(ACL_INT32, {1, 1}), desc_of(ACL_FLOAT, {1, 1})}), 8);
  EXPECT_EQ(Atb::infer(param, {x.desc(), desc_of(ACL_INT32, {2}), update.desc()}), 8);
  param.axis = 1;
  EXPECT_EQ(Atb::infer(param, {x.desc(), wrong.desc(), update.desc()}), 8);
  param.reduction = static_cast<infer::ScatterElementsV2Param::ReductionType>(2);
  refused(param, "reduction is 2");
}

template <class T>
void check_reductions(const Atb& atb, std::mt19937& random) {
  const std::vector<T> x = whole_numbers<T>(120, random);
  const AtbTensor in = AtbTensor::of<T>({4, 5, 6}, x);
  const auto at = [&](std::int64_t i, std::int64_t j, std::int64_t k) {
    const T value = x[static_cast<std::size_t>((i * 5 + j) * 6 + k)];
    if constexpr (std::is_integral_v<T>)
      return static_cast<float>(value);
    else
      return widen(value);
  };
  for (const auto type :
       {infer::ReduceParam::REDUCE_MAX, infer::ReduceParam::REDUCE_MIN, infer::ReduceParam::REDUCE_SUM}) {
    const auto with = [&](float a, float b) {
      return type == infer::ReduceParam::REDUCE_SUM   ? a + b
             : type == infer::ReduceParam::REDUCE_MAX ? std::max(a, b)
                                                      : std::min(a, b);
    };
    infer::ReduceParam param;
    param.reduceType = type;
    param.axis = {-1, 0};
    std::vector<T> want;
    for (std::int64_t j = 0; j < 5; ++j) {
      float value = at(0, j, 0);
      for (std::int64_t i = 0; i < 24; ++i)
        if (i > 0) value = with(value, at(i / 6, j, i % 6));
      want.push_back(T(value));
    }
    std::vector<AtbTensor> got = atb.outputs_of(param, {&in});
    ASSERT_EQ(got[0].shape(), Shape{5});
    ASSERT_EQ(got[0].template values<T>(), want);
    param.axis = {0, 1, 2};
    float all = at(0, 0, 0);
    for (std::int64_t i = 1; i < 120; ++i) all = with(all, at(i / 30, i / 6 % 5, i % 6));
    got = atb.outputs_of(param, {&in});
    ASSERT_EQ(got[0].shape(), Shape{1});
    ASSERT_EQ(got[0].template values<T>()[0], T(all));
  }
  for (const bool exclusive : {false, true})
    for (const bool reverse : {false, true}) {
      infer::CumsumParam param;
      param.axes = {1};
      param.exclusive = exclusive;
      param.reverse = reverse;
      std::vector<T> want;
      for (std::int64_t i = 0; i < 120; ++i) {
        float sum = 0;
        const std::int64_t own = i / 6 % 5;
        for (std::int64_t j = 0; j < 5; ++j)
          if ((j == own && !exclusive) || (reverse ? j > own : j < own)) sum += at(i / 30, j, i % 6);
        want.push_back(T(sum));
      }
      ASSERT_EQ(atb.outputs_of(param, {&in})[0].template values<T>(), want);
    }
}

TEST_F(AtbIndexingTest, ReduceAndCumsum) {
  check_reductions<float>(atb, random);
  check_reductions<F16>(atb, random);
  check_reductions<B16>(atb, random);
  check_reductions<std::int32_t>(atb, random);
  check_reductions<std::int64_t>(atb, random);
  infer::ReduceParam reduce;
  refused(reduce, "reduceType is 0");
  reduce.reduceType = infer::ReduceParam::REDUCE_MAX;
  refused(reduce, "axis has 0 members");
  reduce.axis = {1, -1};
  EXPECT_EQ(Atb::infer(reduce, {desc_of(ACL_FLOAT, {2, 3})}), 8);
  EXPECT_THAT(recent_message(), HasSubstr("axis names dimension 1 of FP32[2,3] twice"));
  reduce.axis = {2};
  EXPECT_EQ(Atb::infer(reduce, {desc_of(ACL_FLOAT, {2, 3})}), 8);
  infer::CumsumParam sum;
  refused(sum, "axes has 0 members");
  sum.axes = {-3};
  EXPECT_EQ(Atb::infer(sum, {desc_of(ACL_FLOAT, {2, 3})}), 8);
  // A NaN stays; 2048 + 1 + 1 is rounded once.
  const AtbTensor with_nan = AtbTensor::of<float>({3}, {1, std::nanf(""), 2});
  reduce.axis = {0};
  EXPECT_TRUE(std::isnan(atb.outputs_of(reduce, {&with_nan})[0].values<float>()[0]));
  reduce.reduceType = infer::ReduceParam::REDUCE_SUM;
  const AtbTensor halves = AtbTensor::of<F16>({3}, {F16(2048.0f), F16(1.0f), F16(1.0f)});
  EXPECT_EQ(widen(atb.outputs_of(reduce, {&halves})[0].values<F16>()[0]), 2050);
}

}  // namespace
}  // namespace oracle
