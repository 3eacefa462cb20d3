// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "atb/built_in.h"
#include "moeyard/atb_backend.h"

namespace moeyard::atb_layer {

// An operation that is one call of the backend.
class KernelOperation : public BuiltIn {
 protected:
  explicit KernelOperation(const char* name) : BuiltIn(name), static_name_(name) {}

  // The attributes of the call: what it computes, integers, numbers.
  virtual void describe(MoeyardAtbCall& call) const = 0;

  atb::Status plan(const atb::VariantPack& pack, ContextImpl& context, std::uint64_t& workspace_size) final;
  atb::Status take(const atb::VariantPack& pack, std::uint8_t* workspace, ContextImpl& context) final;
  atb::Status launch(ContextImpl& context, aclrtStream stream) final;

 private:
  const char* static_name_;
  MoeyardAtbCall call_{};
  std::vector<MoeyardAtbTensor> tensors_;
  std::uint8_t* workspace_ = nullptr;
};

}  // namespace moeyard::atb_layer
