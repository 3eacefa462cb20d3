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
    {"HIFLOAT8 rows", kTiling, "not supported yet",
     [](Call& c) {
       c.expand_x = c.make(ACL_HIFLOAT8, {12, 1024});
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
constexpr PartSize kWide{.hidden = 1024};

void make_fixed(Call& c) {
  c.quant_mode = 1, c.expand_x = c.make(ACL_INT8, {12, 1024}), c.scales = c.make(ACL_FLOAT, {1});
}
void make_groups(Call& c, aclDataType to = ACL_FLOAT8_E5M2) {
  c.quant_mode = 3, c.expand_x = c.make(to, {12, 1024}), c.dynamic_scales = c.make(ACL_FLOAT, {12, 8});
}
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
