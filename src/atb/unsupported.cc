// Moeyard. SPDX-License-Identifier: Apache-2.0
// Parameter structs that exist so that programs compile: operations beside those of mixture-of-experts layers.
#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <typeinfo>

#include "atb/exported.h"
#include "atb/failure.h"
#include "atb/infer_op_params.h"
#include "atb/train_op_params.h"

namespace moeyard::atb_layer {
namespace {

atb::Status refuse_unsupported(const std::type_info& param) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(param.name(), nullptr, nullptr, &status), std::free);
  return fail(atb::ERROR_INVALID_PARAM,
              "CreateOperation: %s is not supported by this library; docs/limits.md lists what is",
              status == 0 ? name.get() : param.name());
}

}  // namespace
}  // namespace moeyard::atb_layer

namespace atb {

template <typename OpParam>
Status CreateOperation(const OpParam& /*opParam*/, Operation** /*operation*/) {
  return moeyard::atb_layer::refuse_unsupported(typeid(OpParam));
}
template <typename OpParam>
Status CloneOperationParam(const Operation* /*operation*/, OpParam& /*opParam*/) {
  return moeyard::atb_layer::refuse_unsupported(typeid(OpParam));
}
template <typename OpParam>
Status UpdateOperationParam(Operation* /*operation*/, const OpParam& /*opParam*/) {
  return moeyard::atb_layer::refuse_unsupported(typeid(OpParam));
}

}  // namespace atb

namespace moeyard::atb_layer {

namespace infer = atb::infer;
namespace train = atb::train;
template struct Exported<
    infer::AllGatherVParam, infer::ReduceScatterVParam, infer::AsStridedParam, infer::FillParam,
    infer::RepeatParam, infer::SetValueParam, infer::WhereParam, infer::NonzeroParam, infer::BlockCopyParam,
    infer::CohereLayerNormParam, infer::DynamicNTKParam, infer::FaUpdateParam, infer::GatherPreRmsNormParam,
    infer::GmmDeqSwigluQuantGmmDeqParam, infer::KvCacheParam, infer::LayerNormWithStrideParam,
    infer::LinearSparseParam, infer::MlaPreprocessParam, infer::MmDeqSwigluQuantMmDeqParam,
    infer::MultiLatentAttentionParam, infer::MultinomialParam, infer::NormRopeReshapeParam, infer::PadParam,
    infer::PagedAttentionParam, infer::PagedCacheLoadParam, infer::RazorFusionAttentionParam,
    infer::RelayAttentionParam, infer::ReshapeAndCacheOmniParam, infer::ReshapeAndCacheParam,
    infer::ReshapeAndCacheWithStrideParam, infer::RingMLAParam, infer::RmsNormWithStrideParam,
    infer::RopeParam, infer::RopeQConcatParam, infer::SelfAttentionParam, infer::TopkToppSamplingParam,
    infer::TransdataParam, infer::UnpadParam, train::FastSoftMaxGradParam, train::FastSoftMaxParam,
    train::GenAttentionMaskParam, train::LaserAttentionGradParam, train::LaserAttentionParam,
    train::PadWithHiddenStateParam, train::RmsNormBackwardParam, train::RopeGradParam,
    train::StridedBatchMatmulParam, train::UnpadWithHiddenStateParam>;

}  // namespace moeyard::atb_layer
