// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "atb/communicators.h"
#include "atb/kind.h"
#include "atb/utils.h"

namespace moeyard::atb_layer {

// Elements to and from each rank.
struct Counts {
  std::vector<std::uint64_t> send, send_from, receive, receive_at;
};

// What HCCL needs to know of a call.
struct CollectiveCall {
  void *x = nullptr, *y = nullptr;
  std::uint64_t elements = 0, bytes = 0;  // of x
  HcclDataType type = HCCL_DATA_TYPE_RESERVED;
  Counts counts;
  ::HcclComm comm = nullptr;
  aclrtStream stream = nullptr;
};

HcclDataType hccl_type(aclDataType type);

// An operation that is one call of HCCL. In place of describe, a Kind has
//
//   static HcclResult run(const Param&, const CollectiveCall&);
//   static atb::Status read_counts(const Param&, const atb::VariantPack&, Counts&);    optional
template <class Param>
class CollectiveOperation final : public ParamOperation<BuiltIn, Param> {
  using ParamOperation<BuiltIn, Param>::ParamOperation;

  atb::Status plan(const atb::VariantPack& pack, ContextImpl& /*context*/,
                   std::uint64_t& /*workspace_size*/) override {
    if constexpr (requires { Kind<Param>::read_counts(this->param(), pack, call_.counts); })
      MOEYARD_ATB_TRY(Kind<Param>::read_counts(this->param(), pack, call_.counts));
    const atb::Tensor& x = pack.inTensors.data()[0];
    call_.elements = atb::Utils::GetTensorNumel(x);
    call_.bytes = bytes_of(x.desc);
    call_.type = hccl_type(x.desc.dtype);
    CommunicatorPtr found;  // the former one is given up afterwards, so that it can be found again
    MOEYARD_ATB_TRY(connect(this->name(), Ranks::of(this->param()), found));
    communicator_ = std::move(found);
    call_.comm = communicator_->get();
    return atb::NO_ERROR;
  }
  atb::Status take(const atb::VariantPack& pack, std::uint8_t* /*workspace*/,
                   ContextImpl& /*context*/) override {
    call_.x = pack.inTensors.data()[0].deviceData;
    call_.y = pack.outTensors.empty() ? nullptr : pack.outTensors.data()[0].deviceData;
    return atb::NO_ERROR;
  }
  atb::Status launch(ContextImpl& /*context*/, aclrtStream stream) override {
    call_.stream = stream;
    const HcclResult code = Kind<Param>::run(this->param(), call_);
    return code == HCCL_SUCCESS ? atb::NO_ERROR : atb::ERROR_HCCL_FAIL;  // HCCL has left a message
  }

  CollectiveCall call_;
  CommunicatorPtr communicator_;
};

// What most collectives say about themselves.
template <class Param>
struct CollectiveKind {
  using Operation = CollectiveOperation<Param>;
  static constexpr const char* kTypes = "h>h b>b f>f c>c s>s i>i l>l";
  static auto fields(const Param& p) { return fields_of_ranks(p); }
  static atb::Status check(const Param& p) { return check_ranks(Kind<Param>::kName, Ranks::of(p)); }
  static Signature signature(const Param&) { return {.types = kTypes}; }
  static atb::Status infer(const Param&, const Descs& inputs, Descs& outputs) {
    outputs[0].shape = inputs[0].shape;
    return atb::NO_ERROR;
  }
  // Dimension 0 of X is cut into a piece per rank.
  static atb::Status check_pieces(const Param& p, const Descs& inputs) {
    if (inputs[0].shape.dims[0] % p.rankSize == 0) return atb::NO_ERROR;
    return fail(atb::ERROR_INVALID_TENSOR_DIM, "%s: dimension 0 of %s must be a multiple of rankSize, %d",
                Kind<Param>::kName, text_of(inputs[0]).c_str(), p.rankSize);
  }
};

}  // namespace moeyard::atb_layer
