// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ops/routing/init_routing.h"

// What the contracts of the versions of aclnnMoeInitRouting share.
namespace moeyard::ops::init_routing {

using namespace contract;
using A = InitRoutingArgs;

inline constexpr Dtypes kFourBits = kINT4 | kE2M1;
inline constexpr Dim kDims[] = {
    dim("N", "tokens"),
    dim("H", "hidden size"),
    dim<A>("K", "slots per token", [](const A& a) { return a.topk(); }),
    dim<A>("R", "rows", [](const A& a) { return a.rows(); }),
};

// --- Parameters ------------------------------------------------------------------------------------------

constexpr Param x_param(Dtypes dtypes) { return in<&A::x>("x", dtypes, "N, H", "tokens"); }
inline constexpr Param kExpertIdx = in<&A::expert_idx>("expertIdx", kINT32, "N, K", "expert of each slot");
inline constexpr Param kActiveNum = attribute<&A::active_num>("activeNum", "rows to keep");
constexpr Param scale_param(Dtypes dtypes) {
  return in<&A::scale>("scaleOptional", dtypes, "", "factors, or scales of tokens").optional();
}
inline constexpr Param kOffset =
    in<&A::offset>("offsetOptional", kFP32, "", "added in quantMode 0").optional();
inline constexpr Param kCapacityParams[] = {
    attribute<&A::expert_capacity>("expertCapacity", "rows per expert, in dropPadMode 1"),
    attribute<&A::expert_num>("expertNum", "experts"),
    attribute<&A::drop_pad_mode>("dropPadMode", "1: as many rows for every expert"),
};
constexpr Param rows_param(Dtypes dtypes) {
  return out<&A::expanded_x>("expandedXOut", dtypes, "R, H | expertNum, expertCapacity, H", "rows by expert");
}
inline constexpr Param kRowIdxOut =
    out<&A::expanded_row_idx>("expandedRowIdxOut", kINT32, "N*K", "row of each slot");

// --- Rules -----------------------------------------------------------------------------------------------

inline bool is_vector(const TensorView& view, std::int64_t size) {
  return view.present() && view.rank == 1 && view.dim(0) == size;
}

constexpr Rule active_num_rule(Products on) {
  return rule<A>(Stage::attributes, on, "activeNum", "be 0 or more",
                 [](const A& a) { return a.active_num >= 0; });
}
inline constexpr Rule kCapacityRules[] = {
    rule<A>(Stage::attributes, kEverywhere, "dropPadMode", "be 0 or 1",
            [](const A& a) { return a.drop_pad_mode == 0 || a.drop_pad_mode == 1; }),
    rule<A>(Stage::attributes, kEverywhere, "expertCapacity",
            "be in [1, N] in dropPadMode 1, with an expertNum above 0",
            [](const A& a) {
              return !a.pads() ||
                     (a.expert_num > 0 && a.expert_capacity > 0 && a.expert_capacity <= a.x.dim(0));
            }),
    rule<A>(Stage::attributes, kEverywhere, "expertNum",
            "make fewer than 2147483648 rows of expertCapacity each in dropPadMode 1",
            [](const A& a) { return !a.pads() || a.expert_num <= INT32_MAX / a.expert_capacity; }),
};
inline constexpr Rule kRankRule =
    rule<A>(Stage::attributes, kEverywhere, "expandedXOut", "have 3 dimensions in dropPadMode 1, else 2",
            [](const A& a) { return a.expanded_x.rank == (a.pads() ? 3 : 2); });
// What a quantMode multiplies by.
inline constexpr Rule kFactorRules[] = {
    rule<A>(Stage::shapes, kEverywhere, "scaleOptional",
            "have one element in quantMode 0 and 7, in quantMode 1 and 13 be null or have rows of H "
            "elements, one or as "
            "many as experts, and be null in other quantModes but -1",
            [](const A& a) {
              using Factors = Quantisation::Factors;
              const Quantisation* how = a.quantisation();
              if (how == nullptr) return true;
              if (how->factors == Factors::none) return !a.scale.present();
              if (how->factors != Factors::rows) return is_vector(a.scale, 1);
              return !a.scale.present() || (a.scale.rank == 2 && a.scale.dim(1) == a.x.dim(1) &&
                                            (a.scale.dim(0) == 1 || a.scale.dim(0) == a.experts().size()));
            }),
    rule<A>(Stage::shapes, kEverywhere, "offsetOptional", "have one element in quantMode 0",
            [](const A& a) { return a.quant_mode != 0 || is_vector(a.offset, 1); }),
    rule<A>(Stage::shapes, kEverywhere, "expandedXOut",
            "have rows of an even number of elements in INT4 and FP4",
            [](const A& a) { return !kFourBits.has(a.expanded_x.dtype) || a.x.dim(1) % 2 == 0; }),
};

inline constexpr Codes kTiling{.shape = ACLNN_ERR_INNER_TILING_ERROR, .rule = ACLNN_ERR_INNER_TILING_ERROR};

}  // namespace moeyard::ops::init_routing
