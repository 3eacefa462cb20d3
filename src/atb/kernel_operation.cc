// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "atb/kernel_operation.h"

#include <algorithm>

namespace moeyard::atb_layer {
namespace {

MoeyardAtbTensor describe_tensor(const atb::TensorDesc& desc) {
  MoeyardAtbTensor tensor{};
  tensor.dtype = desc.dtype;
  tensor.rank = desc.shape.dimNum == 0 ? -1 : static_cast<std::int32_t>(desc.shape.dimNum);
  std::copy_n(desc.shape.dims, desc.shape.dimNum, tensor.dims);
  return tensor;
}

}  // namespace

atb::Status KernelOperation::plan(const atb::VariantPack& pack, ContextImpl& /*context*/,
                                  std::uint64_t& workspace_size) {
  tensors_.clear();
  for (const atb::Tensor& tensor : pack.inTensors) tensors_.push_back(describe_tensor(tensor.desc));
  for (const atb::Tensor& tensor : pack.outTensors) tensors_.push_back(describe_tensor(tensor.desc));
  call_ = {};
  call_.name = static_name_;
  call_.tensors = tensors_.data();
  call_.tensor_count = static_cast<std::int32_t>(tensors_.size());
  describe(call_);
  workspace_size = static_cast<std::uint64_t>(moeyardAtbWorkspace(&call_));
  return atb::NO_ERROR;
}

atb::Status KernelOperation::take(const atb::VariantPack& pack, std::uint8_t* workspace,
                                  ContextImpl& /*context*/) {
  auto next = tensors_.begin();
  for (const atb::Tensor& tensor : pack.inTensors) (next++)->data = tensor.deviceData;
  for (const atb::Tensor& tensor : pack.outTensors) (next++)->data = tensor.deviceData;
  workspace_ = workspace;
  return atb::NO_ERROR;
}

atb::Status KernelOperation::launch(ContextImpl& /*context*/, aclrtStream stream) {
  return moeyardAtbRun(&call_, workspace_, stream);
}

}  // namespace moeyard::atb_layer
