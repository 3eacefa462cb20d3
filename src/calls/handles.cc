// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "calls/handles.h"

namespace moeyard::calls {
namespace {

aclTensor* make_tensor(const TensorSpec& tensor, void* data) {
  return aclCreateTensor(tensor.shape.data(), tensor.shape.size(), tensor.dtype,
                         tensor.strides.empty() ? nullptr : tensor.strides.data(), tensor.offset,
                         tensor.format, tensor.shape.data(), tensor.shape.size(), data);
}

}  // namespace

Handles::Handles(const Call& call, const Place& place)
    : function_(*call.function), arguments_(call.values.size()), texts_(call.values.size()) {
  for (std::size_t i = 0; i < call.values.size(); ++i) {
    const Parameter& parameter = function_.parameters[i];
    const Value& value = call.values[i];
    if (const auto* tensor = std::get_if<TensorSpec>(&value))
      arguments_[i].tensor = make_tensor(*tensor, place(parameter, *tensor));
    if (const auto* list = std::get_if<TensorList>(&value)) {
      std::vector<aclTensor*> members;
      for (const auto& member : *list)
        members.push_back(member ? make_tensor(*member, place(parameter, *member)) : nullptr);
      arguments_[i].tensor_list = aclCreateTensorList(members.data(), members.size());
    }
    if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value)) set_integers(i, *integers);
    if (const auto* numbers = std::get_if<std::vector<double>>(&value)) {
      const std::vector<float> floats(numbers->begin(), numbers->end());
      arguments_[i].numbers = aclCreateFloatArray(floats.data(), floats.size());
    }
    if (const auto* text = std::get_if<std::string>(&value)) set_text(i, *text);
    if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      std::int64_t copy = *integer;
      if (parameter.kind == Kind::scalar)
        arguments_[i].scalar = aclCreateScalar(&copy, ACL_INT64);
      else
        arguments_[i].integer = copy;
    }
    if (const auto* number = std::get_if<double>(&value)) {
      double copy = *number;
      if (parameter.kind == Kind::scalar)
        arguments_[i].scalar = aclCreateScalar(&copy, ACL_DOUBLE);
      else
        arguments_[i].number = copy;
    }
  }
}

Handles::~Handles() {
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const Kind kind = function_.parameters[i].kind;
    if (kind == Kind::tensor && arguments_[i].tensor != nullptr) aclDestroyTensor(arguments_[i].tensor);
    if (kind == Kind::tensor_list && arguments_[i].tensor_list != nullptr)
      aclDestroyTensorList(arguments_[i].tensor_list);
    if (kind == Kind::integers && arguments_[i].integers != nullptr)
      aclDestroyIntArray(arguments_[i].integers);
    if (kind == Kind::numbers && arguments_[i].numbers != nullptr)
      aclDestroyFloatArray(arguments_[i].numbers);
    if (kind == Kind::flags && arguments_[i].flags != nullptr) aclDestroyBoolArray(arguments_[i].flags);
    if (kind == Kind::scalar && arguments_[i].scalar != nullptr) aclDestroyScalar(arguments_[i].scalar);
  }
}

// Flags are integers in a description.
void Handles::set_integers(std::size_t parameter, const std::vector<std::int64_t>& values) {
  if (function_.parameters[parameter].kind == Kind::flags) {
    const auto flags = std::make_unique<bool[]>(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) flags[i] = values[i] != 0;
    arguments_[parameter].flags = aclCreateBoolArray(flags.get(), values.size());
  } else {
    arguments_[parameter].integers = aclCreateIntArray(values.data(), values.size());
  }
}

void Handles::set_text(std::size_t parameter, std::string text) {
  texts_[parameter] = std::make_unique<std::string>(std::move(text));
  arguments_[parameter].text = texts_[parameter]->c_str();
}

aclnnStatus Handles::plan(std::uint64_t* workspace_size, aclOpExecutor** executor) const {
  return function_.plan(arguments_.data(), workspace_size, executor);
}

}  // namespace moeyard::calls
