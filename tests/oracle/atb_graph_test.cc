// Moeyard. SPDX-License-Identifier: Apache-2.0
// Graphs: what is refused, shapes, memory, nodes of every sort, the builder.
#include <cmath>
#include <thread>

#include "support/atb_plugin.h"

namespace oracle {
namespace {

using atb::infer::ElewiseParam;
using testing::HasSubstr;

atb::Operation* elewise(ElewiseParam::ElewiseType type, float factor = 0) {
  ElewiseParam param;
  param.elewiseType = type;
  param.mulsParam.varAttr = factor;
  return make(param);
}
atb::Operation* add() { return elewise(ElewiseParam::ELEWISE_ADD); }
atb::Operation* muls(float factor) { return elewise(ElewiseParam::ELEWISE_MULS, factor); }

using Ids = atb::SVector<std::uint32_t>;
atb::Node node(atb::Operation* operation, const Ids& inputs, const Ids& outputs) {
  atb::Node made;
  made.operation = operation;
  made.inTensorIds = inputs;
  made.outTensorIds = outputs;
  return made;
}

atb::GraphParam graph(std::uint32_t inputs, std::uint32_t outputs, std::uint32_t internal,
                      std::vector<atb::Node> nodes) {
  atb::GraphParam param;
  param.name = "graph";
  param.inTensorNum = inputs;
  param.outTensorNum = outputs;
  param.internalTensorNum = internal;
  param.nodes = std::move(nodes);
  return param;
}

// (a + b) + (c + d)
atb::GraphParam sum_of_four() {
  return graph(4, 1, 2, {node(add(), {0, 1}, {5}), node(add(), {2, 3}, {6}), node(add(), {5, 6}, {4})});
}

// x * 2 * 3 * 5 ..., one factor per node
atb::GraphParam chain(const std::vector<float>& factors) {
  const auto count = static_cast<std::uint32_t>(factors.size());
  std::vector<atb::Node> nodes;
  for (std::uint32_t i = 0; i < count; ++i)
    nodes.push_back(node(muls(factors[i]), {i == 0 ? 0 : 1 + i}, {i + 1 == count ? 1 : 2 + i}));
  return graph(1, 1, count - 1, std::move(nodes));
}

void destroy_nodes(const atb::GraphParam& param) {
  for (const atb::Node& one : param.nodes) EXPECT_EQ(atb::DestroyOperation(one.operation), 0);
}

class AtbGraphTest : public testing::Test {
 protected:
  Atb atb;
};

TEST_F(AtbGraphTest, AddsFourTensorsAsTheMixedProgramDoes) {
  const OperationPtr operation(make(sum_of_four()));
  EXPECT_EQ(operation->GetName(), "graph");
  EXPECT_EQ(operation->GetInputNum(), 4u);
  const AtbTensor x = AtbTensor::of<F16>({2, 2}, std::vector<F16>(4, F16::raw(2)));
  const std::vector<AtbTensor> sums = atb.outputs(*operation, {&x, &x, &x, &x});
  EXPECT_EQ(sums[0].values<std::uint16_t>(), std::vector<std::uint16_t>(4, 8));
  GeluOperation gelu;
  EXPECT_EQ(atb.outputs(gelu, {&sums[0]})[0].values<std::uint16_t>(), std::vector<std::uint16_t>(4, 4));
}

TEST_F(AtbGraphTest, RefusesWhatCannotRun) {
  struct Case {
    const char* message;
    std::function<void(atb::GraphParam&)> spoil;
  };
  const Case cases[] = {
      {"name is \"a b\" but", [](auto& g) { g.name = "a b"; }},
      {"at most 128 letters", [](auto& g) { g.name = std::string(129, 'x'); }},
      {"inTensorNum is 257 but must be at most 256", [](auto& g) { g.inTensorNum = 257; }},
      {"outTensorNum is 257", [](auto& g) { g.outTensorNum = 257; }},
      {"internalTensorNum is 257", [](auto& g) { g.internalTensorNum = 257; }},
      {"the number of nodes is 1025", [](auto& g) { g.nodes.resize(1025); }},
      {"node 3 has no operation", [](auto& g) { g.nodes.emplace_back(); }},
      {"node 0 (ElewiseOperation) has 1 inTensorIds but its operation needs 2",
       [](auto& g) { g.nodes[0].inTensorIds = {0}; }},
      {"node 1 (ElewiseOperation) has 2 outTensorIds",
       [](auto& g) {
         g.nodes[1].outTensorIds = {6, 5};
       }},
      {"node 0 (ElewiseOperation) names tensor 7 but the graph has 7",
       [](auto& g) { g.nodes[0].inTensorIds[0] = 7; }},
      {"node 2 (ElewiseOperation) names tensor 99", [](auto& g) { g.nodes[2].outTensorIds[0] = 99; }},
      {"node 0 (ElewiseOperation) reads tensor 5, an internal tensor, which no node before it has written",
       [](auto& g) { std::swap(g.nodes[0], g.nodes[2]); }},
      {"no node writes tensor 4, an output of the graph", [](auto& g) { g.nodes[2].outTensorIds[0] = 5; }},
      {"no node writes tensor 7, an internal tensor", [](auto& g) { g.internalTensorNum = 3; }},
      {"belongs to another node", [](auto& g) { g.nodes[1].operation = g.nodes[0].operation; }},
  };
  for (const Case& c : cases) {
    atb::GraphParam param = sum_of_four();
    const std::vector<atb::Node> nodes = param.nodes;
    c.spoil(param);
    atb::Operation* made = nullptr;
    EXPECT_EQ(atb::CreateOperation(param, &made), atb::ERROR_INVALID_GRAPH) << c.message;
    EXPECT_THAT(recent_message(), HasSubstr(c.message));
    EXPECT_EQ(made, nullptr);
    param.nodes = nodes;  // they stay the caller's
    destroy_nodes(param);
  }
  EXPECT_EQ(atb::CreateOperation(atb::GraphParam(), nullptr), atb::ERROR_INVALID_PARAM);
}

TEST_F(AtbGraphTest, OwnsTheOperationsOfItsNodes) {
  atb::GraphParam param = sum_of_four();
  atb::Operation* inner = param.nodes[0].operation;
  OperationPtr first(make(param));
  atb::Operation* second = nullptr;
  EXPECT_EQ(atb::CreateOperation(param, &second), atb::ERROR_INVALID_GRAPH);
  EXPECT_EQ(atb::DestroyOperation(inner), 0) << "logged, and nothing else";
  const AtbTensor x = AtbTensor::of<float>({1}, {1});
  EXPECT_EQ(atb.outputs(*first, {&x, &x, &x, &x})[0].values<float>(), std::vector<float>{4});
  atb::GraphParam again;
  EXPECT_EQ(atb::CloneOperationParam(first.get(), again), 0);
  EXPECT_EQ(again.nodes.size(), 3u);
  EXPECT_EQ(atb::UpdateOperationParam(first.get(), again), 1);
  first.reset();
  std::uint64_t size = 0;
  EXPECT_EQ(inner->Setup({}, size, atb.context.get()), atb::ERROR_INVALID_OPERATION_ADDR);
  param.nodes.clear();
  param.inTensorNum = param.outTensorNum = param.internalTensorNum = 0;
  param.name = "";
  const OperationPtr nothing(make(param));
  EXPECT_EQ(nothing->GetName(), "GraphOperation");
  EXPECT_EQ(atb.run(*nothing, {}), 0) << recent_message();
}

TEST_F(AtbGraphTest, ReusesMemoryOfInternalTensors) {
  const OperationPtr operation(make(chain({2, 3, 5, 7, 1, 1, 1, 1, 1, 0.5f})));
  const AtbTensor x = AtbTensor::of<float>({300}, std::vector<float>(300, 1));
  AtbTensor y = AtbTensor::empty<float>({300});
  const atb::VariantPack pack = Atb::pack({&x}, {&y});
  std::uint64_t size = 0;
  ASSERT_EQ(operation->Setup(pack, size, atb.context.get()), 0) << recent_message();
  EXPECT_EQ(size, 2u * 1536) << "each node needs two of the nine tensors";
  ASSERT_EQ(atb.run(*operation, pack), 0) << recent_message();
  EXPECT_EQ(y.values<float>(), std::vector<float>(300, 105));
}

// Random graphs of additions over tensors of one shape, against the sums by hand: memory that is reused too early
// would show.
TEST_F(AtbGraphTest, ComputesWhatItsNodesSay) {
  std::mt19937 random(seed());
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE("MOEYARD_TEST_SEED=" + std::to_string(seed()) + ", round " + std::to_string(round));
    const std::uint32_t inputs = 1 + random() % 3, nodes = 1 + random() % 20;
    std::vector<double> factors(nodes), values(inputs + 1 + nodes);
    std::vector<AtbTensor> tensors;
    for (std::uint32_t i = 0; i < inputs; ++i) {
      values[i] = i + 1;
      tensors.push_back(AtbTensor::of<float>({2, 100}, std::vector<float>(200, static_cast<float>(i + 1))));
    }
    std::vector<std::uint32_t> readable(inputs);
    std::iota(readable.begin(), readable.end(), 0);
    atb::GraphParam param = graph(inputs, 1, nodes - 1, {});
    for (std::uint32_t i = 0; i < nodes; ++i) {
      const std::uint32_t a = readable[random() % readable.size()], b = readable.back();
      const bool last = i + 1 == nodes;
      std::uint32_t out = last ? inputs : inputs + 1 + i;
      if (!last && b > inputs && random() % 4 == 0) out = b;  // in place
      param.nodes.push_back(node(add(), {a, b}, {out}));
      values[out] = values[a] + values[b];
      if (out != b) readable.push_back(out);
    }
    // Internal tensors that were never written are not allowed: number them anew.
    std::vector<std::uint32_t> number(inputs + 1 + nodes, 0);
    std::iota(number.begin(), number.begin() + inputs + 1, 0);
    std::uint32_t next = inputs + 1;
    for (atb::Node& one : param.nodes) {
      for (std::uint32_t& id : one.inTensorIds) id = number[id];
      std::uint32_t& out = one.outTensorIds[0];
      if (out > inputs && number[out] == 0) number[out] = next++;
      out = number[out];
    }
    param.internalTensorNum = next - inputs - 1;
    const OperationPtr operation(make(param));
    ASSERT_NE(operation, nullptr);
    std::vector<const AtbTensor*> handles;
    for (const AtbTensor& tensor : tensors) handles.push_back(&tensor);
    const std::vector<AtbTensor> got = atb.outputs(*operation, handles);
    ASSERT_EQ(got[0].values<float>(), std::vector<float>(200, static_cast<float>(values[inputs])));
  }
}

TEST_F(AtbGraphTest, InfersShapesNodeByNode) {
  const OperationPtr operation(make(sum_of_four()));
  atb::SVector<atb::TensorDesc> out(1);
  const atb::TensorDesc column = desc_of(ACL_FLOAT, {4, 1}), row = desc_of(ACL_FLOAT, {3}),
                        three = desc_of(ACL_FLOAT, {2, 1, 1});
  ASSERT_EQ(operation->InferShape({column, row, three, row}, out), 0) << recent_message();
  EXPECT_EQ(shape_of(out[0]), (Shape{2, 4, 3}));
  EXPECT_EQ(operation->InferShape({column, row, three, desc_of(ACL_FLOAT16, {3})}, out), 13);
  EXPECT_EQ(operation->InferShape({column, row, desc_of(ACL_FLOAT, {5, 3}), row}, out), 8);
  EXPECT_EQ(operation->InferShape({column, row, three}, out), 5);
}

TEST_F(AtbGraphTest, AsksTheProgramForItsShapes) {
  int answer = 0;
  atb::TensorDesc shape = desc_of(ACL_FLOAT, {2});
  atb::GraphParam param = chain({2, 3});
  param.inferShapeFunc = [&](const atb::SVector<atb::TensorDesc>&, atb::SVector<atb::TensorDesc>& out) {
    if (answer == 1000) throw std::runtime_error("no idea");
    out.at(0) = shape;
    return answer;
  };
  const OperationPtr operation(make(param));
  const AtbTensor x = AtbTensor::of<float>({2}, {1, 2});
  EXPECT_EQ(atb.outputs(*operation, {&x})[0].values<float>(), (std::vector<float>{6, 12}));
  atb::SVector<atb::TensorDesc> out;
  answer = 77;
  EXPECT_EQ(operation->InferShape({x.desc()}, out), 77);
  answer = 1000;
  EXPECT_EQ(operation->InferShape({x.desc()}, out), atb::ERROR_GRAPH_INFERSHAPE_FUNC_FAIL);
  EXPECT_THAT(recent_message(), HasSubstr("no idea"));
  answer = 0;
  for (const char* lacks : {"dimensions", "a dtype", "a format"}) {
    shape = desc_of(ACL_FLOAT, {2});
    if (*lacks == 'd') shape.shape.dimNum = 0;
    if (std::string(lacks) == "a dtype") shape.dtype = ACL_DT_UNDEFINED;
    if (std::string(lacks) == "a format") shape.format = ACL_FORMAT_UNDEFINED;
    EXPECT_EQ(operation->InferShape({x.desc()}, out), atb::ERROR_GRAPH_INFERSHAPE_FUNC_FAIL);
    EXPECT_THAT(recent_message(), HasSubstr(std::string("without ") + lacks));
  }
  shape = desc_of(ACL_FLOAT, {3});  // not what the nodes make
  const AtbTensor y = AtbTensor::empty<float>({3});
  EXPECT_EQ(atb.run(*operation, Atb::pack({&x}, {&y})), 8);
}

TEST_F(AtbGraphTest, ViewsInputsInOtherShapes) {
  atb::GraphParam param = graph(2, 1, 1, {node(muls(10), {0}, {3}), node(add(), {3, 1}, {2})});
  Shape to = {3, 2};
  bool throws = false;
  param.nodes[1].inTensorReshapeFuncs = {[&](const atb::Dims& old_shape, atb::Dims& new_shape) {
    if (throws) throw std::runtime_error("no such view");
    EXPECT_EQ(new_shape.dimNum, 0u);
    EXPECT_EQ(old_shape.dimNum, 1u);
    new_shape.dimNum = to.size();
    std::copy(to.begin(), to.end(), new_shape.dims);
  }};
  const OperationPtr operation(make(param));
  const AtbTensor x = AtbTensor::of<float>({6}, {1, 2, 3, 4, 5, 6}),
                  y = AtbTensor::of<float>({3, 1}, {1, 2, 3});
  const std::vector<AtbTensor> got = atb.outputs(*operation, {&x, &y});
  EXPECT_EQ(got[0].shape(), (Shape{3, 2}));
  EXPECT_EQ(got[0].values<float>(), (std::vector<float>{11, 21, 32, 42, 53, 63}));
  std::uint64_t size = 0;
  const atb::VariantPack pack = Atb::pack({&x, &y}, {&got[0]});
  to = {3, 3};
  EXPECT_EQ(operation->Setup(pack, size, atb.context.get()), atb::ERROR_GRAPH_NODE_RESHAPE_FUNC_FAIL);
  EXPECT_THAT(recent_message(), HasSubstr("node 1 (ElewiseOperation) makes [3,3] of [6]"));
  to = {};
  EXPECT_EQ(operation->Setup(pack, size, atb.context.get()), atb::ERROR_GRAPH_NODE_RESHAPE_FUNC_FAIL);
  throws = true;
  EXPECT_EQ(operation->Setup(pack, size, atb.context.get()), atb::ERROR_GRAPH_NODE_RESHAPE_FUNC_FAIL);
  EXPECT_THAT(recent_message(), HasSubstr("no such view"));
}

TEST_F(AtbGraphTest, TakesChunksOfInputs) {
  atb::GraphParam param = graph(1, 1, 1, {node(muls(10), {0}, {2}), node(add(), {0, 2}, {1})});
  param.nodes[1].inTensorChunks = {{2, 1}, {2, 0}};
  const OperationPtr operation(make(param));
  const AtbTensor x = AtbTensor::of<float>({4, 1}, {1, 2, 3, 4});
  EXPECT_EQ(atb.outputs(*operation, {&x})[0].values<float>(), (std::vector<float>{13, 24}));
  const AtbTensor odd = AtbTensor::of<float>({3, 1}, {1, 2, 3});
  std::uint64_t size = 0;
  EXPECT_EQ(operation->Setup(Atb::pack({&odd}, {&odd}), size, atb.context.get()),
            atb::ERROR_INVALID_GRAPH_NODE_CHUNK);
  const std::vector<std::vector<atb::Chunk>> bad = {{{2, 1}}, {{0, 0}, {1, 0}}, {{2, 2}, {1, 0}}};
  for (const std::vector<atb::Chunk>& chunks : bad) {
    param = graph(1, 1, 1, {node(muls(10), {0}, {2}), node(add(), {0, 2}, {1})});
    param.nodes[1].inTensorChunks.clear();
    for (const atb::Chunk& chunk : chunks) param.nodes[1].inTensorChunks.push_back(chunk);
    const OperationPtr refused(make(param));
    EXPECT_EQ(refused->Setup(Atb::pack({&x}, {&x}), size, atb.context.get()),
              atb::ERROR_INVALID_GRAPH_NODE_CHUNK);
  }
}

TEST_F(AtbGraphTest, NestsGraphsAndOperationsOfTheProgram) {
  auto* gelu = new GeluOperation;
  atb::Operation* inner = make(chain({2, 0.5f, 1}));
  const OperationPtr operation(
      make(graph(1, 1, 2, {node(inner, {0}, {2}), node(gelu, {2}, {3}), node(muls(2), {3}, {1})})));
  const AtbTensor x = AtbTensor::of<float>({2, 2}, {0, 1, -1, 2});
  for (int i = 1; i <= 3; ++i) {
    const std::vector<float> got = atb.outputs(*operation, {&x})[0].values<float>();
    EXPECT_NEAR(got[1], 2 * 0.841192007, 1e-6);
    EXPECT_NEAR(got[2], 2 * -0.158808008, 1e-6);
    EXPECT_EQ(gelu->setups, i);
    EXPECT_EQ(gelu->executes, i);
  }
}

TEST_F(AtbGraphTest, FailsWithWhatAnOperationOfTheProgramLeavesUndone) {
  const OperationPtr operation(
      make(graph(1, 1, 1, {node(new GeluOperation, {0}, {2}), node(muls(2), {2}, {1})})));
  const AtbTensor x = AtbTensor::of<float>({1, 1, 2, 1}, {0, 1});
  atb::SVector<atb::TensorDesc> out;
  EXPECT_EQ(operation->InferShape({x.desc()}, out), atb::ERROR_INVALID_TENSOR_SIZE);
  EXPECT_THAT(recent_message(),
              HasSubstr("InferShape of node 0 (Gelu) made outTensorDescs[0] FP32[0,0,0,0]"));
}

// Does whatever the test says.
class Actor final : public atb::Operation {
 public:
  std::string GetName() const override { return "Actor"; }
  atb::Status InferShape(const atb::SVector<atb::TensorDesc>& in,
                         atb::SVector<atb::TensorDesc>& out) const override {
    out.at(0) = in.at(0);
    return infer_code;
  }
  std::uint32_t GetInputNum() const override { return 1; }
  std::uint32_t GetOutputNum() const override { return 1; }
  atb::Status Setup(const atb::VariantPack&, std::uint64_t& size, atb::Context*) override {
    if (throws) throw std::bad_alloc();
    size = workspace;
    return setup_code;
  }
  atb::Status Execute(const atb::VariantPack& pack, std::uint8_t* memory, std::uint64_t size,
                      atb::Context*) override {
    if (throws) throw std::runtime_error("broken");
    EXPECT_NE(pack.inTensors.at(0).deviceData, nullptr);
    EXPECT_GE(size, workspace);
    given = memory;
    return execute_code;
  }
  int infer_code = 0, setup_code = 0, execute_code = 0;
  bool throws = false;
  std::uint64_t workspace = 0;
  std::uint8_t* given = nullptr;
};

TEST_F(AtbGraphTest, PassesOnWhatOperationsOfTheProgramReturn) {
  auto *first = new Actor, *second = new Actor;
  const OperationPtr operation(make(graph(1, 1, 1, {node(first, {0}, {2}), node(second, {2}, {1})})));
  const AtbTensor x = AtbTensor::of<float>({2}, {1, 2}), y = AtbTensor::empty<float>({2});
  const atb::VariantPack pack = Atb::pack({&x}, {&y});
  first->workspace = 700, second->workspace = 100;
  std::uint64_t size = 0;
  ASSERT_EQ(operation->Setup(pack, size, atb.context.get()), 0) << recent_message();
  EXPECT_EQ(size, 512u + 1024u) << "one tensor, and the larger workspace";
  const Workspace workspace(size);
  const auto execute = [&] { return operation->Execute(pack, workspace.data(), size, atb.context.get()); };
  ASSERT_EQ(execute(), 0) << recent_message();
  EXPECT_EQ(first->given, second->given);
  second->execute_code = 507;
  EXPECT_EQ(execute(), 507);
  second->throws = true;
  EXPECT_EQ(execute(), atb::ERROR_RT_FAIL);
  EXPECT_THAT(recent_message(), HasSubstr("node 1 (Actor): Execute ended with an exception: broken"));
  EXPECT_EQ(operation->Setup(pack, size, atb.context.get()), atb::ERROR_OUT_OF_HOST_MEMORY);
  second->throws = false;
  second->setup_code = 161002;
  EXPECT_EQ(operation->Setup(pack, size, atb.context.get()), 161002);
  EXPECT_EQ(execute(), atb::ERROR_INVALID_PARAM) << "not set up";
  second->infer_code = 161001;
  EXPECT_EQ(operation->Setup(pack, size, atb.context.get()), 161001);
}

TEST_F(AtbGraphTest, ChecksItsOwnTensors) {
  const OperationPtr operation(make(chain({2, 3})));
  const AtbTensor x = AtbTensor::of<float>({2}, {1, 2}), y = AtbTensor::empty<float>({2});
  atb::VariantPack pack = Atb::pack({&x}, {&y});
  std::uint64_t size = 0;
  EXPECT_EQ(operation->Setup(pack, size, nullptr), 1);
  EXPECT_EQ(operation->Execute(pack, nullptr, 0, atb.context.get()), 1);
  ASSERT_EQ(operation->Setup(pack, size, atb.context.get()), 0);
  const Workspace workspace(size);
  EXPECT_EQ(operation->Execute(pack, workspace.data(), size - 1, atb.context.get()), 1);
  EXPECT_THAT(recent_message(), HasSubstr("workspaceSize is 511 but must be at least 512"));
  EXPECT_EQ(operation->Execute(pack, nullptr, size, atb.context.get()), 1);
  EXPECT_THAT(recent_message(), HasSubstr("workspace is null but must hold 512 bytes"));
  pack.inTensors[0].dataSize = 4;
  EXPECT_EQ(operation->Execute(pack, workspace.data(), size, atb.context.get()), 1);
}

TEST_F(AtbGraphTest, PreparesAndLaunches) {
  const OperationPtr operation(make(chain({2, 3})));
  const AtbTensor x = AtbTensor::of<float>({2}, {1, 2}), y = AtbTensor::empty<float>({2});
  const atb::VariantPack pack = Atb::pack({&x}, {&y});
  std::uint64_t size = 0;
  ASSERT_EQ(operation->Setup(pack, size, atb.context.get()), 0);
  const Workspace workspace(size);
  const auto execute = [&](atb::ExecuteType type) {
    atb.context->SetExecuteType(type);
    const int code = operation->Execute(pack, workspace.data(), size, atb.context.get());
    EXPECT_EQ(atb.device.synchronize(), 0);
    return code;
  };
  EXPECT_EQ(execute(atb::EXECUTE_LAUNCH), 1);
  EXPECT_EQ(execute(atb::EXECUTE_PRELAUNCH), 0);
  EXPECT_NE(y.values<float>()[0], 6);
  EXPECT_EQ(execute(atb::EXECUTE_LAUNCH), 0) << recent_message();
  EXPECT_EQ(y.values<float>(), (std::vector<float>{6, 12}));
  atb.context->SetExecuteType(atb::EXECUTE_NORMAL);
}

TEST_F(AtbGraphTest, SetsTheStreamOfAllItsNodes) {
  atb::GraphParam param = chain({2, 3});
  const OperationPtr operation(make(param));
  ASSERT_EQ(atb::SetExecuteStreamId(operation.get(), 1), 0);
  for (const atb::Node& one : param.nodes) EXPECT_EQ(atb::GetExecuteStreamId(one.operation), 1u);
  aclrtStream second = nullptr;
  ASSERT_EQ(aclrtCreateStream(&second), 0);
  ASSERT_EQ(atb.context->SetExecuteStreams({atb.device.stream(), second}), 0);
  const AtbTensor x = AtbTensor::of<float>({2}, {1, 2}), y = AtbTensor::empty<float>({2});
  std::uint64_t size = 0;
  const atb::VariantPack pack = Atb::pack({&x}, {&y});
  ASSERT_EQ(operation->Setup(pack, size, atb.context.get()), 0);
  const Workspace workspace(size);
  ASSERT_EQ(operation->Execute(pack, workspace.data(), size, atb.context.get()), 0);
  ASSERT_EQ(aclrtSynchronizeStream(second), 0);
  EXPECT_EQ(y.values<float>(), (std::vector<float>{6, 12}));
  aclrtDestroyStream(second);
}

class AtbGraphOpBuilderTest : public AtbGraphTest {
 protected:
  AtbGraphOpBuilderTest() { EXPECT_EQ(atb::CreateGraphOpBuilder(&builder), 0); }
  ~AtbGraphOpBuilderTest() override { EXPECT_EQ(atb::DestroyGraphOpBuilder(builder), 0); }
  atb::GraphOpBuilder* builder = nullptr;
};

TEST_F(AtbGraphOpBuilderTest, BuildsGraphsFromNames) {
  ASSERT_EQ(builder->Init("g", nullptr, {"a", "b"}, {"c"}), 0) << recent_message();
  ElewiseParam sum;
  sum.elewiseType = ElewiseParam::ELEWISE_ADD;
  ASSERT_EQ(builder->AddOperation(sum, {"a", "b"}, {"t"}), 0);
  ASSERT_EQ(builder->AddOperation(static_cast<atb::Operation*>(new GeluOperation), {"t"}, {"c"}), 0);
  const OperationPtr operation(builder->Build());
  ASSERT_NE(operation, nullptr) << recent_message();
  atb::GraphParam param;
  ASSERT_EQ(atb::CloneOperationParam(operation.get(), param), 0);
  EXPECT_EQ(param.internalTensorNum, 1u);
  EXPECT_EQ(param.nodes[0].inTensorIds, (Ids{0, 1}));
  EXPECT_EQ(param.nodes[0].outTensorIds, Ids{3});
  EXPECT_EQ(param.nodes[1].outTensorIds, Ids{2});
  const AtbTensor x = AtbTensor::of<float>({1, 2}, {0.5f, 1});
  EXPECT_NEAR(atb.outputs(*operation, {&x, &x})[0].values<float>()[0], 0.841192007, 1e-6);
  EXPECT_EQ(builder->Build(), nullptr) << "needs another Init";
}

TEST_F(AtbGraphOpBuilderTest, ViewsTensors) {
  const auto flat = [](const atb::Dims& from, atb::Dims& to) {
    to.dimNum = 1;
    to.dims[0] = from.dims[0] * from.dims[1];
  };
  const auto column = [](const atb::Dims& from, atb::Dims& to) {
    to.dimNum = 2;
    to.dims[0] = from.dims[0];
    to.dims[1] = 1;
  };
  ASSERT_EQ(builder->Init("g", nullptr, {"a"}, {"c"}), 0);
  ASSERT_EQ(builder->Reshape("a", flat, "flat"), 0);
  ASSERT_EQ(builder->Reshape("flat", column, "column"), 0);
  EXPECT_EQ(builder->Reshape("a", flat, "column"), 1);
  EXPECT_EQ(builder->Reshape("a", nullptr, "other"), 1);
  ASSERT_EQ(builder->AddOperation(add(), {"flat", "column"}, {"c"}), 0);
  atb::Operation* writes_a_view = muls(1);
  EXPECT_EQ(builder->AddOperation(writes_a_view, {"a"}, {"flat"}), 1);
  EXPECT_EQ(atb::DestroyOperation(writes_a_view), 0);
  const OperationPtr operation(builder->Build());
  ASSERT_NE(operation, nullptr) << recent_message();
  const AtbTensor x = AtbTensor::of<float>({1, 2}, {1, 10});
  EXPECT_EQ(atb.outputs(*operation, {&x})[0].values<float>(), (std::vector<float>{2, 11, 11, 20}));
}

TEST_F(AtbGraphOpBuilderTest, RefusesAndDestroys) {
  EXPECT_EQ(atb::CreateGraphOpBuilder(nullptr), 1);
  EXPECT_EQ(atb::DestroyGraphOpBuilder(nullptr), 0);
  atb::Operation* one = muls(1);
  EXPECT_EQ(builder->AddOperation(one, {"a"}, {"b"}), 1) << "no Init";
  EXPECT_EQ(builder->Init("g", nullptr, {"a", "a"}, {"c"}), 1);
  ASSERT_EQ(builder->Init("g", nullptr, {"a"}, {"c"}), 0);
  EXPECT_EQ(builder->AddOperation(static_cast<atb::Operation*>(nullptr), {"a"}, {"c"}), 1);
  ASSERT_EQ(builder->AddOperation(one, {"a"}, {"t"}), 0);
  EXPECT_EQ(builder->AddOperation(one, {"a"}, {"t"}), 1) << "it is the builder's";
  EXPECT_EQ(builder->Build(), nullptr) << "nothing writes c";
  EXPECT_THAT(recent_message(), HasSubstr("no node writes tensor 1"));
  std::uint64_t size = 0;
  EXPECT_EQ(one->Setup({}, size, atb.context.get()), atb::ERROR_INVALID_OPERATION_ADDR);
  ASSERT_EQ(builder->Init("g", nullptr, {"a"}, {"c"}), 0);
  for (int i = 0; i < 256; ++i)
    ASSERT_EQ(builder->AddOperation(muls(1), {"a"}, {"t" + std::to_string(i)}), 0);
  atb::Operation* more = muls(1);
  EXPECT_EQ(builder->AddOperation(more, {"a"}, {"t256"}), 5);
  EXPECT_EQ(atb::DestroyOperation(more), 0);
}

// The mixed program: a graph and an operation of the program in each thread, streams destroyed before the rest.
TEST(AtbProgram, RunsInSeveralThreads) {
  std::vector<std::thread> threads;
  for (int device = 0; device < 3; ++device)
    threads.emplace_back([device] {
      ASSERT_EQ(aclrtSetDevice(device), 0);
      atb::Context* context = nullptr;
      aclrtStream stream = nullptr;
      ASSERT_EQ(atb::CreateContext(&context), 0);
      ASSERT_EQ(aclrtCreateStream(&stream), 0);
      ASSERT_EQ(context->SetExecuteStream(stream), 0);
      atb::Operation *sum = make(sum_of_four()), *gelu = new GeluOperation(1);
      {
        const AtbTensor x = AtbTensor::of<F16>({2, 2}, std::vector<F16>(4, F16::raw(2))),
                        between = AtbTensor::empty<F16>({2, 2}), y = AtbTensor::empty<F16>({2, 2});
        for (int i = 0; i < 20; ++i) {
          std::uint64_t size = 0;
          const atb::VariantPack first = Atb::pack({&x, &x, &x, &x}, {&between}),
                                 second = Atb::pack({&between}, {&y});
          ASSERT_EQ(sum->Setup(first, size, context), 0);
          const Workspace workspace(size);
          ASSERT_EQ(sum->Execute(first, workspace.data(), size, context), 0);
          ASSERT_EQ(gelu->Setup(second, size, context), 0);
          ASSERT_EQ(gelu->Execute(second, nullptr, size, context), 0);
          ASSERT_EQ(aclrtSynchronizeStream(stream), 0);
          ASSERT_EQ(y.values<std::uint16_t>(), std::vector<std::uint16_t>(4, 4));
        }
        EXPECT_EQ(aclrtDestroyStream(stream), 0);
        EXPECT_EQ(atb::DestroyOperation(sum), 0);
        EXPECT_EQ(atb::DestroyOperation(gelu), 0);
        EXPECT_EQ(atb::DestroyContext(context), 0);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace oracle
