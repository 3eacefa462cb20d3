// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "atb/built_in.h"
#include "atb/failure.h"
#include "atb/graph_memory.h"

namespace moeyard::atb_layer {

// An operation whose work is that of others.
class DelegatingOperation : public BuiltIn {
 protected:
  using BuiltIn::BuiltIn;

  // The operation that does this call's work. Setup and Execute keep to what it was in Setup's InferShape.
  virtual atb::Operation* choose() const = 0;

 private:
  atb::Status infer(const Descs& inputs, Descs& outputs) const final {
    chosen_ = choose();
    return chosen_->InferShape(inputs, outputs);
  }
  // The operation itself says what it takes.
  atb::Status check_inputs(const Descs&) const final { return atb::NO_ERROR; }
  atb::Status plan(const atb::VariantPack& pack, ContextImpl& context, std::uint64_t& workspace_size) final {
    set_up_ = chosen_;
    MOEYARD_ATB_TRY(set_up_->Setup(pack, workspace_size, &context));
    workspace_size_ = workspace_size;
    return atb::NO_ERROR;
  }
  atb::Status take(const atb::VariantPack& pack, std::uint8_t* workspace, ContextImpl& context) final {
    pack_ = pack;
    workspace_ = workspace;
    // Operations of the program know nothing of preparing: theirs is done with the launch.
    const bool prepares =
        execute_type() == atb::EXECUTE_PRELAUNCH && dynamic_cast<BuiltIn*>(set_up_) != nullptr;
    return prepares ? set_up_->Execute(pack_, workspace_, workspace_size_, &context) : atb::NO_ERROR;
  }
  atb::Status launch(ContextImpl& context, aclrtStream /*stream*/) final {
    return set_up_->Execute(pack_, workspace_, workspace_size_, &context);
  }

  mutable atb::Operation* chosen_ = nullptr;
  atb::Operation* set_up_ = nullptr;
  atb::VariantPack pack_;
  std::uint8_t* workspace_ = nullptr;
  std::uint64_t workspace_size_ = 0;
};

}  // namespace moeyard::atb_layer
