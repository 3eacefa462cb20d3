// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "atb/graph_op_builder.h"

#include <map>
#include <memory>

#include "atb/failure.h"
#include "atb/graveyard.h"

namespace moeyard::atb_layer {
namespace {

using atb::Status;
using Names = atb::SVector<std::string>;

constexpr std::size_t kMostTensors = 256;
constexpr const char* kName = "GraphOpBuilder";

class BuilderImpl final : public atb::GraphOpBuilder {
 public:
  ~BuilderImpl() override { start_over(true); }

  Status Init(const std::string& opName, const atb::InferShapeFunc& inferShapeFunc,
              const Names& inTensorNames, const Names& outTensorNames) override {
    return guarded("Init", [&] { return init(opName, inferShapeFunc, inTensorNames, outTensorNames); });
  }
  Status Reshape(const std::string& srcTensorName, const atb::ReshapeFunc& reshapeFunc,
                 const std::string& viewTensorName) override {
    return guarded("Reshape", [&] { return reshape(srcTensorName, reshapeFunc, viewTensorName); });
  }
  Status AddOperation(atb::Operation* operation, const Names& inTensorNames,
                      const Names& outTensorNames) override {
    return guarded("AddOperation", [&] { return add(operation, inTensorNames, outTensorNames); });
  }
  atb::Operation* Build() override {
    atb::Operation* graph = nullptr;
    const Status status = guarded("Build", [&] { return build(graph); });
    start_over(status != atb::NO_ERROR);
    return graph;
  }

 private:
  struct View {
    std::uint32_t id;
    atb::ReshapeFunc reshape;  // empty: the tensor itself
  };

  template <class Body>
  static Status guarded(const char* function, Body&& body) {
    try {
      return body();
    } catch (...) {
      return caught(atb::ERROR_OUT_OF_HOST_MEMORY, kName, function);
    }
  }

  // Forgets everything; the operations go to somebody else or are destroyed.
  void start_over(bool destroy) {
    for (const atb::Node& node : param_.nodes) {
      if (destroy) disown(node.operation);
      if (destroy) atb::DestroyOperation(node.operation);
    }
    param_ = {};
    tensors_.clear();
    initialised_ = false;
  }

  Status init(const std::string& op_name, const atb::InferShapeFunc& infer_shape, const Names& inputs,
              const Names& outputs) {
    start_over(true);
    param_.name = op_name;
    param_.inferShapeFunc = infer_shape;
    param_.inTensorNum = static_cast<std::uint32_t>(inputs.size());
    param_.outTensorNum = static_cast<std::uint32_t>(outputs.size());
    for (const Names* names : {&inputs, &outputs})
      for (const std::string& tensor : *names)
        if (!tensors_.emplace(tensor, View{static_cast<std::uint32_t>(tensors_.size()), {}}).second)
          return fail(atb::ERROR_INVALID_PARAM,
                      "%s: Init got the tensor name \"%s\" twice; names must differ", kName, tensor.c_str());
    initialised_ = true;
    return atb::NO_ERROR;
  }

  Status check_initialised(const char* function) const {
    if (initialised_) return atb::NO_ERROR;
    return fail(atb::ERROR_INVALID_PARAM,
                "%s: %s was called without a successful Init before; call Init first", kName, function);
  }

  // The tensor of a name; a new internal one if there is none.
  Status find(const std::string& name, const View** view) {
    const auto found = tensors_.find(name);
    if (found != tensors_.end()) {
      *view = &found->second;
      return atb::NO_ERROR;
    }
    if (param_.internalTensorNum == kMostTensors)
      return fail(atb::ERROR_INVALID_IN_TENSOR_NUM,
                  "%s: \"%s\" would be internal tensor 257 but there are at most 256", kName, name.c_str());
    const std::uint32_t id = param_.inTensorNum + param_.outTensorNum + param_.internalTensorNum++;
    *view = &tensors_.emplace(name, View{id, {}}).first->second;
    return atb::NO_ERROR;
  }

  Status reshape(const std::string& source, const atb::ReshapeFunc& function, const std::string& name) {
    MOEYARD_ATB_TRY(check_initialised("Reshape"));
    if (!function)
      return fail(atb::ERROR_INVALID_PARAM, "%s: reshapeFunc of \"%s\" is empty", kName, name.c_str());
    if (tensors_.count(name) != 0)
      return fail(atb::ERROR_INVALID_PARAM,
                  "%s: the view \"%s\" has the name of another tensor; names must differ", kName,
                  name.c_str());
    const View* from = nullptr;
    MOEYARD_ATB_TRY(find(source, &from));
    View view{from->id, function};
    if (from->reshape)  // a view of a view
      view.reshape = [first = from->reshape, function](const atb::Dims& old_shape, atb::Dims& new_shape) {
        atb::Dims between{};
        first(old_shape, between);
        function(between, new_shape);
      };
    tensors_.emplace(name, std::move(view));
    return atb::NO_ERROR;
  }

  Status add(atb::Operation* operation, const Names& inputs, const Names& outputs) {
    MOEYARD_ATB_TRY(check_initialised("AddOperation"));
    if (operation == nullptr)
      return fail(atb::ERROR_INVALID_PARAM,
                  "%s: operation of AddOperation is null; pass what CreateOperation made", kName);
    atb::Node node;
    node.operation = operation;
    node.inTensorReshapeFuncs.resize(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const View* view = nullptr;
      MOEYARD_ATB_TRY(find(inputs[i], &view));
      node.inTensorIds.push_back(view->id);
      node.inTensorReshapeFuncs[i] = view->reshape;
    }
    for (const std::string& name : outputs) {
      const View* view = nullptr;
      MOEYARD_ATB_TRY(find(name, &view));
      if (view->reshape)
        return fail(atb::ERROR_INVALID_PARAM,
                    "%s: \"%s\" is a view and cannot be written; name the tensor itself", kName,
                    name.c_str());
      node.outTensorIds.push_back(view->id);
    }
    if (!own(operation, this))
      return fail(atb::ERROR_INVALID_PARAM,
                  "%s: the operation of AddOperation belongs to another graph, or was destroyed", kName);
    param_.nodes.push_back(std::move(node));
    return atb::NO_ERROR;
  }

  Status build(atb::Operation*& graph) {
    MOEYARD_ATB_TRY(check_initialised("Build"));
    for (const atb::Node& node : param_.nodes) disown(node.operation);
    return atb::CreateOperation(param_, &graph);
  }

  atb::GraphParam param_;
  std::map<std::string, View> tensors_;
  bool initialised_ = false;
};

}  // namespace
}  // namespace moeyard::atb_layer

namespace atb {

GraphOpBuilder::GraphOpBuilder() = default;
GraphOpBuilder::~GraphOpBuilder() = default;

Status CreateGraphOpBuilder(GraphOpBuilder** builder) {
  if (builder == nullptr)
    return moeyard::atb_layer::fail(
        ERROR_INVALID_PARAM,
        "GraphOpBuilder: builder of CreateGraphOpBuilder is null; pass the address of a variable");
  try {
    *builder = new moeyard::atb_layer::BuilderImpl;
    return NO_ERROR;
  } catch (...) {
    return moeyard::atb_layer::caught(ERROR_OUT_OF_HOST_MEMORY, "GraphOpBuilder", "CreateGraphOpBuilder");
  }
}

Status DestroyGraphOpBuilder(GraphOpBuilder* builder) {
  delete builder;
  return NO_ERROR;
}

}  // namespace atb
