// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "atb/graph_operation.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "atb/failure.h"
#include "atb/graph_checks.h"
#include "atb/graveyard.h"

namespace moeyard::atb_layer {
namespace {

using atb::Status;
using atb::TensorDesc;

// Whether the environment asks for a synchronise after each node.
bool synchronises() {
  static const bool asked = [] {
    const char* value = std::getenv("ATB_STREAM_SYNC_EVERY_RUNNER_ENABLE");
    return value != nullptr && std::strcmp(value, "1") == 0;
  }();
  return asked;
}

std::uint64_t numel_of(const atb::Dims& shape) {
  std::uint64_t numel = 1;
  for (std::uint64_t i = 0; i < shape.dimNum && i < atb::MAX_DIM; ++i)
    numel *= static_cast<std::uint64_t>(shape.dims[i]);
  return numel;
}

}  // namespace

GraphOperation::GraphOperation(const atb::GraphParam& param)
    : BuiltIn(param.name.empty() ? "GraphOperation" : param.name), param_(param) {
  start_over({.inputs = param.inTensorNum, .outputs = param.outTensorNum, .in_place = true});
  steps_.reserve(param.nodes.size());
  for (const atb::Node& node : param.nodes) {
    Step step{.operation = node.operation};
    step.pack.inTensors.resize(node.inTensorIds.size());
    step.pack.outTensors.resize(node.outTensorIds.size());
    step.in_offsets.resize(node.inTensorIds.size());
    steps_.push_back(std::move(step));
  }
  for (const Step& step : steps_) own(step.operation, this);
}

GraphOperation::~GraphOperation() {
  for (const Step& step : steps_) {
    disown(step.operation);
    delete step.operation;
  }
}

std::string GraphOperation::name_of(std::size_t i) const { return name_of_node(i, steps_[i].operation); }

void GraphOperation::set_stream_id(std::uint32_t id) {
  BuiltIn::set_stream_id(id);
  for (const Step& step : steps_) set_stream_of(step.operation, id);
}

std::int64_t GraphOperation::stream_of_work() const {
  std::int64_t stream = steps_.empty() ? stream_id() : stream_of(steps_[0].operation);
  for (const Step& step : steps_)
    if (stream_of(step.operation) != stream) return Piece::kSeveral;
  return stream;
}

// An input that all of its readers may do without, may be left away: they say so themselves.
Status GraphOperation::check_inputs(const Descs& inputs) const {
  Signature any = signature();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].shape.dimNum == 0) any.optional.set(i);
  return check_descs(any, inputs);
}

Status GraphOperation::infer(const Descs& inputs, Descs& outputs) const {
  if (!param_.inferShapeFunc) {
    MOEYARD_ATB_TRY(infer_all(inputs, descs_));
    for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = descs_[param_.inTensorNum + i];
    return atb::NO_ERROR;
  }
  try {
    MOEYARD_ATB_TRY(param_.inferShapeFunc(inputs, outputs));
  } catch (...) {
    return caught(atb::ERROR_GRAPH_INFERSHAPE_FUNC_FAIL, name(), "inferShapeFunc");
  }
  if (outputs.size() != param_.outTensorNum)
    return fail(atb::ERROR_GRAPH_INFERSHAPE_FUNC_FAIL,
                "%s: inferShapeFunc made %zu outTensorDescs but the graph has %u", name(), outputs.size(),
                param_.outTensorNum);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].shape.dimNum == 0 || outputs[i].dtype == ACL_DT_UNDEFINED ||
        outputs[i].format == ACL_FORMAT_UNDEFINED)
      return fail(
          atb::ERROR_GRAPH_INFERSHAPE_FUNC_FAIL,
          "%s: inferShapeFunc left outTensorDescs[%zu] without %s; it must set dtype, format and shape",
          name(), i,
          outputs[i].shape.dimNum == 0           ? "dimensions"
          : outputs[i].dtype == ACL_DT_UNDEFINED ? "a dtype"
                                                 : "a format");
  return atb::NO_ERROR;
}

Status GraphOperation::infer_all(const Descs& inputs, std::vector<TensorDesc>& descs) const {
  descs.assign(first_internal() + param_.internalTensorNum, TensorDesc());
  std::copy(inputs.begin(), inputs.end(), descs.begin());
  Descs node_inputs, node_outputs;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    MOEYARD_ATB_TRY(infer_node(i, descs, node_inputs, node_outputs));
    for (std::size_t o = 0; o < node_outputs.size(); ++o)
      descs[param_.nodes[i].outTensorIds.data()[o]] = node_outputs.data()[o];
  }
  return atb::NO_ERROR;
}

Status GraphOperation::infer_node(std::size_t i, const std::vector<TensorDesc>& descs, Descs& inputs,
                                  Descs& outputs) const {
  const atb::Node& node = param_.nodes[i];
  inputs.resize(node.inTensorIds.size());
  for (std::size_t j = 0; j < inputs.size(); ++j) {
    inputs.data()[j] = descs[node.inTensorIds.data()[j]];
    MOEYARD_ATB_TRY(view_of_input(i, j, inputs.data()[j]));
  }
  outputs.clear();
  outputs.resize(node.outTensorIds.size());
  try {
    MOEYARD_ATB_TRY(node.operation->InferShape(inputs, outputs));
  } catch (...) {
    return caught(atb::ERROR_OUT_OF_HOST_MEMORY, name_of(i).c_str(), "InferShape");
  }
  return check_inferred(i, outputs);
}

// A program's own operation may leave its outputs without a shape.
Status GraphOperation::check_inferred(std::size_t i, const Descs& outputs) const {
  if (outputs.size() != param_.nodes[i].outTensorIds.size())
    return fail(atb::ERROR_INVALID_TENSOR_NUM,
                "%s: InferShape of %s made %zu outTensorDescs but the node has %zu", name(),
                name_of(i).c_str(), outputs.size(), param_.nodes[i].outTensorIds.size());
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const atb::Dims& shape = outputs[o].shape;
    const bool has_rank = shape.dimNum > 0 && shape.dimNum <= atb::MAX_DIM;
    if (!has_rank || bytes_of(outputs[o]) == 0)
      return fail(has_rank ? atb::ERROR_INVALID_TENSOR_SIZE : atb::ERROR_INVALID_TENSOR_DIM,
                  "%s: InferShape of %s made outTensorDescs[%zu] %s, which is no shape of a tensor", name(),
                  name_of(i).c_str(), o, text_of(outputs[o]).c_str());
  }
  return atb::NO_ERROR;
}

// The part of a tensor that a node's input is, then its other shape.
Status GraphOperation::view_of_input(std::size_t i, std::size_t input, TensorDesc& desc) const {
  const atb::Node& node = param_.nodes[i];
  if (!node.inTensorChunks.empty()) {
    if (node.inTensorChunks.size() != node.inTensorIds.size())
      return fail(atb::ERROR_INVALID_GRAPH_NODE_CHUNK,
                  "%s: %s has %zu inTensorChunks but %zu inputs; give none or one each", name(),
                  name_of(i).c_str(), node.inTensorChunks.size(), node.inTensorIds.size());
    const atb::Chunk& chunk = node.inTensorChunks[input];
    if (chunk.chunkNum == 0 || chunk.chunkIndex >= chunk.chunkNum || desc.shape.dimNum == 0 ||
        desc.shape.dims[0] % chunk.chunkNum != 0)
      return fail(atb::ERROR_INVALID_GRAPH_NODE_CHUNK,
                  "%s: %s asks for chunk %u of %u of its input %zu, %s; the number must divide dimension 0 "
                  "and be larger "
                  "than the index",
                  name(), name_of(i).c_str(), chunk.chunkIndex, chunk.chunkNum, input, text_of(desc).c_str());
    desc.shape.dims[0] /= chunk.chunkNum;
  }
  if (input >= node.inTensorReshapeFuncs.size() || !node.inTensorReshapeFuncs[input]) return atb::NO_ERROR;
  atb::Dims reshaped{};
  try {
    node.inTensorReshapeFuncs[input](desc.shape, reshaped);
  } catch (...) {
    return caught(atb::ERROR_GRAPH_NODE_RESHAPE_FUNC_FAIL, name_of(i).c_str(), "inTensorReshapeFuncs");
  }
  if (reshaped.dimNum == 0 || reshaped.dimNum > atb::MAX_DIM || numel_of(reshaped) != numel_of(desc.shape))
    return fail(atb::ERROR_GRAPH_NODE_RESHAPE_FUNC_FAIL,
                "%s: inTensorReshapeFuncs[%zu] of %s makes %s of %s but the number of elements must stay",
                name(), input, name_of(i).c_str(), text_of(reshaped).c_str(), text_of(desc.shape).c_str());
  desc.shape = reshaped;
  return atb::NO_ERROR;
}

Status GraphOperation::plan(const atb::VariantPack& pack, ContextImpl& context,
                            std::uint64_t& workspace_size) {
  if (param_.inferShapeFunc) {
    Descs inputs;
    for (const atb::Tensor& tensor : pack.inTensors) inputs.push_back(tensor.desc);
    MOEYARD_ATB_TRY(infer_all(inputs, descs_));
    for (std::size_t i = 0; i < pack.outTensors.size(); ++i)
      descs_[param_.inTensorNum + i] = pack.outTensors.data()[i].desc;
  }
  addresses_.assign(descs_.size(), nullptr);
  host_addresses_.assign(descs_.size(), nullptr);
  pieces_.assign(param_.internalTensorNum, Piece());
  const auto keep_addresses = [this](const atb::SVector<atb::Tensor>& tensors, std::size_t first) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      addresses_[first + i] = tensors.data()[i].deviceData;
      host_addresses_[first + i] = tensors.data()[i].hostData;
    }
  };
  keep_addresses(pack.inTensors, 0);
  keep_addresses(pack.outTensors, param_.inTensorNum);
  for (std::size_t i = 0; i < steps_.size(); ++i) MOEYARD_ATB_TRY(set_up_step(i, context));
  workspace_size = workspace_end_ = place_workspaces(place(pieces_));
  return atb::NO_ERROR;
}

Status GraphOperation::set_up_step(std::size_t i, ContextImpl& context) {
  const atb::Node& node = param_.nodes[i];
  Step& step = steps_[i];
  step.stream = stream_of(step.operation);
  const auto use = [&](std::uint32_t id) {
    if (id < first_internal()) return;
    Piece& piece = pieces_[id - first_internal()];
    piece.bytes = std::max(piece.bytes, bytes_of(descs_[id]));
    piece.use(static_cast<std::int64_t>(i), step.stream);
  };
  const auto fill = [&](atb::Tensor& tensor, std::uint32_t id, std::uint64_t offset) {
    tensor.dataSize = bytes_of(tensor.desc);
    tensor.deviceData = addresses_[id] == nullptr ? nullptr : static_cast<char*>(addresses_[id]) + offset;
    tensor.hostData =
        host_addresses_[id] == nullptr ? nullptr : static_cast<char*>(host_addresses_[id]) + offset;
    use(id);
  };
  for (std::size_t j = 0; j < node.inTensorIds.size(); ++j) {
    const std::uint32_t id = node.inTensorIds.data()[j];
    atb::Tensor& tensor = step.pack.inTensors.data()[j];
    tensor.desc = descs_[id];
    MOEYARD_ATB_TRY(view_of_input(i, j, tensor.desc));
    const std::uint32_t chunk = node.inTensorChunks.empty() ? 0 : node.inTensorChunks[j].chunkIndex;
    step.in_offsets[j] = chunk * bytes_of(tensor.desc);
    fill(tensor, id, step.in_offsets[j]);
  }
  for (std::size_t j = 0; j < node.outTensorIds.size(); ++j) {
    const std::uint32_t id = node.outTensorIds.data()[j];
    step.pack.outTensors.data()[j].desc = descs_[id];
    fill(step.pack.outTensors.data()[j], id, 0);
  }
  step.workspace_size = 0;
  try {
    return step.operation->Setup(step.pack, step.workspace_size, &context);
  } catch (...) {
    return caught(atb::ERROR_OUT_OF_HOST_MEMORY, name_of(i).c_str(), "Setup");
  }
}

// Nodes of one stream run one after the other and share a workspace.
std::uint64_t GraphOperation::place_workspaces(std::uint64_t begin) {
  std::map<std::int64_t, std::uint64_t> largest;
  for (const Step& step : steps_) {
    std::uint64_t& bytes = largest[step.stream];
    bytes = std::max(bytes, aligned(step.workspace_size));
  }
  std::map<std::int64_t, std::uint64_t> offsets;
  std::uint64_t end = begin;
  for (const auto& [stream, bytes] : largest) {
    offsets[stream] = end;
    end += bytes;
  }
  for (Step& step : steps_) {
    step.workspace_offset = offsets[step.stream];
    step.workspace_size = largest[step.stream];
  }
  return end;
}

Status GraphOperation::take(const atb::VariantPack& pack, std::uint8_t* workspace, ContextImpl& context) {
  for (std::size_t i = 0; i < pack.inTensors.size(); ++i) {
    addresses_[i] = pack.inTensors.data()[i].deviceData;
    host_addresses_[i] = pack.inTensors.data()[i].hostData;
  }
  for (std::size_t i = 0; i < pack.outTensors.size(); ++i) {
    addresses_[param_.inTensorNum + i] = pack.outTensors.data()[i].deviceData;
    host_addresses_[param_.inTensorNum + i] = pack.outTensors.data()[i].hostData;
  }
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    addresses_[first_internal() + i] = workspace + pieces_[i].offset;
  workspace_ = workspace;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const atb::Node& node = param_.nodes[i];
    Step& step = steps_[i];
    for (std::size_t j = 0; j < step.in_offsets.size(); ++j) {
      const std::uint32_t id = node.inTensorIds.data()[j];
      atb::Tensor& tensor = step.pack.inTensors.data()[j];
      if (addresses_[id] != nullptr)
        tensor.deviceData = static_cast<char*>(addresses_[id]) + step.in_offsets[j];
      if (host_addresses_[id] != nullptr)
        tensor.hostData = static_cast<char*>(host_addresses_[id]) + step.in_offsets[j];
    }
    for (std::size_t j = 0; j < step.pack.outTensors.size(); ++j) {
      const std::uint32_t id = node.outTensorIds.data()[j];
      step.pack.outTensors.data()[j].deviceData = addresses_[id];
      step.pack.outTensors.data()[j].hostData = host_addresses_[id];
    }
  }
  // Operations of the program know nothing of preparing: theirs is done with the launch.
  return execute_type() == atb::EXECUTE_PRELAUNCH ? run_steps(context, true) : atb::NO_ERROR;
}

Status GraphOperation::launch(ContextImpl& context, aclrtStream /*stream*/) {
  return run_steps(context, false);
}

Status GraphOperation::run_steps(ContextImpl& context, bool own_only) {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    Step& step = steps_[i];
    if (own_only && dynamic_cast<BuiltIn*>(step.operation) == nullptr) continue;
    std::uint8_t* workspace = step.workspace_size == 0 ? nullptr : workspace_ + step.workspace_offset;
    try {
      MOEYARD_ATB_TRY(step.operation->Execute(step.pack, workspace, step.workspace_size, &context));
    } catch (...) {
      return caught(atb::ERROR_RT_FAIL, name_of(i).c_str(), "Execute");
    }
    if (own_only || !synchronises() || step.stream == Piece::kSeveral) continue;
    if (aclrtSynchronizeStream(context.stream(static_cast<std::uint32_t>(step.stream))) != 0)
      return fail(atb::ERROR_RT_FAIL, "%s: the stream failed when it was synchronised after %s", name(),
                  name_of(i).c_str());
  }
  return atb::NO_ERROR;
}

}  // namespace moeyard::atb_layer

namespace atb {

using namespace moeyard::atb_layer;

template <>
Status CreateOperation(const GraphParam& opParam, Operation** operation) {
  try {
    if (operation == nullptr)
      return fail(ERROR_INVALID_PARAM,
                  "GraphOperation: operation of CreateOperation is null but is required");
    MOEYARD_ATB_TRY(check_graph(opParam));
    *operation = new GraphOperation(opParam);
    return NO_ERROR;
  } catch (...) {
    return caught(ERROR_OUT_OF_HOST_MEMORY, "GraphOperation", "CreateOperation");
  }
}

template <>
Status CloneOperationParam(const Operation* operation, GraphParam& opParam) {
  try {
    const auto* graph = dynamic_cast<const GraphOperation*>(operation);
    if (graph == nullptr)
      return fail(ERROR_INVALID_PARAM, "GraphOperation: the operation of CloneOperationParam is no graph");
    opParam = graph->param();
    return NO_ERROR;
  } catch (...) {
    return caught(ERROR_OUT_OF_HOST_MEMORY, "GraphOperation", "CloneOperationParam");
  }
}

template <>
Status UpdateOperationParam(Operation* /*operation*/, const GraphParam& /*opParam*/) {
  return fail(ERROR_INVALID_PARAM,
              "GraphOperation: UpdateOperationParam cannot change a graph; update the operations of its "
              "nodes, or create "
              "another one");
}

}  // namespace atb
