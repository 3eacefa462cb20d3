// Moeyard. SPDX-License-Identifier: Apache-2.0
// Activations, moves, softmax, norms and events of ATB against their definitions.
#include <cmath>
#include <set>
#include <thread>

#include "atb/comm.h"
#include "hccl/hccl.h"
#include "support/atb.h"

namespace oracle {
namespace {

namespace infer = atb::infer;
using testing::HasSubstr;

class AtbBasicTest : public testing::Test {
 protected:
  Atb atb;
  std::mt19937 random{seed()};
};

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

template <class T>
void expect_near(const std::vector<T>& got, const std::vector<double>& want, double relative = 2e-6) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(widen(got[i]), want[i], (kHalfUnit<T> + relative) * std::fabs(want[i]) + 2e-7)
        << "element " << i;
}

infer::ActivationParam activation(infer::ActivationType type) {
  infer::ActivationParam param;
  param.activationType = type;
  return param;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

template <class T>
void check_activations(const Atb& atb, std::mt19937& random) {
  struct Case {
    infer::ActivationType type;
    infer::ActivationParam::GeLUMode mode;
    double (*definition)(double);
  };
  const Case cases[] = {
      {infer::ACTIVATION_RELU, {}, [](double x) { return x > 0 ? x : 0; }},
      {infer::ACTIVATION_GELU, infer::ActivationParam::TANH_MODE,
       [](double x) { return x * sigmoid(2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)); }},
      {infer::ACTIVATION_GELU, infer::ActivationParam::NONE_MODE,
       [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }},
      {infer::ACTIVATION_FAST_GELU, {}, [](double x) { return x * sigmoid(1.702 * x); }},
      {infer::ACTIVATION_FASTER_GELU_FORWARD, {}, [](double x) { return x * sigmoid(1.702 * x); }},
      {infer::ACTIVATION_SWISH, {}, [](double x) { return x * sigmoid(0.5 * x); }},
      {infer::ACTIVATION_SIGMOID, {}, sigmoid},
      {infer::ACTIVATION_LOG, {}, [](double x) { return std::log(x); }},
  };
  for (const Case& c : cases) {
    std::vector<T> x = random_values<T>(700, random, 2);
    if (c.type == infer::ACTIVATION_LOG)
      for (T& value : x) value = T(std::fabs(widen(value)) + 0.01f);
    infer::ActivationParam param = activation(c.type);
    param.scale = 0.5f;
    param.geluMode = c.mode;
    const AtbTensor in = AtbTensor::of<T>({7, 100}, x);
    std::vector<double> want;
    for (const T value : x) want.push_back(c.definition(widen(value)));
    expect_near(atb.outputs_of(param, {&in})[0].template values<T>(), want, 1e-5);
  }
}

TEST_F(AtbBasicTest, Activations) {
  check_activations<float>(atb, random);
  check_activations<F16>(atb, random);
  check_activations<B16>(atb, random);
  const AtbTensor x = AtbTensor::of<float>({3}, {-1, 0.5f, 3});
  expect_near(atb.outputs_of(activation(infer::ACTIVATION_FAST_GELU), {&x})[0].values<float>(),
              {-0.154204234, 0.350388437, 2.98192869});
  const AtbTensor y = AtbTensor::of<float>({3}, {-1, 1, 3});
  expect_near(atb.outputs_of(activation(infer::ACTIVATION_SWISH), {&y})[0].values<float>(),
              {-0.268941421, 0.731058579, 2.85772238});
}

TEST_F(AtbBasicTest, SwigluAndItsGradient) {
  const std::int64_t rows = 5, half = 33;
  const std::vector<float> x = random_values<float>(rows * half * 2, random),
                           dy = random_values<float>(rows * half, random);
  std::vector<double> forward, backward(x.size());
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t i = 0; i < half; ++i) {
      const auto first = static_cast<std::size_t>(r * 2 * half + i), second = first + half;
      const double a = x[first], b = x[second], d = dy[static_cast<std::size_t>(r * half + i)],
                   s = sigmoid(a);
      forward.push_back(a * s * b);
      backward[first] = d * b * (s + a * s * (1 - s));
      backward[second] = d * a * s;
    }
  const AtbTensor in = AtbTensor::of<float>({rows, 2 * half}, x),
                  gradient = AtbTensor::of<float>({rows, half}, dy);
  expect_near(atb.outputs_of(activation(infer::ACTIVATION_SWIGLU_FORWARD), {&in})[0].values<float>(),
              forward);
  expect_near(
      atb.outputs_of(activation(infer::ACTIVATION_SWIGLU_BACKWARD), {&gradient, &in})[0].values<float>(),
      backward);
  EXPECT_EQ(Atb::infer(activation(infer::ACTIVATION_SWIGLU_FORWARD), {desc_of(ACL_FLOAT, {2, 3})}), 8);
  EXPECT_EQ(Atb::infer(activation(infer::ACTIVATION_SWIGLU_BACKWARD),
                       {desc_of(ACL_FLOAT, {2, 4}), desc_of(ACL_FLOAT, {2, 4})}),
            8);
}

TEST_F(AtbBasicTest, Transposes) {
  infer::TransposeParam param;
  param.perm = {2, 0, 1};
  const AtbTensor x = AtbTensor::of<float>({2, 3, 4}, ramp(24));
  const std::vector<AtbTensor> got = atb.outputs_of(param, {&x});
  ASSERT_EQ(got[0].shape(), (Shape{4, 2, 3}));
  const std::vector<float> values = got[0].values<float>();
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < 2; ++j)
      for (std::size_t k = 0; k < 3; ++k)
        ASSERT_EQ(values[(i * 2 + j) * 3 + k], static_cast<float>((j * 3 + k) * 4 + i));
  EXPECT_EQ(Atb::infer(param, {desc_of(ACL_FLOAT, {2, 3})}), 16);
}

TEST_F(AtbBasicTest, SlicesFromEitherEnd) {
  infer::SliceParam param;
  param.offsets = {1, -3};
  param.size = {2, -1};
  const AtbTensor x = AtbTensor::of<std::int64_t>({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const std::vector<AtbTensor> got = atb.outputs_of(param, {&x});
  EXPECT_EQ(got[0].shape(), (Shape{2, 3}));
  EXPECT_EQ(got[0].values<std::int64_t>(), (std::vector<std::int64_t>{5, 6, 7, 9, 10, 11}));
  EXPECT_EQ(Atb::infer(param, {desc_of(ACL_FLOAT, {2, 4})}), 8);
  EXPECT_EQ(Atb::infer(param, {desc_of(ACL_FLOAT, {3, 2})}), 8);
  EXPECT_EQ(Atb::infer(param, {desc_of(ACL_FLOAT, {3})}), 16);
}

TEST_F(AtbBasicTest, JoinsAndSplits) {
  infer::ConcatParam join;
  join.concatDim = -2;
  const AtbTensor a = AtbTensor::of<std::int8_t>({2, 1, 2}, {1, 2, 3, 4}),
                  b = AtbTensor::of<std::int8_t>({2, 2, 2}, {5, 6, 7, 8, 9, 10, 11, 12});
  const std::vector<AtbTensor> joined = atb.outputs_of(join, {&a, &b});
  EXPECT_EQ(joined[0].shape(), (Shape{2, 3, 2}));
  EXPECT_EQ(joined[0].values<std::int8_t>(),
            (std::vector<std::int8_t>{1, 2, 5, 6, 7, 8, 3, 4, 9, 10, 11, 12}));
  infer::SplitParam split;
  split.splitDim = 1;
  split.splitSizes = {1, 2};
  const std::vector<AtbTensor> parts = atb.outputs_of(split, {&joined[0]});
  EXPECT_EQ(parts[0].values<std::int8_t>(), a.values<std::int8_t>());
  EXPECT_EQ(parts[1].values<std::int8_t>(), b.values<std::int8_t>());
  split.splitSizes = {};
  split.splitNum = 3;
  const std::vector<AtbTensor> thirds = atb.outputs_of(split, {&joined[0]});
  ASSERT_EQ(thirds.size(), 3u);
  EXPECT_EQ(thirds[2].values<std::int8_t>(), (std::vector<std::int8_t>{7, 8, 11, 12}));
  EXPECT_EQ(Atb::infer(join, {desc_of(ACL_FLOAT, {2, 1}), desc_of(ACL_FLOAT, {2, 2})}), 8);
  join.concatDim = 3;
  EXPECT_EQ(Atb::infer(join, {a.desc(), b.desc()}), 8);
  EXPECT_EQ(Atb::infer(split, {desc_of(ACL_FLOAT, {2, 4})}), 8);
  EXPECT_EQ(Atb::infer(split, {desc_of(ACL_INT4, {2, 3})}), 13);
}

TEST_F(AtbBasicTest, Gathers) {
  infer::GatherParam param;
  param.axis = 1;
  const AtbTensor x = AtbTensor::of<float>({2, 3, 2}, ramp(12)),
                  indices = AtbTensor::of<std::int32_t>({2, 2}, {2, 0, 1, 1});
  const std::vector<AtbTensor> got = atb.outputs_of(param, {&x, &indices});
  EXPECT_EQ(got[0].shape(), (Shape{2, 2, 2, 2}));
  EXPECT_EQ(got[0].values<float>(), (std::vector<float>{4, 5, 0, 1, 2, 3, 2, 3, 10, 11, 6, 7, 8, 9, 8, 9}));
  param.batchDims = 1;
  const std::vector<AtbTensor> batched = atb.outputs_of(param, {&x, &indices});
  EXPECT_EQ(batched[0].shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(batched[0].values<float>(), (std::vector<float>{4, 5, 0, 1, 8, 9, 8, 9}));
  const AtbTensor outside = AtbTensor::of<std::int64_t>({2, 1}, {0, 3}),
                  y = AtbTensor::empty<float>({2, 1, 2});
  const OperationPtr operation(make(param));
  EXPECT_EQ(atb.run(*operation, Atb::pack({&x, &outside}, {&y})), 507015);
  EXPECT_THAT(recent_message(), HasSubstr("GatherOperation: index 1 is 3 but must be in [0, 3)"));
  EXPECT_EQ(Atb::infer(param, {desc_of(ACL_FLOAT, {3, 3}), desc_of(ACL_INT64, {2, 1})}), 8);
  EXPECT_EQ(Atb::infer(param, {desc_of(ACL_FLOAT, {2, 3, 1, 1, 1, 1}), desc_of(ACL_INT64, {2, 1, 1, 1, 1})}),
            16);
}

template <class T>
void check_softmax(const Atb& atb, std::int64_t axis, std::size_t count, std::mt19937& random) {
  const Shape shape = {3, 5, 40, 7};
  infer::SoftmaxParam param;
  for (std::size_t i = 0; i < count; ++i) param.axes.push_back(axis + static_cast<std::int64_t>(i));
  const std::size_t first = static_cast<std::size_t>(axis < 0 ? axis + 4 : axis);
  std::size_t n = 1, inner = 1;
  for (std::size_t i = first; i < 4; ++i)
    (i < first + count ? n : inner) *= static_cast<std::size_t>(shape[i]);
  const std::vector<T> x = random_values<T>(elements_of(shape), random);
  std::vector<double> want(x.size());
  for (std::size_t row = 0; row < x.size() / n; ++row) {
    const std::size_t at = row / inner * n * inner + row % inner;
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += std::exp(widen(x[at + i * inner]));
    for (std::size_t i = 0; i < n; ++i) want[at + i * inner] = std::exp(widen(x[at + i * inner])) / sum;
  }
  const AtbTensor in = AtbTensor::of<T>(shape, x);
  expect_near(atb.outputs_of(param, {&in})[0].template values<T>(), want, 4e-6);
}

TEST_F(AtbBasicTest, Softmax) {
  check_softmax<float>(atb, -1, 1, random);
  check_softmax<F16>(atb, 1, 2, random);
  check_softmax<B16>(atb, -4, 4, random);
  infer::SoftmaxParam param;
  param.axes = {2};
  EXPECT_EQ(Atb::infer(param, {desc_of(ACL_FLOAT, {2, 2})}), 8);
}

template <class T>
void check_rms_norm(const Atb& atb, std::mt19937& random) {
  using Param = infer::RmsNormParam;
  const std::size_t rows = 12, n = 70;
  const std::vector<T> x = random_values<T>(rows * n, random), residual = random_values<T>(rows * n, random),
                       bias = random_values<T>(n, random), gamma = random_values<T>(n, random);
  const AtbTensor in = AtbTensor::of<T>({3, 4, 70}, x), more = AtbTensor::of<T>({3, 4, 70}, residual),
                  shift = AtbTensor::of<T>({70}, bias), weight = AtbTensor::of<T>({70}, gamma);
  for (const auto type : {Param::RMS_NORM_NORM, Param::RMS_NORM_PRENORM, Param::RMS_NORM_POSTNORM})
    for (const bool extra : {false, true}) {  // rstd and GEMMA of the first kind, a bias of the others
      Param param;
      param.layerType = type;
      param.normParam.epsilon = param.preNormParam.epsilon = param.postNormParam.epsilon = 1e-3f;
      param.normParam.rstd = param.preNormParam.hasBias = param.postNormParam.hasBias = extra;
      const bool norm = type == Param::RMS_NORM_NORM;
      if (norm && extra) param.normParam.modelType = Param::GEMMA_MODEL;
      std::vector<double> want, sums, factors;
      for (std::size_t r = 0; r < rows; ++r) {
        double squares = 0;
        for (std::size_t i = 0; i < n; ++i) {
          sums.push_back(widen(x[r * n + i]));
          if (!norm) sums.back() += double{widen(residual[r * n + i])} + (extra ? widen(bias[i]) : 0);
          squares += sums.back() * sums.back();
        }
        factors.push_back(1 / std::sqrt(squares / static_cast<double>(n) + 1e-3));
        for (std::size_t i = 0; i < n; ++i)
          want.push_back(sums[r * n + i] * factors[r] * (widen(gamma[i]) + (norm && extra ? 1 : 0)));
      }
      std::vector<const AtbTensor*> inputs = {&in};
      if (!norm) inputs.push_back(&more);
      if (!norm && extra) inputs.push_back(&shift);
      inputs.push_back(&weight);
      const std::vector<AtbTensor> got = atb.outputs_of(param, inputs);
      expect_near(got[0].template values<T>(), want, 4e-6);
      if (type == Param::RMS_NORM_PRENORM) expect_near(got[1].template values<T>(), sums);
      if (!norm || !extra) continue;
      EXPECT_EQ(got[1].shape(), (Shape{3, 4, 1}));
      expect_near(got[1].template values<float>(), factors);
    }
}

template <class T>
void check_layer_norm(const Atb& atb, std::mt19937& random, int begin_norm, const Shape& weight_shape) {
  const Shape shape = {3, 4, 10};
  const std::size_t n = begin_norm == 0 ? 120 : begin_norm == 1 ? 40 : 10;
  const std::vector<T> x = random_values<T>(120, random),
                       gamma = random_values<T>(elements_of(weight_shape), random),
                       beta = random_values<T>(gamma.size(), random);
  infer::LayerNormParam param;
  param.layerType = infer::LayerNormParam::LAYER_NORM_NORM;
  param.normParam.beginNormAxis = begin_norm;
  const AtbTensor a = AtbTensor::of<T>(shape, x), b = AtbTensor::of<T>(weight_shape, gamma),
                  c = AtbTensor::of<T>(weight_shape, beta);
  const std::vector<T> got = atb.outputs_of(param, {&a, &b, &c})[0].template values<T>();
  for (std::size_t begin = 0; begin < 120; begin += n) {
    double mean = 0, variance = 0;
    for (std::size_t i = begin; i < begin + n; ++i) mean += widen(x[i]) / static_cast<double>(n);
    for (std::size_t i = begin; i < begin + n; ++i)
      variance += (widen(x[i]) - mean) * (widen(x[i]) - mean) / static_cast<double>(n);
    for (std::size_t i = begin; i < begin + n; ++i) {
      const double want =
          (widen(x[i]) - mean) / std::sqrt(variance + 1e-5f) * widen(gamma[i % gamma.size()]) +
          widen(beta[i % gamma.size()]);
      ASSERT_NEAR(widen(got[i]), want, kHalfUnit<T> * std::fabs(want) + 1e-6) << i;
    }
  }
}

TEST_F(AtbBasicTest, LayerNorm) {
  for (const auto& [axis, shape] :
       {std::pair{2, Shape{10}}, {-1, {10}}, {1, {4, 10}}, {1, {10}}, {0, {3, 4, 10}}}) {
    check_layer_norm<float>(atb, random, axis, shape);
    check_layer_norm<F16>(atb, random, axis, shape);
    check_layer_norm<B16>(atb, random, axis, shape);
  }
  infer::LayerNormParam param;
  atb::Operation* made = nullptr;
  EXPECT_EQ(atb::CreateOperation(param, &made), 1);
  param.layerType = infer::LayerNormParam::LAYER_NORM_PRENORM;
  EXPECT_EQ(atb::CreateOperation(param, &made), 1);
  EXPECT_THAT(recent_message(), HasSubstr("supported yet"));
  param.layerType = infer::LayerNormParam::LAYER_NORM_NORM;
  param.normParam.beginNormAxis = 2;
  const atb::TensorDesc x = desc_of(ACL_FLOAT, {2, 3}), three = desc_of(ACL_FLOAT, {3});
  EXPECT_EQ(Atb::infer(param, {x, three, three}), 8);
  param.normParam.beginNormAxis = 1;
  EXPECT_EQ(Atb::infer(param, {x, three, three}), 0);
  EXPECT_EQ(Atb::infer(param, {x, three, desc_of(ACL_FLOAT, {2})}), 8);
}

TEST_F(AtbBasicTest, RmsNorm) {
  check_rms_norm<float>(atb, random);
  check_rms_norm<F16>(atb, random);
  check_rms_norm<B16>(atb, random);
  infer::RmsNormParam param;
  param.layerType = infer::RmsNormParam::RMS_NORM_NORM;
  EXPECT_EQ(Atb::infer(param, {desc_of(ACL_FLOAT, {2, 4}), desc_of(ACL_FLOAT, {3})}), 8);
  EXPECT_EQ(Atb::infer(param, {desc_of(ACL_FLOAT, {4}), desc_of(ACL_FLOAT, {2, 4})}), 8);
}

template <class Param>
void refused(const Param& param, const char* message) {
  atb::Operation* made = nullptr;
  EXPECT_EQ(atb::CreateOperation(param, &made), atb::ERROR_INVALID_PARAM) << message;
  EXPECT_THAT(recent_message(), HasSubstr(message));
}

TEST_F(AtbBasicTest, BadParametersAreRefused) {
  refused(activation(infer::ACTIVATION_UNDEFINED), "activationType is 0");
  refused(activation(infer::ACTIVATION_MAX), "activationType is 10");
  infer::ActivationParam dim = activation(infer::ACTIVATION_SWIGLU_FORWARD);
  dim.dim = 0;
  refused(dim, "dim is 0 but must be -1");
  infer::TransposeParam perm;
  refused(perm, "perm must be a permutation");
  perm.perm = {0, 0};
  refused(perm, "perm must be a permutation");
  infer::SliceParam slice;
  refused(slice, "offsets has 0 members");
  slice.offsets = {0};
  slice.size = {0};
  refused(slice, "size has the member 0");
  infer::SplitParam split;
  split.splitNum = 4;
  refused(split, "splitNum is 4 but must be 2 or 3");
  infer::GatherParam gather;
  gather.batchDims = 1;
  refused(gather, "batchDims 1 but 0 <= batchDims <= axis");
  infer::SoftmaxParam softmax;
  refused(softmax, "axes has 0 members");
  softmax.axes = {0, 2};
  refused(softmax, "neighbouring");
  infer::RmsNormParam norm;
  refused(norm, "layerType is 0");
  norm.layerType = infer::RmsNormParam::RMS_NORM_NORM;
  norm.normParam.quantType = infer::QUANT_INT8;
  refused(norm, "only QUANT_UNQUANT is supported yet");
  atb::common::EventParam event;
  event.operatorType = atb::common::EventParam::RECORD;
  refused(event, "event is null");
}

// Two streams: the second one doubles what the first has made, in order through an event.
TEST_F(AtbBasicTest, EventsOrderTheStreamsOfAGraph) {
  aclrtStream second = nullptr;
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateStream(&second), 0);
  ASSERT_EQ(aclrtCreateEvent(&event), 0);
  ASSERT_EQ(atb.context->SetExecuteStreams({atb.device.stream(), second}), 0);
  const auto ordering = [&](atb::common::EventParam::OperatorType type) {
    atb::common::EventParam param;
    param.event = event;
    param.operatorType = type;
    return make(param);
  };
  infer::ElewiseParam twice;
  twice.elewiseType = infer::ElewiseParam::ELEWISE_MULS;
  twice.mulsParam.varAttr = 2;
  atb::GraphParam graph;
  graph.inTensorNum = graph.outTensorNum = 1;
  graph.internalTensorNum = 2;
  graph.nodes.resize(5);
  graph.nodes[0].operation = make(twice);
  graph.nodes[0].inTensorIds = {0};
  graph.nodes[0].outTensorIds = {2};
  graph.nodes[1].operation = ordering(atb::common::EventParam::RECORD);
  graph.nodes[2].operation = ordering(atb::common::EventParam::WAIT);
  graph.nodes[3].operation = make(twice);
  graph.nodes[3].inTensorIds = {2};
  graph.nodes[3].outTensorIds = {3};
  graph.nodes[4].operation = make(twice);
  graph.nodes[4].inTensorIds = {3};
  graph.nodes[4].outTensorIds = {1};
  for (const std::size_t i : {2, 3, 4}) ASSERT_EQ(atb::SetExecuteStreamId(graph.nodes[i].operation, 1), 0);
  const OperationPtr operation(make(graph));
  const Shape shape = {100, 1000};
  const AtbTensor x = AtbTensor::of<float>(shape, std::vector<float>(100000, 1)),
                  y = AtbTensor::empty<float>(shape);
  const atb::VariantPack pack = Atb::pack({&x}, {&y});
  std::uint64_t size = 0;
  ASSERT_EQ(operation->Setup(pack, size, atb.context.get()), 0) << recent_message();
  EXPECT_EQ(size, 2 * 400384u);
  const Workspace workspace(size);
  for (int i = 0; i < 10; ++i) {
    std::memset(workspace.data(), 0, size);
    ASSERT_EQ(operation->Execute(pack, workspace.data(), size, atb.context.get()), 0) << recent_message();
    ASSERT_EQ(aclrtSynchronizeStream(second), 0);
    ASSERT_EQ(y.values<float>(), std::vector<float>(100000, 8));
  }
  aclrtDestroyStream(second);
  aclrtDestroyEvent(event);
  const OperationPtr nothing(make(atb::common::EventParam()));
  EXPECT_EQ(atb.run(*nothing, {}), 0);
}

TEST(AtbComm, RanksOfOneProcessMeetByRootAndSize) {
  constexpr int kRanks = 3;
  for (int round = 0; round < 2; ++round) {
    std::vector<std::string> names(kRanks);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank)
      threads.emplace_back([rank, &names] {
        ASSERT_EQ(aclrtSetDevice(rank), 0);
        char name[128] = {};
        const atb::HcclComm comm = atb::Comm::CreateHcclComm(rank, 0, kRanks, name);
        ASSERT_NE(comm, nullptr) << recent_message();
        names[static_cast<std::size_t>(rank)] = name;
        std::uint32_t own = 99, size = 0;
        EXPECT_EQ(HcclGetRankId(comm, &own), 0);
        EXPECT_EQ(HcclGetRankSize(comm, &size), 0);
        EXPECT_EQ(own, static_cast<std::uint32_t>(rank));
        EXPECT_EQ(size, 3u);
        EXPECT_EQ(atb::Comm::DestoryHcclComm(comm), 0);
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 1u);
    EXPECT_NE(names[0], "");
  }
}

TEST(AtbComm, RefusesRanksThatDoNotExist) {
  const Device device;
  EXPECT_EQ(atb::Comm::CreateHcclComm(3, 0, 3, nullptr), nullptr);
  EXPECT_THAT(recent_message(), HasSubstr("rank is 3, rankRoot 0 and rankSize 3"));
  EXPECT_EQ(atb::Comm::CreateHcclComm(0, 3, 3, nullptr), nullptr);
  EXPECT_EQ(atb::Comm::CreateHcclComm(0, 0, 0, nullptr), nullptr);
  EXPECT_EQ(atb::Comm::CreateHcclCommByRankTableFile(2, 2, "none.json", nullptr), nullptr);
  EXPECT_EQ(atb::Comm::CreateHcclCommByRankTableFile(0, 2, "/nowhere/none.json", nullptr), nullptr);
  std::vector<std::uint32_t> ranks = {0};
  EXPECT_EQ(atb::Comm::CreateHcclCrossMulitComm("none.json", 0, ranks, 0, 0, nullptr), nullptr);
  EXPECT_EQ(atb::Comm::CreateHcclCrossMulitComm("none.json", 1, ranks, 0, 0, nullptr), nullptr);
  EXPECT_THAT(recent_message(), HasSubstr("subCommRankId 1"));
  EXPECT_EQ(atb::Comm::CreateHcclCrossMulitComm(nullptr, 0, ranks, 0, 0, nullptr), nullptr);
  EXPECT_EQ(atb::Comm::DestoryHcclComm(nullptr), 1);
}

}  // namespace
}  // namespace oracle
