// Moeyard. SPDX-License-Identifier: Apache-2.0
// Host time of Setup and Execute of an ATB graph of ten operations, without synchronising, per operation: what a graph costs
// before any work is done. Wanted: below 2 us.
#include <benchmark/benchmark.h>

#include "atb/atb_infer.h"

namespace {

// x * 1, ten times over, on one element.
atb::Operation* chain(std::uint32_t nodes) {
  atb::infer::ElewiseParam param;
  param.elewiseType = atb::infer::ElewiseParam::ELEWISE_MULS;
  param.mulsParam.varAttr = 1;
  atb::GraphParam graph;
  graph.inTensorNum = graph.outTensorNum = 1;
  graph.internalTensorNum = nodes - 1;
  graph.nodes.resize(nodes);
  for (std::uint32_t i = 0; i < nodes; ++i) {
    atb::CreateOperation(param, &graph.nodes[i].operation);
    graph.nodes[i].inTensorIds = {i == 0 ? 0 : i + 1};
    graph.nodes[i].outTensorIds = {i + 1 == nodes ? 1 : i + 2};
  }
  atb::Operation* made = nullptr;
  atb::CreateOperation(graph, &made);
  return made;
}

void graph(benchmark::State& state) {
  constexpr std::uint32_t kNodes = 10;
  aclrtSetDevice(0);
  aclrtStream stream = nullptr;
  atb::Context* context = nullptr;
  aclrtCreateStream(&stream);
  atb::CreateContext(&context);
  context->SetExecuteStream(stream);
  atb::Operation* operation = chain(kNodes);
  atb::VariantPack pack;
  atb::Tensor tensor;
  tensor.desc.dtype = ACL_FLOAT;
  tensor.desc.format = ACL_FORMAT_ND;
  tensor.desc.shape.dimNum = 1;
  tensor.desc.shape.dims[0] = 1;
  tensor.dataSize = sizeof(float);
  const float one = 1;
  for (atb::SVector<atb::Tensor>* tensors : {&pack.inTensors, &pack.outTensors}) {
    aclrtMalloc(&tensor.deviceData, tensor.dataSize, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(tensor.deviceData, tensor.dataSize, &one, sizeof one, ACL_MEMCPY_HOST_TO_DEVICE);
    tensors->push_back(tensor);
  }
  std::uint64_t size = 0;
  void* workspace = nullptr;
  bool works = operation->Setup(pack, size, context) == 0;
  aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST);
  for (auto _ : state) {
    works = works && operation->Setup(pack, size, context) == 0 &&
            operation->Execute(pack, static_cast<std::uint8_t*>(workspace), size, context) == 0;
  }
  if (!works || aclrtSynchronizeStream(stream) != 0) state.SkipWithError("the graph fails");
  state.counters["ns_per_operation"] = benchmark::Counter(
      kNodes * 1e-9, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  atb::DestroyOperation(operation);
  atb::DestroyContext(context);
  for (void* memory : {workspace, pack.inTensors[0].deviceData, pack.outTensors[0].deviceData})
    aclrtFree(memory);
  aclrtDestroyStream(stream);
}
BENCHMARK(graph);

}  // namespace
