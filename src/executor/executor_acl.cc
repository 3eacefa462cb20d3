// Moeyard. SPDX-License-Identifier: Apache-2.0
// The C boundary of executors: repeatable ones, their addresses, their end.
#include "executor/executor.h"

namespace moeyard::executor {
namespace {

// Which parameters an index counts.
enum class Among { inputs, outputs, all };

bool counts(const contract::Param& param, Among among) {
  if (param.access.tensor == nullptr && param.access.list == nullptr) return false;
  const bool is_output = param.direction == contract::Direction::out;
  return among == Among::all || (among == Among::outputs) == is_output;
}

Status no_such(const char* function, const char* what, std::size_t index, std::size_t count) {
  return fail(ACLNN_ERR_PARAM_INVALID, TextCode::operator_parameter, "{}: {} is {} but must be below {}",
              function, what, index, count);
}

Status set_address(const char* function, aclOpExecutor* executor, TensorView& view, std::string_view name,
                   void* addr) {
  if (!view.present())
    return fail(ACLNN_ERR_PARAM_INVALID, TextCode::operator_parameter,
                "{}: {} was null in the first phase, so it has no address to set; run the first phase again "
                "with a tensor",
                function, name);
  view.data = static_cast<std::byte*>(addr);
  executor->addresses_changed = true;
  return {};
}

// The slots of an index: inputs then outputs in prototype order, the members of a list one by one.
Status set_tensor_address(const char* function, Among among, aclOpExecutor* executor, std::size_t index,
                          aclTensor* tensor, void* addr) {
  const std::lock_guard lock(mutex_of(executor));
  MOEYARD_TRY(check_executor(function, executor, ACLNN_ERR_INNER_NULLPTR));
  if (tensor == nullptr)
    return fail(ACLNN_ERR_INNER_NULLPTR, TextCode::operator_parameter, "{}: tensor is null but is required",
                function);
  PlannedCall& call = *executor->call;
  std::size_t count = 0;
  TensorView* chosen = nullptr;
  std::string_view name;
  auto pass = [&](Among group) {
    contract::for_each_tensor(call.contract, call.args(),
                              [&](const contract::Param& param, TensorView& view) {
                                if (!counts(param, group)) return;
                                if (count++ != index) return;
                                chosen = &view;
                                name = param.name;
                              });
  };
  if (among != Among::outputs) pass(Among::inputs);
  if (among != Among::inputs) pass(Among::outputs);
  if (chosen == nullptr) return no_such(function, "index", index, count);
  MOEYARD_TRY(set_address(function, executor, *chosen, name, addr));
  tensor->data = addr;
  return {};
}

// A member of a tensor list: irIndex counts parameters, relativeIndex members.
Status set_list_address(const char* function, Among among, aclOpExecutor* executor, std::size_t ir_index,
                        std::size_t relative_index, aclTensorList* tensors, void* addr) {
  const std::lock_guard lock(mutex_of(executor));
  MOEYARD_TRY(check_executor(function, executor, ACLNN_ERR_INNER_NULLPTR));
  if (tensors == nullptr)
    return fail(ACLNN_ERR_INNER_NULLPTR, TextCode::operator_parameter, "{}: tensors is null but is required",
                function);
  if (relative_index >= tensors->tensors.size())
    return no_such(function, "relativeIndex", relative_index, tensors->tensors.size());
  PlannedCall& call = *executor->call;
  std::size_t count = 0;
  const contract::Param* chosen = nullptr;
  auto pass = [&](Among group) {
    for (const contract::Param& param : call.contract.about().params)
      if (counts(param, group) && count++ == ir_index) chosen = &param;
  };
  if (among != Among::outputs) pass(Among::inputs);
  if (among != Among::inputs) pass(Among::outputs);
  if (chosen == nullptr) return no_such(function, "irIndex", ir_index, count);
  TensorListView* list = chosen->access.list != nullptr ? chosen->access.list(call.args()) : nullptr;
  if (list == nullptr || relative_index >= list->items.size())
    return fail(ACLNN_ERR_PARAM_INVALID, TextCode::operator_parameter,
                "{}: irIndex {} is {}, which {}; name a tensor list and one of its members", function,
                ir_index, chosen->name, list == nullptr ? "is no tensor list" : "has fewer members");
  MOEYARD_TRY(set_address(function, executor, list->items[relative_index], chosen->name, addr));
  if (tensors->tensors[relative_index] != nullptr) tensors->tensors[relative_index]->data = addr;
  return {};
}

aclnnStatus set_tensor(const char* function, Among among, aclOpExecutor* executor, std::size_t index,
                       aclTensor* tensor, void* addr) noexcept {
  return c_boundary<AclnnApi, aclnnStatus>(
      function, [&] { return set_tensor_address(function, among, executor, index, tensor, addr); });
}

aclnnStatus set_list(const char* function, Among among, aclOpExecutor* executor, std::size_t ir_index,
                     std::size_t relative_index, aclTensorList* tensors, void* addr) noexcept {
  return c_boundary<AclnnApi, aclnnStatus>(function, [&] {
    return set_list_address(function, among, executor, ir_index, relative_index, tensors, addr);
  });
}

}  // namespace
}  // namespace moeyard::executor

using moeyard::executor::Among;
using moeyard::executor::set_list;
using moeyard::executor::set_tensor;

extern "C" {

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
  const char* function = "aclSetAclOpExecutorRepeatable";
  return moeyard::c_boundary<moeyard::AclnnApi, aclnnStatus>(function, [&]() -> moeyard::Status {
    const std::lock_guard lock(moeyard::executor::mutex_of(executor));
    MOEYARD_TRY(moeyard::executor::check_executor(function, executor, ACLNN_ERR_INNER));
    executor->repeatable = true;
    return {};
  });
}

aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  const char* function = "aclDestroyAclOpExecutor";
  return moeyard::c_boundary<moeyard::AclnnApi, aclnnStatus>(function, [&]() -> moeyard::Status {
    const std::lock_guard lock(moeyard::executor::mutex_of(executor));
    MOEYARD_TRY(moeyard::executor::check_executor(function, executor, ACLNN_ERR_INNER));
    moeyard::executor::free_executor(executor);
    return {};
  });
}

// Each setter exists under two spellings.
aclnnStatus aclSetInputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                  void* addr) {
  return set_tensor("aclSetInputTensorAddr", Among::inputs, executor, index, tensor, addr);
}
aclnnStatus aclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                   void* addr) {
  return set_tensor("aclSetOutputTensorAddr", Among::outputs, executor, index, tensor, addr);
}
aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* addr) {
  return set_tensor("aclSetTensorAddr", Among::all, executor, index, tensor, addr);
}
aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor* executor, size_t irIndex, const size_t relativeIndex,
                                         aclTensorList* tensors, void* addr) {
  return set_list("aclSetDynamicInputTensorAddr", Among::inputs, executor, irIndex, relativeIndex, tensors,
                  addr);
}
aclnnStatus aclSetDynamicOutputTensorAddr(aclOpExecutor* executor, size_t irIndex, const size_t relativeIndex,
                                          aclTensorList* tensors, void* addr) {
  return set_list("aclSetDynamicOutputTensorAddr", Among::outputs, executor, irIndex, relativeIndex, tensors,
                  addr);
}
aclnnStatus aclSetDynamicTensorAddr(aclOpExecutor* executor, size_t irIndex, const size_t relativeIndex,
                                    aclTensorList* tensors, void* addr) {
  return set_list("aclSetDynamicTensorAddr", Among::all, executor, irIndex, relativeIndex, tensors, addr);
}
aclnnStatus AclSetInputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                  void* addr) {
  return aclSetInputTensorAddr(executor, index, tensor, addr);
}
aclnnStatus AclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                   void* addr) {
  return aclSetOutputTensorAddr(executor, index, tensor, addr);
}
aclnnStatus AclSetTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* addr) {
  return aclSetTensorAddr(executor, index, tensor, addr);
}
aclnnStatus AclSetDynamicInputTensorAddr(aclOpExecutor* executor, size_t irIndex, const size_t relativeIndex,
                                         aclTensorList* tensors, void* addr) {
  return aclSetDynamicInputTensorAddr(executor, irIndex, relativeIndex, tensors, addr);
}
aclnnStatus AclSetDynamicOutputTensorAddr(aclOpExecutor* executor, size_t irIndex, const size_t relativeIndex,
                                          aclTensorList* tensors, void* addr) {
  return aclSetDynamicOutputTensorAddr(executor, irIndex, relativeIndex, tensors, addr);
}
aclnnStatus AclSetDynamicTensorAddr(aclOpExecutor* executor, size_t irIndex, const size_t relativeIndex,
                                    aclTensorList* tensors, void* addr) {
  return aclSetDynamicTensorAddr(executor, irIndex, relativeIndex, tensors, addr);
}

// Both are needed once by device programs and never by us: any order, any number of times.
aclnnStatus aclnnInit(const char* /*configPath*/) { return ACLNN_SUCCESS; }
aclnnStatus aclnnFinalize() { return ACLNN_SUCCESS; }

}  // extern "C"
