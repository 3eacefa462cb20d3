// Moeyard. SPDX-License-Identifier: Apache-2.0
// What the first phase of aclnnMoeDistributeDispatchV4 refuses and accepts in the modes of quantMode that only 950 and the
// host have.
#include "oracle/dispatch_error_calls.h"
#include "support/rerun.h"

namespace oracle {
namespace {

// quantMode 1 and 3, and FP8 rows: what a good call of each becomes.
const Refusal<Call> kFixedScales[] = {
    {"no scales", kTiling, "be given when quantMode is 1", [](Call& c) { c.scales = nullptr; }},
    {"scales of 5 elements", kTiling, "(1), (H) or (E, H)",
     [](Call& c) { c.scales = c.make(ACL_FLOAT, {5}); }},
    {"scales of other experts", kTiling, "E = 4",
     [](Call& c) {
       c.scales = c.make(ACL_FLOAT, {3, 1024});
     }},
    {"scales E8M0", kTiling, "scalesOptional is",
     [](Call& c) { c.scales = c.make(ACL_FLOAT8_E8M0, {1024}); }},
    {"scales of elements with HIFLOAT8 rows", kTiling, "have shape (1) when quantMode is 1",
     [](Call& c) {
       c.expand_x = c.make(ACL_HIFLOAT8, {12, 1024}), c.scales = c.make(ACL_FLOAT, {1024});
     }},
    {"scales of 2 dimensions with HIFLOAT8 rows", kTiling, "have shape (1) when quantMode is 1",
     [](Call& c) {
       c.expand_x = c.make(ACL_HIFLOAT8, {12, 1024}), c.scales = c.make(ACL_FLOAT, {4, 1024});
     }},
    {"FP8 rows", kTiling, "expandXOut is FLOAT8_E5M2",
     [](Call& c) {
       c.expand_x = c.make(ACL_FLOAT8_E5M2, {12, 1024});
     }},
};
const Refusal<Call> kGroups[] = {
    {"no dynamicScales", kNull, "dynamicScalesOut is null", [](Call& c) { c.dynamic_scales = nullptr; }},
    {"dynamicScales of 1 dimension", kTiling, "ceil(H / 128)",
     [](Call& c) { c.dynamic_scales = c.make(ACL_FLOAT, {12}); }},
    {"dynamicScales too narrow", kTiling, "ceil(H / 128)",
     [](Call& c) {
       c.dynamic_scales = c.make(ACL_FLOAT, {12, 7});
     }},
    {"dynamicScales too short", kTiling, "ceil(H / 128)",
     [](Call& c) {
       c.dynamic_scales = c.make(ACL_FLOAT, {11, 8});
     }},
    {"dynamicScales E8M0", kTiling, "be FP32",
     [](Call& c) {
       c.dynamic_scales = c.make(ACL_FLOAT8_E8M0, {12, 8});
     }},
    {"INT8 rows", kTiling, "expandXOut is INT8",
     [](Call& c) {
       c.expand_x = c.make(ACL_INT8, {12, 1024});
     }},
    {"scales of 1 dimension", kTiling, "have 2 dimensions",
     [](Call& c) { c.scales = c.make(ACL_FLOAT, {1024}); }},
};
// quantMode 4 and 5.
const Refusal<Call> kBlocks[] = {
    {"no dynamicScales", kNull, "dynamicScalesOut is null", [](Call& c) { c.dynamic_scales = nullptr; }},
    {"dynamicScales FP32", kTiling, "be FLOAT8_E8M0",
     [](Call& c) {
       c.dynamic_scales = c.make(ACL_FLOAT, {12, 32});
     }},
    {"dynamicScales as the documents have it", kTiling, "2 * ceil(H / 64)",
     [](Call& c) {
       c.dynamic_scales = c.make(ACL_FLOAT8_E8M0, {12, 16});
     }},
    {"dynamicScales too short", kTiling, "A = 12",
     [](Call& c) {
       c.dynamic_scales = c.make(ACL_FLOAT8_E8M0, {11, 32});
     }},
    {"dynamicScales of 1 dimension", kTiling, "dynamicScalesOut is",
     [](Call& c) { c.dynamic_scales = c.make(ACL_FLOAT8_E8M0, {12 * 32}); }},
    {"dynamicScales of other pairs", kTiling, "dynamicScalesOut is",
     [](Call& c) {
       c.dynamic_scales = c.make(ACL_FLOAT8_E8M0, {12, 32, 1});
     }},
    {"scales", kTiling, "be null when quantMode is 4 or 5",
     [](Call& c) {
       c.scales = c.make(ACL_FLOAT, {4, 1024});
     }},
    {"INT8 rows", kTiling, "expandXOut is INT8",
     [](Call& c) {
       c.expand_x = c.make(ACL_INT8, {12, 1024});
     }},
    {"BF16 rows", kTiling, "expandXOut is BF16",
     [](Call& c) {
       c.expand_x = c.make(ACL_BF16, {12, 1024});
     }},
    {"FP4 rows with quantMode 5", kTiling, "when quantMode is 3 or 5",
     [](Call& c) {
       c.quant_mode = 5, c.expand_x = c.make(ACL_FLOAT4_E2M1, {12, 1024});
     }},
    {"FP4 rows of odd H", kTiling, "H is 1025",
     [](Call& c) {
       c.x = c.make(ACL_BF16, {3, 1025}), c.expand_x = c.make(ACL_FLOAT4_E2M1, {12, 1025});
       c.dynamic_scales = c.make(ACL_FLOAT8_E8M0, {12, 34});
     }},
    {"FP4 rows with gaps between elements", kTiling, "begin on whole bytes",
     [](Call& c) {
       c.expand_x = c.make(ACL_FLOAT4_E2M1, {12, 1024}, Layout::spread);
     }},
    {"FP4 rows that begin inside of a byte", kTiling, "begin on whole bytes",
     [](Call& c) {
       c.expand_x = c.make(ACL_FLOAT4_E2M1, {12, 1024}, Layout::offset);
     }},
    {"FP8 tokens", kTiling, "quantMode is 4 but must be 0",
     [](Call& c) {
       c.x = c.make(ACL_FLOAT8_E4M3FN, {3, 1024}), c.expand_x = c.make(ACL_FLOAT8_E4M3FN, {12, 1024});
     }},
};
// Tokens of FP8 that are quantised already.
const Refusal<Call> kTravelling[] = {
    {"no scales", kTiling, "scalesOptional is null", [](Call& c) { c.scales = nullptr; }},
    {"no dynamicScales", kNull, "dynamicScalesOut is null", [](Call& c) { c.dynamic_scales = nullptr; }},
    {"scales of other tokens", kTiling, "BS = 3",
     [](Call& c) {
       c.scales = c.make(ACL_FLOAT, {2, 8});
     }},
    {"scales of 1 dimension", kTiling, "scalesOptional is",
     [](Call& c) { c.scales = c.make(ACL_FLOAT, {3}); }},
    {"more scales than elements", kTiling, "H = 1024",
     [](Call& c) {
       c.scales = c.make(ACL_FLOAT, {3, 1025}), c.dynamic_scales = c.make(ACL_FLOAT, {12, 1025});
     }},
    {"dynamicScales of other columns", kTiling, "columns of scalesOptional",
     [](Call& c) {
       c.dynamic_scales = c.make(ACL_FLOAT, {12, 7});
     }},
    {"dynamicScales too short", kTiling, "A = 12",
     [](Call& c) {
       c.dynamic_scales = c.make(ACL_FLOAT, {11, 8});
     }},
    {"dynamicScales of another dtype", kTiling, "have the dtype of scalesOptional",
     [](Call& c) {
       c.dynamic_scales = c.make(ACL_FLOAT8_E8M0, {12, 8});
     }},
    {"other rows", kInvalid, "expandXOut is FLOAT8_E4M3FN",
     [](Call& c) {
       c.expand_x = c.make(ACL_FLOAT8_E4M3FN, {12, 1024});
     }},
    {"HIFLOAT8 with E8M0 scales", kTiling, "be FP32 with tokens of INT32 or HIFLOAT8",
     [](Call& c) {
       c.x = c.make(ACL_HIFLOAT8, {3, 1024}), c.expand_x = c.make(ACL_HIFLOAT8, {12, 1024});
       c.scales = c.make(ACL_FLOAT8_E8M0, {3, 8}), c.dynamic_scales = c.make(ACL_FLOAT8_E8M0, {12, 8});
     }},
    {"FP4 with FP32 scales", kTiling, "be FLOAT8_E8M0 with tokens of FP4",
     [](Call& c) {
       c.x = c.make(ACL_FLOAT4_E1M2, {3, 1024}), c.expand_x = c.make(ACL_FLOAT4_E1M2, {12, 1024});
     }},
    {"FP4 tokens with gaps between elements", kTiling, "x is FLOAT4_E2M1",
     [](Call& c) {
       c.x = c.make(ACL_FLOAT4_E2M1, {3, 1024}, Layout::spread);
       c.expand_x = c.make(ACL_FLOAT4_E2M1, {12, 1024});
       c.scales = c.make(ACL_FLOAT8_E8M0, {3, 8}), c.dynamic_scales = c.make(ACL_FLOAT8_E8M0, {12, 8});
     }},
    {"a quantMode", kTiling, "quantMode is 2", [](Call& c) { c.quant_mode = 2; }},
};
const Refusal<Call> kCast[] = {
    {"scales", kTiling, "be null when quantMode is 0",
     [](Call& c) {
       c.scales = c.make(ACL_FLOAT, {4, 1024});
     }},
};
constexpr PartSize kWide{.hidden = 1024};

void make_fixed(Call& c) {
  c.quant_mode = 1, c.expand_x = c.make(ACL_INT8, {12, 1024}), c.scales = c.make(ACL_FLOAT, {1});
}
void make_groups(Call& c, aclDataType to = ACL_FLOAT8_E5M2) {
  c.quant_mode = 3, c.expand_x = c.make(to, {12, 1024}), c.dynamic_scales = c.make(ACL_FLOAT, {12, 8});
}
void make_blocks(Call& c, aclDataType to = ACL_FLOAT8_E4M3FN) {
  c.quant_mode = 4, c.expand_x = c.make(to, {12, 1024}), c.dynamic_scales = c.make(ACL_FLOAT8_E8M0, {12, 32});
}
void make_travelling(Call& c, aclDataType of = ACL_FLOAT8_E5M2, aclDataType scales = ACL_FLOAT) {
  c.x = c.make(of, {3, 1024}), c.expand_x = c.make(of, {12, 1024});
  c.scales = c.make(scales, {3, 8}), c.dynamic_scales = c.make(scales, {12, 8});
}
void make_cast(Call& c) { c.expand_x = c.make(ACL_HIFLOAT8, {12, 1024}); }
// On the products that have these modes.
void expect_modes_of_950() {
  const Calls calls(kWide);
  const auto good = [&](void (*change)(Call&)) {
    Call call = calls.good();
    change(call);
    return call;
  };
  expect_refusals(kFixedScales, [&] { return good(make_fixed); });
  expect_refusals(kGroups, [&] { return good([](Call& c) { make_groups(c); }); });
  expect_refusals(kBlocks, [&] { return good([](Call& c) { make_blocks(c); }); });
  expect_refusals(kTravelling, [&] { return good([](Call& c) { make_travelling(c); }); });
  expect_refusals(kCast, [&] { return good(make_cast); });
  calls.expect_accepted(make_cast);
  calls.expect_accepted([](Call& c) { make_cast(c), c.dynamic_scales = nullptr; });
  calls.expect_accepted([](Call& c) { make_fixed(c), c.expand_x = c.make(ACL_HIFLOAT8, {12, 1024}); });
  for (const aclDataType to : {ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E5M2, ACL_FLOAT4_E2M1, ACL_FLOAT4_E1M2}) {
    calls.expect_accepted([&](Call& c) { make_blocks(c, to); });
    calls.expect_accepted([&](Call& c) {
      make_blocks(c, to), c.dynamic_scales = c.make(ACL_FLOAT8_E8M0, {12, 16, 2});
    });
    calls.expect_accepted([&](Call& c) { make_travelling(c, to, ACL_FLOAT8_E8M0); });
  }
  for (const aclDataType of : {ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E5M2, ACL_HIFLOAT8})
    calls.expect_accepted([&](Call& c) { make_travelling(c, of); });
  calls.expect_accepted([](Call& c) { make_blocks(c), c.quant_mode = 5; });
  calls.expect_accepted(make_fixed);
  calls.expect_accepted([](Call& c) { make_fixed(c), c.scales = c.make(ACL_FLOAT, {1024}); });
  calls.expect_accepted([](Call& c) {
    make_fixed(c), c.dynamic_scales = nullptr, c.scales = c.make(ACL_FLOAT, {4, 1024});
  });
  for (const aclDataType to : {ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E5M2}) {
    calls.expect_accepted([&](Call& c) { make_groups(c, to); });
    calls.expect_accepted([&](Call& c) { make_groups(c, to), c.scales = c.make(ACL_FLOAT, {4, 1024}); });
    calls.expect_accepted([&](Call& c) { c.quant_mode = 2, c.expand_x = c.make(to, {12, 1024}); });
  }
}

TEST(DispatchModeErrors, OnHost) { expect_modes_of_950(); }

TEST(DispatchModeErrors, On950) {
  if (run_again_with("MOEYARD_SOC", "950")) expect_modes_of_950();
}

}  // namespace
}  // namespace oracle
