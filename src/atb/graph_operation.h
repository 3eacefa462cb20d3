// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "atb/built_in.h"
#include "atb/graph_memory.h"

namespace moeyard::atb_layer {

// Drives the operations of its nodes as a program would, with memory for internal tensors from the workspace.
class GraphOperation final : public BuiltIn {
 public:
  explicit GraphOperation(const atb::GraphParam& param);  // that check_graph accepts; owns the operations
  ~GraphOperation() override;

  const atb::GraphParam& param() const { return param_; }
  void set_stream_id(std::uint32_t id) override;
  std::int64_t stream_of_work() const override;

 private:
  struct Step {
    atb::Operation* operation;
    atb::VariantPack pack;
    std::vector<std::uint64_t> in_offsets;  // bytes from the tensor's begin to the chunk
    std::int64_t stream = 0;
    std::uint64_t workspace_size = 0;
    std::uint64_t workspace_offset = 0;
  };

  atb::Status check_inputs(const Descs& inputs) const override;
  atb::Status infer(const Descs& inputs, Descs& outputs) const override;
  atb::Status plan(const atb::VariantPack& pack, ContextImpl& context,
                   std::uint64_t& workspace_size) override;
  atb::Status take(const atb::VariantPack& pack, std::uint8_t* workspace, ContextImpl& context) override;
  atb::Status launch(ContextImpl& context, aclrtStream stream) override;

  std::uint32_t first_internal() const { return param_.inTensorNum + param_.outTensorNum; }
  atb::Status infer_all(const Descs& inputs, std::vector<atb::TensorDesc>& descs) const;
  atb::Status infer_node(std::size_t i, const std::vector<atb::TensorDesc>& descs, Descs& inputs,
                         Descs& outputs) const;
  atb::Status view_of_input(std::size_t i, std::size_t input, atb::TensorDesc& desc) const;
  atb::Status check_inferred(std::size_t i, const Descs& outputs) const;
  atb::Status set_up_step(std::size_t i, ContextImpl& context);
  std::uint64_t place_workspaces(std::uint64_t begin);
  atb::Status run_steps(ContextImpl& context, bool own_only);
  std::string name_of(std::size_t i) const;

  atb::GraphParam param_;
  std::vector<Step> steps_;

  // Of the last Setup, by tensor id.
  mutable std::vector<atb::TensorDesc> descs_;
  std::vector<Piece> pieces_;
  std::vector<void*> addresses_, host_addresses_;
  std::uint8_t* workspace_ = nullptr;
  std::uint64_t workspace_end_ = 0;
};

}  // namespace moeyard::atb_layer
