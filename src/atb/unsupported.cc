// Moeyard. SPDX-License-Identifier: Apache-2.0
// Parameter structs that exist so that programs compile: operations beside those of mixture-of-experts layers.
#include "atb/infer_op_params.h"
#include "atb/kind.h"
#include "atb/train_op_params.h"

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
