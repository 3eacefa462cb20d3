// Moeyard. SPDX-License-Identifier: Apache-2.0
// The life of operations and contexts: what is checked, in which order, with which code.
#include <thread>

#include "atb/operation_infra.h"
#include "support/atb.h"

namespace oracle {
namespace {

using atb::infer::ElewiseParam;
using testing::HasSubstr;

ElewiseParam elewise(ElewiseParam::ElewiseType type) {
  ElewiseParam param;
  param.elewiseType = type;
  return param;
}

// An addition of two [2,3] tensors.
class AtbOperationTest : public testing::Test {
 protected:
  int set_up() { return operation->Setup(pack, size, atb.context.get()); }
  int execute() { return operation->Execute(pack, nullptr, size, atb.context.get()); }

  Atb atb;
  OperationPtr operation{make(elewise(ElewiseParam::ELEWISE_ADD))};
  AtbTensor a = AtbTensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}), b = AtbTensor::of<float>({3}, {10, 20, 30}),
            sum = AtbTensor::empty<float>({2, 3});
  atb::VariantPack pack = Atb::pack({&a, &b}, {&sum});
  std::uint64_t size = 77;
};

TEST_F(AtbOperationTest, AddsTwoTensors) {
  EXPECT_EQ(operation->GetName(), "ElewiseOperation");
  EXPECT_EQ(operation->GetInputNum(), 2u);
  EXPECT_EQ(operation->GetOutputNum(), 1u);
  ASSERT_EQ(set_up(), 0) << recent_message();
  EXPECT_EQ(size, 0u);
  ASSERT_EQ(execute(), 0) << recent_message();
  ASSERT_EQ(atb.device.synchronize(), 0);
  EXPECT_EQ(sum.values<float>(), (std::vector<float>{11, 22, 33, 14, 25, 36}));
}

TEST_F(AtbOperationTest, IsRefusedByCreateOperation) {
  atb::Operation* const before = reinterpret_cast<atb::Operation*>(8);
  atb::Operation* made = before;
  const auto refused = [&](const ElewiseParam& param, const char* message) {
    EXPECT_EQ(atb::CreateOperation(param, &made), atb::ERROR_INVALID_PARAM);
    EXPECT_THAT(recent_message(), HasSubstr(message));
    EXPECT_EQ(made, before);
  };
  EXPECT_EQ(atb::CreateOperation(elewise(ElewiseParam::ELEWISE_ADD), nullptr), atb::ERROR_INVALID_PARAM);
  EXPECT_THAT(recent_message(), HasSubstr("ElewiseOperation: operation of CreateOperation is null"));
  refused(elewise(ElewiseParam::ELEWISE_UNDEFINED), "elewiseType is 0 but must lie between");
  refused(elewise(ElewiseParam::ELEWISE_TYPE_MAX), "elewiseType is 21 but must lie between");
  refused(elewise(static_cast<ElewiseParam::ElewiseType>(-1)), "elewiseType is -1");
  refused(elewise(ElewiseParam::ELEWISE_CAST), "outTensorType is");
  ElewiseParam param = elewise(ElewiseParam::ELEWISE_ADD);
  param.rsv[7] = 1;
  refused(param, "a reserved byte of the parameter is not 0");
  param = elewise(ElewiseParam::ELEWISE_ADD);
  param.quantParam.rsv[0] = 1;
  refused(param, "a reserved byte");
  EXPECT_EQ(atb::CreateOperation(atb::infer::SelfAttentionParam(), &made), atb::ERROR_INVALID_PARAM);
  EXPECT_THAT(recent_message(), HasSubstr("atb::infer::SelfAttentionParam is not supported by this library"));
  EXPECT_EQ(atb::CreateOperation(atb::train::RopeGradParam(), &made), atb::ERROR_INVALID_PARAM);
  EXPECT_EQ(made, before);
}

TEST_F(AtbOperationTest, InfersShapesOrSaysWhyNot) {
  const atb::TensorDesc good = desc_of(ACL_FLOAT16, {4, 3});
  struct Case {
    std::vector<atb::TensorDesc> inputs;
    int code;
    const char* message;
  };
  atb::TensorDesc nine = good;
  nine.shape.dimNum = 9;
  const Case cases[] = {
      {{good}, 5, "ElewiseOperation: InferShape got 1 inTensorDescs but needs 2"},
      {{good, good, good}, 5, "got 3 inTensorDescs"},
      {{desc_of(ACL_DOUBLE, {4}), desc_of(ACL_DOUBLE, {4})},
       13,
       "inTensors have the types FP64, FP64 but must have one of: FP16, FP16 -> FP16; BF16, BF16 -> BF16;"},
      {{good, desc_of(ACL_FLOAT, {4, 3})}, 13, "types FP16, FP32 but"},
      {{good, desc_of(ACL_FLOAT16, {4, 3}, ACL_FORMAT_FRACTAL_NZ)}, 13, "inTensors[1] has format 29"},
      {{good, desc_of(ACL_FLOAT16, {})}, 8, "inTensors[1] has dimNum 0"},
      {{nine, good}, 8, "inTensors[0] has dimNum 9"},
      {{desc_of(ACL_FLOAT16, {4, 0}), good},
       9,
       "inTensors[0] is FP16[4,0] but must not have a dimension below 1"},
      {{desc_of(ACL_FLOAT16, {-4, 3}), good}, 9, "FP16[-4,3]"},
      {{good, desc_of(ACL_FLOAT16, {1 << 20, 1 << 18})}, 9, "at most 256 GiB"},
      {{good, desc_of(ACL_FLOAT16, {4, 2})}, 8, "inTensors are FP16[4,3] and FP16[4,2] but"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Atb::infer(elewise(ElewiseParam::ELEWISE_ADD), c.inputs), c.code) << c.message;
    EXPECT_THAT(recent_message(), HasSubstr(c.message));
  }
  atb::SVector<atb::TensorDesc> out;
  ASSERT_EQ(operation->InferShape({good, desc_of(ACL_FLOAT16, {2, 1, 3})}, out), 0) << recent_message();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(shape_of(out[0]), (Shape{2, 4, 3}));
  EXPECT_EQ(out[0].dtype, ACL_FLOAT16);
  EXPECT_EQ(out[0].format, ACL_FORMAT_ND);
}

TEST_F(AtbOperationTest, SetupChecksContextCountsAndOutputs) {
  EXPECT_EQ(operation->Setup(pack, size, nullptr), atb::ERROR_INVALID_PARAM);
  EXPECT_THAT(recent_message(), HasSubstr("ElewiseOperation: context is null in Setup"));
  atb::VariantPack bad = pack;
  bad.inTensors.resize(1);
  EXPECT_EQ(operation->Setup(bad, size, atb.context.get()), 5);
  bad = pack;
  bad.outTensors.clear();
  EXPECT_EQ(operation->Setup(bad, size, atb.context.get()), 5);
  EXPECT_THAT(recent_message(), HasSubstr("Setup got 2 inTensors and 0 outTensors but needs 2 and 1"));
  bad = pack;
  bad.outTensors[0].desc = desc_of(ACL_FLOAT, {3, 2});
  EXPECT_EQ(operation->Setup(bad, size, atb.context.get()), 8);
  EXPECT_THAT(recent_message(), HasSubstr("outTensors[0] is FP32[3,2] but must be FP32[2,3]"));
  bad.outTensors[0].desc = desc_of(ACL_FLOAT16, {2, 3});
  EXPECT_EQ(operation->Setup(bad, size, atb.context.get()), 13);
  bad = pack;
  bad.inTensors[0].desc = desc_of(ACL_FLOAT, {2, 4});
  EXPECT_EQ(operation->Setup(bad, size, atb.context.get()), 8);
  EXPECT_EQ(size, 77u);
  EXPECT_EQ(execute(), atb::ERROR_INVALID_PARAM);
  EXPECT_THAT(recent_message(), HasSubstr("Execute was called without a successful Setup before"));
}

TEST_F(AtbOperationTest, ExecuteChecksEverythingElse) {
  EXPECT_EQ(execute(), atb::ERROR_INVALID_PARAM);
  EXPECT_THAT(recent_message(), HasSubstr("without a successful Setup"));
  for (atb::Tensor* tensor : {&pack.inTensors[0], &pack.outTensors[0]}) tensor->deviceData = nullptr;
  ASSERT_EQ(set_up(), 0) << "addresses may be null in Setup";
  pack = Atb::pack({&a, &b}, {&sum});
  EXPECT_EQ(operation->Execute(pack, nullptr, 0, nullptr), atb::ERROR_INVALID_PARAM);
  EXPECT_THAT(recent_message(), HasSubstr("context is null in Execute"));
  const auto refused = [&](const atb::VariantPack& bad, int code, const char* message) {
    EXPECT_EQ(operation->Execute(bad, nullptr, 0, atb.context.get()), code);
    EXPECT_THAT(recent_message(), HasSubstr(message));
  };
  ASSERT_EQ(atb.context->SetExecuteStream(nullptr), 0);
  refused(pack, 1, "stream 0 of the context is null");
  ASSERT_EQ(atb.context->SetExecuteStream(atb.device.stream()), 0);
  atb::Context* another = nullptr;
  ASSERT_EQ(atb::CreateContext(&another), 0);
  const ContextPtr owner(another);
  another->SetExecuteStream(atb.device.stream());
  EXPECT_EQ(operation->Execute(pack, nullptr, 0, another), atb::ERROR_INVALID_PARAM);
  EXPECT_THAT(recent_message(), HasSubstr("is not the one of Setup"));
  atb::VariantPack bad = pack;
  bad.inTensors.resize(3);
  refused(bad, 1, "Execute got 3 inTensors");
  bad = pack;
  bad.inTensors[1].dataSize = 8;
  refused(bad, 1, "inTensors[1] has dataSize 8 but must have 12, the bytes of FP32[3]");
  bad = pack;
  bad.outTensors[0].deviceData = nullptr;
  refused(bad, 1, "outTensors[0] has neither deviceData nor hostData");
  float host[6] = {};
  bad.outTensors[0].hostData = host;
  refused(bad, 14, "tensor 2 (FP32[2,3], at 0x0) must be device memory of 24 bytes but is null");
  bad.outTensors[0].deviceData = host;
  refused(bad, 14, "is no device memory");
  bad = pack;
  bad.outTensors[0].deviceData = static_cast<char*>(pack.inTensors[0].deviceData) + 4;
  refused(bad, 14, "overlaps inTensors[0]");
  ASSERT_EQ(execute(), 0) << recent_message();
}

TEST_F(AtbOperationTest, RunsAgainWithOtherAddressesAndShapes) {
  ASSERT_EQ(set_up(), 0);
  ASSERT_EQ(execute(), 0);
  AtbTensor other = AtbTensor::of<float>({2, 3}, {0, 0, 0, 1, 1, 1}),
            result = AtbTensor::empty<float>({2, 3});
  ASSERT_EQ(operation->Execute(Atb::pack({&other, &b}, {&result}), nullptr, 0, atb.context.get()), 0);
  ASSERT_EQ(operation->Execute(Atb::pack({&other, &b}, {&other}), nullptr, 0, atb.context.get()), 0)
      << "in place";
  ASSERT_EQ(atb.device.synchronize(), 0);
  EXPECT_EQ(result.values<float>(), (std::vector<float>{10, 20, 30, 11, 21, 31}));
  EXPECT_EQ(other.values<float>(), result.values<float>());
  AtbTensor one = AtbTensor::of<float>({1}, {5}), two = AtbTensor::empty<float>({1});
  ASSERT_EQ(atb.run(*operation, Atb::pack({&one, &one}, {&two})), 0) << recent_message();
  EXPECT_EQ(two.values<float>(), std::vector<float>{10});
}

TEST_F(AtbOperationTest, TakesAnotherParameter) {
  ElewiseParam now;
  EXPECT_EQ(atb::CloneOperationParam(operation.get(), now), 0);
  EXPECT_EQ(now.elewiseType, ElewiseParam::ELEWISE_ADD);
  ASSERT_EQ(set_up(), 0);
  EXPECT_EQ(atb::UpdateOperationParam(operation.get(), now), 0);
  EXPECT_EQ(execute(), 0) << "an equal parameter changes nothing";
  EXPECT_EQ(atb::UpdateOperationParam(operation.get(), elewise(ElewiseParam::ELEWISE_SUB)), 0);
  EXPECT_EQ(execute(), atb::ERROR_INVALID_PARAM) << "needs a Setup";
  ASSERT_EQ(atb.run(*operation, pack), 0);
  EXPECT_EQ(sum.values<float>(), (std::vector<float>{-9, -18, -27, -6, -15, -24}));
  EXPECT_EQ(atb::UpdateOperationParam(operation.get(), elewise(ElewiseParam::ELEWISE_UNDEFINED)), 1);
  EXPECT_EQ(atb::UpdateOperationParam<ElewiseParam>(nullptr, now), 1);
  EXPECT_EQ(atb::CloneOperationParam<ElewiseParam>(nullptr, now), 1);
  atb::GraphParam graph;
  EXPECT_EQ(atb::CloneOperationParam(operation.get(), graph), 1);
  EXPECT_EQ(atb::UpdateOperationParam(operation.get(), graph), 1);
}

TEST_F(AtbOperationTest, SaysWhenItWasDestroyed) {
  EXPECT_EQ(atb::DestroyOperation(nullptr), 0);
  atb::Operation* gone = operation.release();
  ASSERT_EQ(gone->Setup(pack, size, atb.context.get()), 0);
  EXPECT_EQ(atb::DestroyOperation(gone), 0);
  EXPECT_EQ(atb::DestroyOperation(gone), 0) << "not freed twice";
  EXPECT_EQ(gone->Setup(pack, size, atb.context.get()), atb::ERROR_INVALID_OPERATION_ADDR);
  EXPECT_THAT(recent_message(), HasSubstr("Setup: the operation was destroyed"));
  EXPECT_EQ(gone->Execute(pack, nullptr, 0, atb.context.get()), atb::ERROR_INVALID_OPERATION_ADDR);
  atb::SVector<atb::TensorDesc> out;
  EXPECT_EQ(gone->InferShape({}, out), atb::ERROR_INVALID_OPERATION_ADDR);
  for (int i = 0; i < 300; ++i) EXPECT_EQ(atb::DestroyOperation(make(elewise(ElewiseParam::ELEWISE_ADD))), 0);
}

TEST_F(AtbOperationTest, QueuedWorkOutlivesIt) {
  aclrtEvent gate = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&gate), 0);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(set_up(), 0);
    ASSERT_EQ(execute(), 0);
  }
  operation.reset();
  atb.context.reset();
  ASSERT_EQ(atb.device.synchronize(), 0);
  EXPECT_EQ(sum.values<float>()[5], 36);
  aclrtDestroyEvent(gate);
}

TEST_F(AtbOperationTest, RunsOnTheStreamOfItsId) {
  EXPECT_EQ(atb::GetExecuteStreamId(operation.get()), 0u);
  ASSERT_EQ(atb::SetExecuteStreamId(operation.get(), 1), 0);
  EXPECT_EQ(atb::GetExecuteStreamId(operation.get()), 1u);
  EXPECT_EQ(atb::SetExecuteStreamId(nullptr, 1), 1);
  ASSERT_EQ(set_up(), 0);
  EXPECT_EQ(execute(), atb::ERROR_INVALID_PARAM);
  EXPECT_THAT(recent_message(), HasSubstr("its stream id is 1 but the context has 1 streams"));
  aclrtStream second = nullptr;
  ASSERT_EQ(aclrtCreateStream(&second), 0);
  ASSERT_EQ(atb.context->SetExecuteStreams({atb.device.stream(), second}), 0);
  EXPECT_EQ(execute(), 0);
  EXPECT_EQ(aclrtSynchronizeStream(second), 0);
  EXPECT_EQ(sum.values<float>()[0], 11);
  aclrtDestroyStream(second);
}

TEST_F(AtbOperationTest, PreparesAndLaunchesInTurn) {
  ASSERT_EQ(set_up(), 0);
  ASSERT_EQ(atb.context->SetExecuteType(atb::EXECUTE_LAUNCH), 0);
  EXPECT_EQ(execute(), atb::ERROR_INVALID_PARAM);
  EXPECT_THAT(recent_message(), HasSubstr("nothing is prepared"));
  ASSERT_EQ(atb.context->SetExecuteType(atb::EXECUTE_PRELAUNCH), 0);
  EXPECT_EQ(execute(), 0);
  EXPECT_EQ(atb.device.synchronize(), 0);
  EXPECT_NE(sum.values<float>()[0], 11) << "nothing was queued";
  std::thread([&] {  // the type is the thread's
    EXPECT_EQ(atb.context->GetExecuteType(), atb::EXECUTE_NORMAL);
    aclrtSetDevice(0);
    atb.context->SetExecuteType(atb::EXECUTE_LAUNCH);
    EXPECT_EQ(execute(), 0) << recent_message();
  })
      .join();
  EXPECT_EQ(atb.device.synchronize(), 0);
  EXPECT_EQ(sum.values<float>()[0], 11);
  EXPECT_EQ(atb.context->SetExecuteType(static_cast<atb::ExecuteType>(3)), 1);
  ASSERT_EQ(atb.context->SetExecuteType(atb::EXECUTE_NORMAL), 0);
}

TEST(AtbContext, IsMadeInThreeWays) {
  EXPECT_EQ(atb::CreateContext(nullptr), 1);
  atb::Context* context = nullptr;
  EXPECT_EQ(atb::CreateContext(nullptr, 128, 32), 1);
  for (const auto& [host, device] : {std::pair{127u, 32u}, {1025u, 32u}, {128u, 31u}, {128u, 1025u}})
    EXPECT_EQ(atb::CreateContext(&context, host, device), 1);
  EXPECT_EQ(context, nullptr);
  ASSERT_EQ(atb::CreateContext(&context, 1024, 1024), 0);
  EXPECT_EQ(atb::DestroyContext(context), 0);
  int allocated = 0, freed = 0;
  const std::function<void*(std::size_t)> alloc = [&](std::size_t bytes) {
    ++allocated;
    return std::malloc(bytes);
  };
  const std::function<void(void*)> dealloc = [&](void* memory) {
    ++freed;
    std::free(memory);
  };
  EXPECT_EQ(atb::CreateContext(&context, alloc, nullptr), 1);
  EXPECT_EQ(atb::CreateContext(&context, nullptr, dealloc), 1);
  ASSERT_EQ(atb::CreateContext(&context, alloc, dealloc), 0);
  EXPECT_EQ(atb::DestroyContext(context), 0);
  EXPECT_EQ(allocated, 1);
  EXPECT_EQ(freed, 1);
  EXPECT_EQ(atb::DestroyContext(nullptr), 0);
  EXPECT_EQ(atb::DestroyContext(context), atb::ERROR_INVALID_CONTEXT_ADDR);
}

TEST(AtbContext, KeepsStreamsAndModes) {
  atb::Context* context = nullptr;
  ASSERT_EQ(atb::CreateContext(&context), 0);
  const ContextPtr owner(context);
  EXPECT_EQ(context->GetExecuteStream(), nullptr);
  EXPECT_EQ(context->GetExecuteStreams(), std::vector<aclrtStream>{nullptr});
  const auto one = reinterpret_cast<aclrtStream>(8), two = reinterpret_cast<aclrtStream>(16);
  EXPECT_EQ(context->SetExecuteStreams({}), 1);
  EXPECT_EQ(context->SetExecuteStreams({one, two}), 0);
  EXPECT_EQ(context->SetExecuteStream(two), 0);
  EXPECT_EQ(context->GetExecuteStreams(), (std::vector<aclrtStream>{two, two}));
  EXPECT_EQ(context->SetExecuteStreams({one}), 0);
  EXPECT_EQ(context->GetExecuteStream(), one);
  EXPECT_FALSE(context->GetAsyncTilingCopyStatus());
  EXPECT_EQ(context->SetAsyncTilingCopyStatus(true), 0);
  EXPECT_EQ(context->SetAsyncTilingCopyStatus(true), 0);
  EXPECT_TRUE(context->GetAsyncTilingCopyStatus());
  EXPECT_EQ(context->SetLaunchMode(static_cast<atb::LaunchMode>(2)), 1);
  EXPECT_EQ(context->SetLaunchMode(atb::GRAPH_LAUNCH_MODE), 0);
  EXPECT_EQ(context->GetLaunchMode(), atb::GRAPH_LAUNCH_MODE);
}

TEST_F(AtbOperationTest, KeepsItsShapesInGraphLaunchMode) {
  ASSERT_EQ(atb.context->SetLaunchMode(atb::GRAPH_LAUNCH_MODE), 0);
  AtbTensor one = AtbTensor::of<float>({1}, {5}), two = AtbTensor::empty<float>({1});
  ASSERT_EQ(operation->Setup(Atb::pack({&one, &one}, {&two}), size, atb.context.get()), 0);
  ASSERT_EQ(set_up(), 0) << "before the first Execute";
  ASSERT_EQ(execute(), 0);
  EXPECT_EQ(set_up(), 0);
  EXPECT_EQ(operation->Setup(Atb::pack({&one, &one}, {&two}), size, atb.context.get()), 8);
  EXPECT_THAT(recent_message(), HasSubstr("GRAPH_LAUNCH_MODE"));
}

TEST_F(AtbOperationTest, NeedsTheContextAlive) {
  ASSERT_EQ(set_up(), 0);
  atb::Context* gone = atb.context.release();
  EXPECT_EQ(atb::DestroyContext(gone), 0);
  EXPECT_EQ(operation->Execute(pack, nullptr, size, gone), atb::ERROR_INVALID_CONTEXT_ADDR);
  EXPECT_THAT(recent_message(), HasSubstr("ElewiseOperation: context"));
  EXPECT_EQ(operation->Setup(pack, size, gone), atb::ERROR_INVALID_CONTEXT_ADDR);
  EXPECT_EQ(gone->GetExecuteStream(), nullptr) << "what an operation of the program asks for";
}

class Infra : public atb::OperationInfra {
 public:
  std::string GetName() const override { return "Infra"; }
  atb::Status InferShape(const atb::SVector<atb::TensorDesc>&,
                         atb::SVector<atb::TensorDesc>&) const override {
    return 0;
  }
  std::uint32_t GetInputNum() const override { return 0; }
  std::uint32_t GetOutputNum() const override { return 0; }
  atb::Status Setup(const atb::VariantPack&, std::uint64_t&, atb::Context*) override { return 0; }
  atb::Status Execute(const atb::VariantPack&, std::uint8_t*, std::uint64_t, atb::Context*) override {
    return 0;
  }
};

TEST_F(AtbOperationTest, OfAProgramKnowsItsStream) {
  Infra infra;
  EXPECT_EQ(atb::SetExecuteStreamId(&infra, 1), 0);
  EXPECT_EQ(atb::GetExecuteStreamId(&infra), 1u);
  Infra copy(infra), assigned;
  assigned = infra;
  EXPECT_EQ(copy.GetExecuteStreamId() + assigned.GetExecuteStreamId(), 2u);
  EXPECT_EQ(infra.GetExecuteStream(nullptr), nullptr);
  EXPECT_EQ(infra.GetExecuteStream(atb.context.get()), nullptr);
  infra.SetExecuteStreamId(0);
  EXPECT_EQ(infra.GetExecuteStream(atb.context.get()), atb.device.stream());
  struct Plain final : Infra {};  // any operation that is neither built in nor an OperationInfra
  class Own final : public atb::Operation {
   public:
    std::string GetName() const override { return "Own"; }
    atb::Status InferShape(const atb::SVector<atb::TensorDesc>&,
                           atb::SVector<atb::TensorDesc>&) const override {
      return 0;
    }
    std::uint32_t GetInputNum() const override { return 0; }
    std::uint32_t GetOutputNum() const override { return 0; }
    atb::Status Setup(const atb::VariantPack&, std::uint64_t&, atb::Context*) override { return 0; }
    atb::Status Execute(const atb::VariantPack&, std::uint8_t*, std::uint64_t, atb::Context*) override {
      return 0;
    }
  };
  Own own;
  EXPECT_EQ(atb::SetExecuteStreamId(&own, 1), 1);
  EXPECT_EQ(atb::GetExecuteStreamId(&own), 0u);
  EXPECT_EQ(atb::DestroyOperation(new Own), 0);
}

TEST(AtbThreads, WorkIndependently) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      const Atb atb(t);
      const auto value = static_cast<float>(t);
      AtbTensor a = AtbTensor::of<float>({2}, {value, 1}), b = AtbTensor::of<float>({2}, {1, value});
      for (int i = 0; i < 50; ++i) {
        const std::vector<AtbTensor> sum = atb.outputs_of(elewise(ElewiseParam::ELEWISE_ADD), {&a, &b});
        ASSERT_EQ(sum[0].values<float>(), (std::vector<float>{value + 1, value + 1}));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

// Adds or multiplies, as `adds` says at each Setup.
TEST_F(AtbOperationTest, IfCondAsksAtEachSetup) {
  const OperationPtr product(make(elewise(ElewiseParam::ELEWISE_MUL)));
  bool adds = true;
  atb::common::IfCondParam param;
  param.userData = &adds;
  param.handle = [](void* data) { return *static_cast<bool*>(data); };
  param.opA = operation.get();
  param.opB = product.get();
  const OperationPtr either(make(param));
  EXPECT_EQ(either->GetInputNum(), 2u);
  EXPECT_EQ(atb.run(*either, pack), 0) << recent_message();
  EXPECT_EQ(sum.values<float>(), (std::vector<float>{11, 22, 33, 14, 25, 36}));
  adds = false;
  EXPECT_EQ(either->Execute(pack, nullptr, 0, atb.context.get()), 0);
  EXPECT_EQ(atb.device.synchronize(), 0);
  EXPECT_EQ(sum.values<float>(), (std::vector<float>{11, 22, 33, 14, 25, 36})) << "Setup had chosen";
  EXPECT_EQ(atb.run(*either, pack), 0) << recent_message();
  EXPECT_EQ(sum.values<float>(), (std::vector<float>{10, 40, 90, 40, 100, 180}));

  ASSERT_EQ(atb.context->SetExecuteType(atb::EXECUTE_PRELAUNCH), 0);
  adds = true;
  ASSERT_EQ(either->Setup(pack, size, atb.context.get()), 0);
  ASSERT_EQ(either->Execute(pack, nullptr, 0, atb.context.get()), 0);
  EXPECT_EQ(atb.device.synchronize(), 0);
  EXPECT_EQ(sum.values<float>(), (std::vector<float>{10, 40, 90, 40, 100, 180})) << "nothing queued yet";
  ASSERT_EQ(atb.context->SetExecuteType(atb::EXECUTE_LAUNCH), 0);
  ASSERT_EQ(either->Execute(pack, nullptr, 0, atb.context.get()), 0);
  ASSERT_EQ(atb.context->SetExecuteType(atb::EXECUTE_NORMAL), 0);
  EXPECT_EQ(atb.device.synchronize(), 0);
  EXPECT_EQ(sum.values<float>(), (std::vector<float>{11, 22, 33, 14, 25, 36}));

  param.handle = [](void* data) { return !*static_cast<bool*>(data); };
  ASSERT_EQ(atb::UpdateOperationParam(either.get(), param), 0);
  EXPECT_EQ(atb.run(*either, pack), 0) << recent_message();
  EXPECT_EQ(sum.values<float>(), (std::vector<float>{10, 40, 90, 40, 100, 180})) << "the other way round";
}

// In a graph, with operations on another stream; the graph does not own these.
TEST_F(AtbOperationTest, IfCondIsANodeOfAGraph) {
  const OperationPtr product(make(elewise(ElewiseParam::ELEWISE_MUL)));
  bool adds = false;
  atb::common::IfCondParam param;
  param.userData = &adds;
  param.handle = [](void* data) { return *static_cast<bool*>(data); };
  param.opA = operation.get();
  param.opB = product.get();
  atb::GraphParam graph_param;
  graph_param.inTensorNum = 2;
  graph_param.outTensorNum = graph_param.internalTensorNum = 1;
  graph_param.nodes.resize(2);
  graph_param.nodes[0] = {make(param), {0, 1}, {3}};
  graph_param.nodes[1] = {make(elewise(ElewiseParam::ELEWISE_ADD)), {3, 1}, {2}};
  OperationPtr graph(make(graph_param));
  aclrtStream second = nullptr;
  ASSERT_EQ(aclrtCreateStream(&second), 0);
  ASSERT_EQ(atb.context->SetExecuteStreams({atb.device.stream(), second}), 0);
  ASSERT_EQ(atb::SetExecuteStreamId(graph.get(), 1), 0);
  EXPECT_EQ(atb::GetExecuteStreamId(product.get()), 1u);
  const Workspace workspace(512);
  ASSERT_EQ(graph->Setup(pack, size, atb.context.get()), 0) << recent_message();
  ASSERT_EQ(size, 512u);
  ASSERT_EQ(graph->Execute(pack, workspace.data(), size, atb.context.get()), 0) << recent_message();
  ASSERT_EQ(aclrtSynchronizeStream(second), 0);
  EXPECT_EQ(sum.values<float>(), (std::vector<float>{20, 60, 120, 50, 120, 210}));
  graph.reset();
  EXPECT_EQ(product->GetName(), "ElewiseOperation");
  ASSERT_EQ(atb.context->SetExecuteStream(atb.device.stream()), 0);
  ASSERT_EQ(aclrtDestroyStream(second), 0);
}

TEST_F(AtbOperationTest, IfCondNeedsTwoOperationsOfOneForm) {
  const OperationPtr one_input(make(elewise(ElewiseParam::ELEWISE_COS)));
  bool adds = true;
  atb::common::IfCondParam param;
  atb::Operation* made = nullptr;
  const auto refused = [&](const char* message) {
    EXPECT_EQ(atb::CreateOperation(param, &made), 1) << message;
    EXPECT_THAT(recent_message(), HasSubstr(message));
  };
  refused("userData is null");
  param.userData = &adds;
  refused("handle is null");
  param.handle = [](void*) { return true; };
  refused("opA is null");
  param.opA = operation.get();
  refused("opB is null");
  param.opB = one_input.get();
  refused("opA has 2 inputs and 1 outputs, opB 1 and 1");
}

}  // namespace
}  // namespace oracle
