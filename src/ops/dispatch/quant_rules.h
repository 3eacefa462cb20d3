// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// What dispatch demands of quantMode, of the dtypes of tokens and rows, and of the scales: rules of its contract.
#pragma once
#include "ops/dispatch/dispatch.h"
#include "ops/dispatch/ep_params.h"
#include "ops/dispatch/ep_rules.h"

namespace moeyard::ops::quant_rules {

using contract::Rule;
using contract::rule;
using contract::Stage;
using A = DispatchArgs;

inline constexpr Dtypes kFp8 = kE5M2 | kE4M3, kFp4 = kE2M1 | kE1M2;
inline constexpr Products kWide = kHost | k950;  // products with more than INT8 rows

inline bool is_half(const TensorView& view) { return kHalves.has(view.dtype); }
inline bool is_fp4(const TensorView& view) { return view.present() && kFp4.has(view.dtype); }
// Tokens of 8 bits and fewer, whose scales travel with them.
inline bool is_small(const TensorView& view) { return (kHIF8 | kFp8 | kFp4).has(view.dtype); }
inline bool in_blocks(const A& a) { return a.quant_mode == 4 || a.quant_mode == 5; }

inline std::int64_t rows_of_both(const A& a) { return ep_rules::tp_ranks(a) * ep_params::required_rows(a); }

// Of scales that are made on the way.
inline constexpr auto kMadeNulls = std::to_array<Rule>({
    rule<A>(
        Stage::nulls, kEverywhere, "dynamicScalesOut", "be given when quantMode is 2",
        [](const A& a) { return a.quant_mode != 2 || a.dynamic_scales.present(); },
        "pass an FP32 tensor of A elements", ACLNN_ERR_PARAM_NULLPTR),
    rule<A>(
        Stage::nulls, kWide, "dynamicScalesOut", "be given when quantMode is 3",
        [](const A& a) { return a.quant_mode != 3 || a.dynamic_scales.present(); },
        "pass an FP32 tensor of shape (A, ceil(H / 128))", ACLNN_ERR_PARAM_NULLPTR),
    rule<A>(
        Stage::nulls, kWide, "dynamicScalesOut", "be given when quantMode is 4 or 5",
        [](const A& a) { return !in_blocks(a) || a.dynamic_scales.present(); },
        "pass a FLOAT8_E8M0 tensor of shape (A, 2 * ceil(H / 64))", ACLNN_ERR_PARAM_NULLPTR),
});
inline constexpr auto kNulls = std::to_array<Rule>({
    rule<A>(
        Stage::nulls, kWide, "dynamicScalesOut", "be given with tokens of HIFLOAT8, FP8 or FP4",
        [](const A& a) { return a.quant_mode != 0 || !is_small(a.x) || a.dynamic_scales.present(); },
        "pass a tensor of A rows as wide as those of scalesOptional", ACLNN_ERR_PARAM_NULLPTR),
    rule<A>(
        Stage::nulls, kEverywhere, "x", "not be INT32 while scalesOptional or dynamicScalesOut is null",
        [](const A& a) {
          return a.x.dtype != ACL_INT32 || (a.scales.present() && a.dynamic_scales.present());
        },
        {}, ACLNN_ERR_PARAM_NULLPTR),
});

// Pairs of dtypes that no mode has: 161002.
inline constexpr auto kPairs = std::to_array<Rule>({
    rule<A>(
        Stage::attributes, kEverywhere, "expandXOut", "have the dtype of x where both are FP16 or BF16",
        [](const A& a) { return !is_half(a.x) || !is_half(a.expand_x) || a.x.dtype == a.expand_x.dtype; },
        "make expandXOut of the dtype of x", ACLNN_ERR_PARAM_INVALID),
    rule<A>(
        Stage::attributes, kEverywhere, "expandXOut", "have the dtype of x where that is not FP16 or BF16",
        [](const A& a) { return is_half(a.x) || a.x.dtype == a.expand_x.dtype; },
        "make expandXOut of the dtype of x", ACLNN_ERR_PARAM_INVALID),
    rule<A>(
        Stage::attributes, kEverywhere, "expandXOut", "not be INT32 where x is FP16 or BF16",
        [](const A& a) { return !is_half(a.x) || a.expand_x.dtype != ACL_INT32; },
        "make expandXOut of the dtype of x", ACLNN_ERR_PARAM_INVALID),
});

// Modes and dtypes.
inline constexpr auto kModes = std::to_array<Rule>({
    rule<A>(Stage::attributes, kA3, "x", "be FP16 or BF16", [](const A& a) { return is_half(a.x); }),
    rule<A>(Stage::attributes, kA2, "x", "be FP16, BF16 or INT32",
            [](const A& a) { return (kHalves | kINT32).has(a.x.dtype); }),
    rule<A>(Stage::attributes, kA2, "x", "be FP16 or BF16 with the hierarchy algorithm",
            [](const A& a) { return !ep_rules::is_hierarchy(a) || is_half(a.x); }),
    rule<A>(Stage::attributes, k950, "x", "not be INT32", [](const A& a) { return a.x.dtype != ACL_INT32; }),
    rule<A>(
        Stage::attributes, kEverywhere, "quantMode", "be 0 when x is not FP16 or BF16",
        [](const A& a) { return a.quant_mode == 0 || is_half(a.x); },
        "pass 0, as these tokens are quantised already"),
    rule<A>(
        Stage::attributes, kA2 | kA3, "expandXOut", "have the dtype of x when quantMode is 0",
        [](const A& a) { return a.quant_mode != 0 || a.expand_x.dtype == a.x.dtype; },
        "make expandXOut of the dtype of x"),
    rule<A>(
        Stage::attributes, kWide, "expandXOut", "have the dtype of x, or be HIFLOAT8, when quantMode is 0",
        [](const A& a) {
          return a.quant_mode != 0 || a.expand_x.dtype == a.x.dtype || a.expand_x.dtype == ACL_HIFLOAT8;
        },
        "make expandXOut of the dtype of x"),
    rule<A>(Stage::attributes, kA2 | kA3, "expandXOut", "be INT8 when quantMode is 2",
            [](const A& a) { return a.quant_mode == 0 || a.expand_x.dtype == ACL_INT8; }),
    rule<A>(Stage::attributes, kWide, "expandXOut", "be INT8 or HIFLOAT8 when quantMode is 1",
            [](const A& a) { return a.quant_mode != 1 || (kINT8 | kHIF8).has(a.expand_x.dtype); }),
    rule<A>(Stage::attributes, kWide, "expandXOut",
            "be INT8, FLOAT8_E4M3FN or FLOAT8_E5M2 when quantMode is 2",
            [](const A& a) { return a.quant_mode != 2 || (kINT8 | kFp8).has(a.expand_x.dtype); }),
    rule<A>(
        Stage::attributes, kWide, "expandXOut", "be FLOAT8_E4M3FN or FLOAT8_E5M2 when quantMode is 3 or 5",
        [](const A& a) { return (a.quant_mode != 3 && a.quant_mode != 5) || kFp8.has(a.expand_x.dtype); }),
    rule<A>(Stage::attributes, kWide, "expandXOut",
            "be FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT4_E2M1 or FLOAT4_E1M2 when quantMode is 4",
            [](const A& a) { return a.quant_mode != 4 || (kFp8 | kFp4).has(a.expand_x.dtype); }),
});

// Which scales come and go.
inline constexpr auto kMadeTypes = std::to_array<Rule>({
    rule<A>(Stage::attributes, kEverywhere, "dynamicScalesOut", "be FP32 when quantMode is 2 or 3",
            [](const A& a) {
              return (a.quant_mode != 2 && a.quant_mode != 3) || a.dynamic_scales.dtype == ACL_FLOAT;
            }),
    rule<A>(Stage::attributes, kWide, "dynamicScalesOut", "be FLOAT8_E8M0 when quantMode is 4 or 5",
            [](const A& a) { return !in_blocks(a) || a.dynamic_scales.dtype == ACL_FLOAT8_E8M0; }),
});
inline constexpr auto kScales = std::to_array<Rule>({
    rule<A>(
        Stage::attributes, kEverywhere, "scalesOptional", "be null when quantMode is 0 and x is FP16 or BF16",
        [](const A& a) { return a.quant_mode != 0 || !is_half(a.x) || !a.scales.present(); },
        "pass no scales, or quantMode 2"),
    rule<A>(
        Stage::attributes, kWide, "scalesOptional", "be given with tokens of HIFLOAT8, FP8 or FP4",
        [](const A& a) { return is_half(a.x) || a.scales.present(); }, "pass the scales of the tokens"),
    rule<A>(
        Stage::attributes, kWide, "scalesOptional", "be given when quantMode is 1",
        [](const A& a) { return a.quant_mode != 1 || a.scales.present(); },
        "pass one factor, H of them, or H for each expert"),
    rule<A>(
        Stage::attributes, kWide, "scalesOptional", "be null when quantMode is 4 or 5",
        [](const A& a) { return !in_blocks(a) || !a.scales.present(); }, "pass null"),
    rule<A>(
        Stage::attributes, kEverywhere, "scalesOptional", "be FP32 when quantMode is 1, 2 or 3",
        [](const A& a) { return a.quant_mode == 0 || !a.scales.present() || a.scales.dtype == ACL_FLOAT; }),
    rule<A>(Stage::attributes, kEverywhere, "scalesOptional", "be FP32 with tokens of INT32 or HIFLOAT8",
            [](const A& a) { return !(kINT32 | kHIF8).has(a.x.dtype) || a.scales.dtype == ACL_FLOAT; }),
    rule<A>(Stage::attributes, kWide, "scalesOptional", "be FLOAT8_E8M0 with tokens of FP4",
            [](const A& a) { return !is_fp4(a.x) || a.scales.dtype == ACL_FLOAT8_E8M0; }),
    rule<A>(
        Stage::attributes, kEverywhere, "dynamicScalesOut",
        "have the dtype of scalesOptional with tokens that are not FP16 or BF16",
        [](const A& a) { return is_half(a.x) || a.dynamic_scales.dtype == a.scales.dtype; },
        "make it of the dtype of scalesOptional"),
    rule<A>(Stage::attributes, kEverywhere, "scalesOptional", "have 2 dimensions when quantMode is 2 or 3",
            [](const A& a) {
              return (a.quant_mode != 2 && a.quant_mode != 3) || !a.scales.present() || a.scales.rank == 2;
            }),
    rule<A>(Stage::attributes, kA2 | kA3, "scalesOptional", "be null with the hierarchy algorithm",
            [](const A& a) { return !ep_rules::is_hierarchy(a) || !a.scales.present(); }),
});

inline bool has_shape(const TensorView& view, std::int64_t rows, std::int64_t columns) {
  return view.rank == 2 && view.dim(0) == rows && view.dim(1) == columns;
}
inline bool is_row_per_expert(const A& a) {
  return has_shape(a.scales, EpLayout(a).scale_rows(), a.hidden());
}
// Whether the rows of FP4 elements lie on whole bytes.
inline bool on_bytes(const TensorView& view) {
  if (!is_fp4(view)) return true;
  return view.offset % 2 == 0 && (view.dim(0) <= 1 || view.strides[0] % 2 == 0) &&
         (view.dim(1) <= 1 || view.strides[1] == 1);
}

inline constexpr auto kShapes = std::to_array<Rule>({
    rule<A>(Stage::shapes, kWide, "H", "be even with tokens or rows of FP4",
            [](const A& a) { return (!is_fp4(a.x) && !is_fp4(a.expand_x)) || a.hidden() % 2 == 0; }),
    rule<A>(
        Stage::shapes, kWide, "x", "have rows without gaps that begin on whole bytes when it is FP4",
        [](const A& a) { return on_bytes(a.x); }, "pass a contiguous tensor"),
    rule<A>(
        Stage::shapes, kWide, "expandXOut", "have rows without gaps that begin on whole bytes when it is FP4",
        [](const A& a) { return on_bytes(a.expand_x); }, "pass a contiguous tensor"),
    rule<A>(Stage::shapes, kEverywhere, "scalesOptional", "have shape (E, H) when quantMode is 2 or 3",
            [](const A& a) {
              return (a.quant_mode != 2 && a.quant_mode != 3) || !a.scales.present() || is_row_per_expert(a);
            }),
    rule<A>(Stage::shapes, kWide, "scalesOptional",
            "have shape (1), (H) or (E, H) when quantMode is 1 and expandXOut INT8",
            [](const A& a) {
              if (a.quant_mode != 1 || a.expand_x.dtype != ACL_INT8) return true;
              if (a.scales.rank != 1) return is_row_per_expert(a);
              return a.scales.dim(0) == 1 || a.scales.dim(0) == a.hidden();
            }),
    rule<A>(Stage::shapes, kWide, "scalesOptional",
            "have shape (1) when quantMode is 1 and expandXOut HIFLOAT8",
            [](const A& a) {
              return a.quant_mode != 1 || a.expand_x.dtype != ACL_HIFLOAT8 ||
                     (a.scales.rank == 1 && a.scales.dim(0) == 1);
            }),
    rule<A>(Stage::shapes, kWide, "scalesOptional",
            "have shape (BS, at most H) with tokens of HIFLOAT8, FP8 or FP4",
            [](const A& a) {
              return !is_small(a.x) ||
                     (a.scales.rank == 2 && a.scales.dim(0) == a.bs() && a.scales.dim(1) <= a.hidden());
            }),
    rule<A>(Stage::shapes, kHost | kA2, "scalesOptional", "have shape (BS) with tokens of INT32",
            [](const A& a) {
              return a.x.dtype != ACL_INT32 || (a.scales.rank == 1 && a.scales.dim(0) == a.bs());
            }),
});
inline constexpr auto kMadeShapes = std::to_array<Rule>({
    rule<A>(Stage::shapes, kEverywhere, "dynamicScalesOut",
            "have shape (>= T*A) when quantMode is 2, or with tokens of INT32",
            [](const A& a) {
              return (a.quant_mode != 2 && a.x.dtype != ACL_INT32) ||
                     (a.dynamic_scales.rank == 1 && a.dynamic_scales.dim(0) >= rows_of_both(a));
            }),
    rule<A>(Stage::shapes, kWide, "dynamicScalesOut",
            "have shape (>= T*A, ceil(H / 128)) when quantMode is 3",
            [](const A& a) {
              return a.quant_mode != 3 ||
                     (a.dynamic_scales.rank == 2 && a.dynamic_scales.dim(0) >= rows_of_both(a) &&
                      a.dynamic_scales.dim(1) == (a.hidden() + 127) / 128);
            }),
    rule<A>(Stage::shapes, kWide, "dynamicScalesOut",
            "have shape (>= T*A, 2 * ceil(H / 64)) or (>= T*A, ceil(H / 64), 2) when quantMode is 4 or 5",
            [](const A& a) {
              const TensorView& scales = a.dynamic_scales;
              const std::int64_t pairs = (a.hidden() + 63) / 64;
              if (!in_blocks(a)) return true;
              if (scales.rank != 2 && scales.rank != 3) return false;
              return scales.dim(0) >= rows_of_both(a) &&
                     (scales.rank == 2 ? scales.dim(1) == 2 * pairs
                                       : scales.dim(1) == pairs && scales.dim(2) == 2);
            }),
});
inline constexpr auto kTravellingShapes = std::to_array<Rule>({
    rule<A>(Stage::shapes, kWide, "dynamicScalesOut",
            "have shape (>= T*A, columns of scalesOptional) with tokens of HIFLOAT8, FP8 or FP4",
            [](const A& a) {
              return !is_small(a.x) ||
                     (a.dynamic_scales.rank == 2 && a.dynamic_scales.dim(0) >= rows_of_both(a) &&
                      a.dynamic_scales.dim(1) == a.scales.dim(1));
            }),
});

}  // namespace moeyard::ops::quant_rules
