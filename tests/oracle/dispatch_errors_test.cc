// Moeyard. SPDX-License-Identifier: Apache-2.0
// What the first phase of aclnnMoeDistributeDispatchV4 refuses, row by row, on every product.
#include "oracle/dispatch_error_calls.h"
#include "support/rerun.h"

namespace oracle {
namespace {

const std::string kLongName(128, 'g');

// BS 3, K 2, H 8, two ranks with two experts each: A = 3 * 2 * min(2, 2) = 12.
const Refusal<Call> kNulls[] = {
    {"x", kNull, "x is null", [](Call& c) { c.x = nullptr; }},
    {"expertIds", kNull, "expertIds is null", [](Call& c) { c.ids = nullptr; }},
    {"expandXOut", kNull, "expandXOut is null", [](Call& c) { c.expand_x = nullptr; }},
    {"assistInfoForCombineOut", kNull, "assistInfoForCombineOut is null",
     [](Call& c) { c.assist = nullptr; }},
    {"expertTokenNumsOut", kNull, "expertTokenNumsOut is null", [](Call& c) { c.nums = nullptr; }},
    {"epRecvCountsOut", kNull, "epRecvCountsOut is null", [](Call& c) { c.counts = nullptr; }},
    {"groupEp", kNull, "groupEp", [](Call& c) { c.group = nullptr; }},
    {"groupEp empty", kNull, "groupEp", [](Call& c) { c.group = ""; }},
    {"dynamicScalesOut", kNull, "dynamicScalesOut",
     [](Call& c) { c.quant_mode = 2, c.dynamic_scales = nullptr; }},
    {"INT32 without scales", kNull, "INT32",
     [](Call& c) {
       c.x = c.make(ACL_INT32, {3, 8});
     }},
    {"groupEp too long", kNull, "groupEp", [](Call& c) { c.group = kLongName.c_str(); }},
    // A null comes before everything else.
    {"null and bad dtype", kNull, "expertIds is null",
     [](Call& c) {
       c.ids = nullptr, c.x = c.make(ACL_FLOAT, {3, 8});
     }},
};

const Refusal<Call> kDtypes[] = {
    {"x", kInvalid, "x is FP32",
     [](Call& c) {
       c.x = c.make(ACL_FLOAT, {3, 8});
     }},
    {"expertIds", kInvalid, "expertIds is INT64",
     [](Call& c) {
       c.ids = c.make(ACL_INT64, {3, 2});
     }},
    {"scales", kInvalid, "scalesOptional is",
     [](Call& c) {
       c.scales = c.make(ACL_INT32, {4, 8});
     }},
    {"mask", kInvalid, "xActiveMaskOptional is", [](Call& c) { c.mask = c.make(ACL_INT32, {3}); }},
    {"expertScales", kInvalid, "expertScalesOptional is",
     [](Call& c) {
       c.weights = c.make(ACL_FLOAT16, {3, 2});
     }},
    {"elasticInfo", kInvalid, "elasticInfoOptional is", [](Call& c) { c.elastic = c.make(ACL_INT64, {8}); }},
    {"performanceInfo", kInvalid, "performanceInfoOptional is",
     [](Call& c) { c.performance = c.make(ACL_INT32, {2}); }},
    {"expandX", kInvalid, "expandXOut is",
     [](Call& c) {
       c.expand_x = c.make(ACL_FLOAT, {12, 8});
     }},
    {"expandX of the other half", kInvalid, "expandXOut is",
     [](Call& c) {
       c.expand_x = c.make(ACL_FLOAT16, {12, 8});
     }},
    {"dynamicScales", kInvalid, "dynamicScalesOut is",
     [](Call& c) { c.dynamic_scales = c.make(ACL_FLOAT16, {12}); }},
    {"assistInfo", kInvalid, "assistInfoForCombineOut is",
     [](Call& c) { c.assist = c.make(ACL_INT64, {1536}); }},
    {"expertTokenNums", kInvalid, "expertTokenNumsOut is", [](Call& c) { c.nums = c.make(ACL_INT32, {2}); }},
    {"epRecvCounts", kInvalid, "epRecvCountsOut is", [](Call& c) { c.counts = c.make(ACL_INT64, {4}); }},
    {"tpRecvCounts", kInvalid, "tpRecvCountsOut is", [](Call& c) { c.tp_counts = c.make(ACL_INT64, {1}); }},
    {"expandScales", kInvalid, "expandScalesOut is",
     [](Call& c) { c.expand_scales = c.make(ACL_FLOAT16, {12}); }},
    // A dtype comes before every rule of the attributes.
    {"dtype and attribute", kInvalid, "expertIds is INT64",
     [](Call& c) {
       c.ids = c.make(ACL_INT64, {3, 2}), c.shard_type = 1;
     }},
};

const Refusal<Call> kAttributes[] = {
    {"rank below", kTiling, "epRankId is -1", [](Call& c) { c.rank = -1; }},
    {"rank above", kTiling, "epRankId is 2", [](Call& c) { c.rank = 2; }},
    {"tpWorldSize", kTiling, "tpWorldSize is 3", [](Call& c) { c.tp_ranks = 3; }},
    {"tpWorldSize below", kTiling, "tpWorldSize is -1", [](Call& c) { c.tp_ranks = -1; }},
    {"expertShardType", kTiling, "expertShardType is 1", [](Call& c) { c.shard_type = 1; }},
    {"quantMode above", kTiling, "quantMode is 6", [](Call& c) { c.quant_mode = 6; }},
    {"quantMode below", kTiling, "quantMode is -1", [](Call& c) { c.quant_mode = -1; }},
    {"expertTokenNumsType", kTiling, "expertTokenNumsType is 2", [](Call& c) { c.nums_type = 2; }},
    {"zeroExpertNum", kTiling, "zeroExpertNum is -1", [](Call& c) { c.zero = -1; }},
    {"copyExpertNum", kTiling, "copyExpertNum is -1", [](Call& c) { c.copy = -1; }},
    {"constExpertNum", kTiling, "constExpertNum is -1", [](Call& c) { c.constant = -1; }},
    {"zeroExpertNum too large", kTiling, "zeroExpertNum is 2147483647", [](Call& c) { c.zero = 2147483647; }},
    {"sum of experts", kTiling, "moeExpertNum is 4", [](Call& c) { c.zero = c.copy = 2147483646; }},
    {"moeExpertNum", kTiling, "moeExpertNum is 0", [](Call& c) { c.experts = 0; }},
    {"moeExpertNum not a multiple", kTiling, "moeExpertNum is 5", [](Call& c) { c.experts = 5; }},
    {"expandX INT8 without quantMode", kTiling, "expandXOut is INT8",
     [](Call& c) {
       c.expand_x = c.make(ACL_INT8, {12, 8});
     }},
    {"expandX not INT8 with quantMode", kTiling, "expandXOut is BF16", [](Call& c) { c.quant_mode = 2; }},
    {"scales without quantMode", kTiling, "scalesOptional is",
     [](Call& c) {
       c.scales = c.make(ACL_FLOAT, {4, 8});
     }},
    {"elasticInfo", kTiling, "elasticInfoOptional is INT32[7]",
     [](Call& c) { c.elastic = c.make(ACL_INT32, {7}); }},
    {"performanceInfo", kTiling, "performanceInfoOptional is INT64[3]",
     [](Call& c) { c.performance = c.make(ACL_INT64, {3}); }},
    {"other group", kInvalid, "group not found", [](Call& c) { c.group = "nobody"; }},
};

const Refusal<Call> kShapes[] = {
    {"x", kTiling, "x is BF16[24]", [](Call& c) { c.x = c.make(ACL_BF16, {24}); }},
    {"expertIds", kTiling, "expertIds is INT32[6]", [](Call& c) { c.ids = c.make(ACL_INT32, {6}); }},
    {"expertIds rows", kTiling, "expertIds is",
     [](Call& c) {
       c.ids = c.make(ACL_INT32, {4, 2});
     }},
    {"K above the experts", kTiling, "K is 5",
     [](Call& c) {
       c.ids = c.make(ACL_INT32, {3, 5}), c.weights = c.make(ACL_FLOAT, {3, 5}), c.mask = nullptr;
     }},
    {"no K", kTiling, "K is 0",
     [](Call& c) {
       c.ids = c.make(ACL_INT32, {3, 0}), c.weights = c.make(ACL_FLOAT, {3, 0});
     }},
    {"mask of 3 dimensions", kTiling, "xActiveMaskOptional is",
     [](Call& c) {
       c.mask = c.make(ACL_BOOL, {3, 2, 1});
     }},
    {"mask of other tokens", kTiling, "xActiveMaskOptional is",
     [](Call& c) { c.mask = c.make(ACL_BOOL, {4}); }},
    {"mask of other slots", kTiling, "xActiveMaskOptional is",
     [](Call& c) {
       c.mask = c.make(ACL_BOOL, {3, 3});
     }},
    {"expertScales", kTiling, "expertScalesOptional is",
     [](Call& c) {
       c.weights = c.make(ACL_FLOAT, {3, 3});
     }},
    {"expertScales of 1 dimension", kTiling, "expertScalesOptional is",
     [](Call& c) { c.weights = c.make(ACL_FLOAT, {6}); }},
    {"globalBs no multiple", kTiling, "globalBs is 7", [](Call& c) { c.global_bs = 7; }},
    {"globalBs too small", kTiling, "globalBs is 4", [](Call& c) { c.global_bs = 4; }},
    {"globalBs below 0", kTiling, "globalBs is -6", [](Call& c) { c.global_bs = -6; }},
    {"expandX of other width", kTiling, "expandXOut is",
     [](Call& c) {
       c.expand_x = c.make(ACL_BF16, {12, 16});
     }},
    {"expandX of 1 dimension", kTiling, "expandXOut is",
     [](Call& c) { c.expand_x = c.make(ACL_BF16, {96}); }},
    {"tpRecvCounts of 2 dimensions", kTiling, "tpRecvCountsOut is",
     [](Call& c) {
       c.tp_counts = c.make(ACL_INT32, {1, 1});
     }},
};

// Sizes of outputs, which A2 does not look at.
const Refusal<Call> kOutputs[] = {
    {"expandX too short", kTiling, "A = 12",
     [](Call& c) {
       c.expand_x = c.make(ACL_BF16, {11, c.part->x.shape()[1]});
     }},
    {"assistInfo too short", kTiling, "P = 1536", [](Call& c) { c.assist = c.make(ACL_INT32, {1535}); }},
    {"expertTokenNums too short", kTiling, "L = 2", [](Call& c) { c.nums = c.make(ACL_INT64, {1}); }},
    {"expertTokenNums too long", kTiling, "expertTokenNumsOut",
     [](Call& c) { c.nums = c.make(ACL_INT64, {3}); }},
    {"epRecvCounts too short", kTiling, "W = 2", [](Call& c) { c.counts = c.make(ACL_INT32, {3}); }},
    {"expandScales too short", kTiling, "A = 12", [](Call& c) { c.expand_scales = c.make(ACL_FLOAT, {11}); }},
    {"sharedExpertNum without ranks", kTiling, "sharedExpertRankNum is 0", [](Call& c) { c.shared = 2; }},
    {"shared ranks without experts", kTiling, "sharedExpertRankNum is 1",
     [](Call& c) { c.shared_ranks = 1; }},
    {"no rank left", kTiling, "sharedExpertRankNum is 2", [](Call& c) { c.shared = 1, c.shared_ranks = 2; }},
    {"shared ranks below 0", kTiling, "sharedExpertRankNum is -1",
     [](Call& c) { c.shared = 1, c.shared_ranks = -1; }},
    {"sharedExpertNum below 0", kTiling, "sharedExpertNum is -1", [](Call& c) { c.shared = -1; }},
};

TEST(DispatchErrors, Nulls) { Calls({}).expect(kNulls); }
TEST(DispatchErrors, Dtypes) { Calls({}).expect(kDtypes); }
TEST(DispatchErrors, Attributes) { Calls({}).expect(kAttributes); }
TEST(DispatchErrors, Shapes) { Calls({}).expect(kShapes); }
TEST(DispatchErrors, Outputs) { Calls({}).expect(kOutputs); }

TEST(DispatchErrors, NullResults) {
  const Calls calls({});
  Call call = calls.good();
  expect_null_results_refused(call);
}

TEST(DispatchErrors, OnHost) {
  const Refusal<Call> table[] = {
      {"no ranks", kTiling, "epWorldSize is 0", [](Call& c) { c.ranks = 0; }},
      {"ranks that the group has not", kTiling, "epWorldSize is 4",
       [](Call& c) { c.ranks = 4, c.nums = c.make(ACL_INT64, {1}); }},
      {"ranks that the group has not, before what follows from them", kTiling,
       "be the number of ranks of groupEp", [](Call& c) { c.ranks = 4; }},
      {"commAlg", kTiling, "commAlg is \"ring\"", [](Call& c) { c.algorithm = "ring"; }},
      {"groupTp too long", kNull, "groupTp", [](Call& c) { c.group_tp = kLongName.c_str(); }},
      {"ccu and performanceInfo", kNull, "performanceInfoOptional",
       [](Call& c) { c.algorithm = "ccu", c.performance = c.make(ACL_INT64, {2}); }},
      {"ccu and a mask of slots", kTiling, "xActiveMaskOptional",
       [](Call& c) {
         c.algorithm = "ccu", c.mask = c.make(ACL_BOOL, {3, 2});
       }},
      {"TP", kTiling, "groupTp is", [](Call& c) { c.tp_ranks = 2; }},
      {"quantMode 6", kTiling, "quantMode is 6", [](Call& c) { c.quant_mode = 6; }},
      {"quantMode below 0", kTiling, "quantMode is -1", [](Call& c) { c.quant_mode = -1; }},
      {"FP8 tokens, other rows", kInvalid, "where that is not FP16 or BF16",
       [](Call& c) {
         c.x = c.make(ACL_FLOAT8_E5M2, {3, 8}), c.scales = c.make(ACL_FLOAT, {3, 1});
       }},
      {"INT32 rows", kInvalid, "not be INT32",
       [](Call& c) {
         c.expand_x = c.make(ACL_INT32, {12, 8});
       }},
      {"INT8 rows", kTiling, "have the dtype of x, or be HIFLOAT8",
       [](Call& c) {
         c.expand_x = c.make(ACL_INT8, {12, 8});
       }},
      {"no H", kTiling, "H is 0",
       [](Call& c) {
         c.x = c.make(ACL_BF16, {3, 0}), c.expand_x = c.make(ACL_BF16, {12, 0});
       }},
      {"mask with a larger globalBs", kTiling, "xActiveMaskOptional",
       [](Call& c) {
         c.mask = c.make(ACL_BOOL, {3}), c.global_bs = 8, c.expand_x = c.make(ACL_BF16, {16, 8});
         c.assist = c.make(ACL_INT32, {2048}), c.expand_scales = c.make(ACL_FLOAT, {16});
       }},
      {"an output that overlaps itself", kInvalid, "not overlap itself",
       [](Call& c) {
         const std::int64_t shape[] = {12, 8}, strides[] = {4, 1};
         const auto memory = std::make_shared<Tensor>(ACL_BF16, std::vector<std::int64_t>{12, 8}, 2);
         c.kept.push_back(memory);
         c.expand_x =
             aclCreateTensor(shape, 2, ACL_BF16, strides, 0, ACL_FORMAT_ND, shape, 2, memory->memory());
       }},
      {"FRACTAL_NZ", kTiling, "FRACTAL_NZ",
       [](Call& c) {
         c.ids = c.make(ACL_INT32, {3, 2});
         c.kept.back()->set_format(ACL_FORMAT_FRACTAL_NZ);
         c.ids = *c.kept.back();
       }},
  };
  Calls({}).expect(table);
  const Refusal<Call> quantised[] = {
      {"scales of other experts", kTiling, "E = 4",
       [](Call& c) {
         c.scales = c.make(ACL_FLOAT, {3, 8});
       }},
      {"scales of 1 dimension", kTiling, "scalesOptional is",
       [](Call& c) { c.scales = c.make(ACL_FLOAT, {8}); }},
      {"scales E8M0", kTiling, "scalesOptional is",
       [](Call& c) {
         c.scales = c.make(ACL_FLOAT8_E8M0, {4, 8});
       }},
      {"dynamicScales E8M0", kTiling, "dynamicScalesOut is",
       [](Call& c) { c.dynamic_scales = c.make(ACL_FLOAT8_E8M0, {12}); }},
      {"dynamicScales too short", kTiling, "A = 12",
       [](Call& c) { c.dynamic_scales = c.make(ACL_FLOAT, {11}); }},
      {"dynamicScales of 2 dimensions", kTiling, "dynamicScalesOut is",
       [](Call& c) {
         c.dynamic_scales = c.make(ACL_FLOAT, {12, 1});
       }},
  };
  Calls({.quantized = true}).expect(quantised);
}

TEST(DispatchErrors, HostAcceptsWhatProductsDoNot) {
  Calls({.tokens = 600, .topk = 20, .hidden = 3, .experts_per_rank = 1100}).expect_accepted([](Call&) {});
  const Calls calls({});
  for (const char* name : {"", "0", "fullmesh", "fullmesh_v1", "fullmesh_v2", "hierarchy", "ccu"})
    calls.expect_accepted([&](Call& c) { c.algorithm = name; });
  calls.expect_accepted([](Call& c) { c.algorithm = nullptr, c.group_tp = nullptr; });
  // As callers in the field do it.
  calls.expect_accepted([](Call& c) {
    c.group_tp = c.group, c.tp_ranks = 1, c.tp_counts = c.make(ACL_INT32, {1}), c.global_bs = 6;
  });
  calls.expect_accepted([](Call& c) {
    c.shared = 1, c.weights = nullptr, c.expand_scales = nullptr, c.dynamic_scales = nullptr;
  });
  Calls({}, 1).expect_accepted([](Call&) {});
}

TEST(DispatchErrors, OnA3) {
  if (!run_again_with("MOEYARD_SOC", "A3")) return;
  const Refusal<Call> table[] = {
      {"one rank", kTiling, "epWorldSize is 1", [](Call& c) { c.ranks = 1; }},
      {"too many ranks", kTiling, "epWorldSize is 769", [](Call& c) { c.ranks = 769; }},
      {"hierarchy needs multiples of 16", kTiling, "epWorldSize is 2",
       [](Call& c) { c.algorithm = "hierarchy"; }},
      {"quantMode 1", kTiling, "quantMode is 1", [](Call& c) { c.quant_mode = 1; }},
      {"FP8 rows", kTiling, "be INT8 when quantMode is 2",
       [](Call& c) {
         c.quant_mode = 2, c.expand_x = c.make(ACL_FLOAT8_E4M3FN, {12, 1024});
       }},
      {"quantMode 3", kTiling, "quantMode is 3", [](Call& c) { c.quant_mode = 3; }},
      {"quantMode 4", kTiling, "quantMode is 4", [](Call& c) { c.quant_mode = 4; }},
      {"FP8 tokens", kTiling, "x is FLOAT8_E5M2",
       [](Call& c) {
         c.x = c.make(ACL_FLOAT8_E5M2, {3, 1024}), c.expand_x = c.make(ACL_FLOAT8_E5M2, {12, 1024});
         c.scales = c.make(ACL_FLOAT, {3, 1});
       }},
      {"INT32 tokens", kTiling, "x is INT32",
       [](Call& c) {
         c.x = c.make(ACL_INT32, {3, 1024}), c.scales = c.make(ACL_FLOAT, {3}),
         c.expand_x = c.make(ACL_INT32, {12, 1024});
       }},
      {"HIFLOAT8 rows", kTiling, "expandXOut is HIFLOAT8",
       [](Call& c) {
         c.expand_x = c.make(ACL_HIFLOAT8, {12, 1024});
       }},
      {"commAlg of A2", kTiling, "commAlg is \"fullmesh\"", [](Call& c) { c.algorithm = "fullmesh"; }},
      {"commAlg of 950", kTiling, "commAlg is \"ccu\"", [](Call& c) { c.algorithm = "ccu"; }},
      {"too many experts", kTiling, "moeExpertNum is 1026", [](Call& c) { c.experts = 1026; }},
      {"experts times ranks", kTiling, "epWorldSize is 4",
       [](Call& c) { c.ranks = 4, c.shared = 1, c.shared_ranks = 3, c.experts = 1024; }},
      {"too many shared experts", kTiling, "sharedExpertNum is 5", [](Call& c) { c.shared = 5; }},
      {"TP", kTiling, "groupTp is", [](Call& c) { c.tp_ranks = 2; }},
      {"H below", kTiling, "H is 512",
       [](Call& c) {
         c.x = c.make(ACL_BF16, {3, 512}), c.expand_x = c.make(ACL_BF16, {12, 512});
       }},
      {"H above", kTiling, "H is 8224",
       [](Call& c) {
         c.x = c.make(ACL_BF16, {3, 8224}), c.expand_x = c.make(ACL_BF16, {12, 8224});
       }},
  };
  const Calls calls({.hidden = 1024});
  calls.expect(table);
  calls.expect(kNulls);
  calls.expect(kOutputs);
  // BS and K.
  const Refusal<Call> none[] = {{"BS 513", kTiling, "BS is 513", [](Call&) {}}};
  expect_refusals(none, [&, large = std::make_shared<Calls>(PartSize{.tokens = 513, .hidden = 1024})] {
    return large->good();
  });
  const Refusal<Call> narrow[] = {
      {"BS of fullmesh_v2", kTiling, "BS is 257", [](Call& c) { c.algorithm = "fullmesh_v2"; }},
  };
  Calls({.tokens = 257, .hidden = 1024}).expect(narrow);
  const Refusal<Call> wide[] = {
      {"K of fullmesh_v2", kTiling, "K is 13", [](Call& c) { c.algorithm = "fullmesh_v2"; }},
  };
  Calls({.topk = 13, .hidden = 1024, .experts_per_rank = 8}).expect(wide);
  const Refusal<Call> wider[] = {{"K 17", kTiling, "K is 17", [](Call&) {}}};
  expect_refusals(wider, [large = std::make_shared<Calls>(PartSize{
                              .topk = 17, .hidden = 1024, .experts_per_rank = 9})] { return large->good(); });
}

TEST(DispatchErrors, HierarchyOnA3) {
  if (!run_again_with("MOEYARD_SOC", "A3")) return;
  const Calls calls({.hidden = 1024}, 16);
  const auto hierarchy = [&] {
    Call c = calls.good();
    c.algorithm = "hierarchy";
    c.counts = c.make(ACL_INT32, {32 + 2 * 48 * 2 * 16 / 8});
    return c;
  };
  setenv("HCCL_BUFFSIZE", "600", 1);
  Call good = hierarchy();
  EXPECT_EQ(plan_only(static_cast<DispatchParams&>(good)),
            kTiling);  // the communicator has the default of 200 MiB
  EXPECT_THAT(recent_message(), testing::AllOf(testing::HasSubstr("HCCL_BUFFSIZE is 200 MiB"),
                                               testing::HasSubstr("by moeExpertNum * BS * (2 * H")));
  const Refusal<Call> table[] = {
      {"shared experts", kTiling, "sharedExpertRankNum is 1", [](Call& c) { c.shared = c.shared_ranks = 1; }},
      {"different BS", kTiling, "globalBs is 64",
       [](Call& c) {
         c.global_bs = 64, c.expand_x = c.make(ACL_BF16, {128, 1024}), c.assist = c.make(ACL_INT32, {16384});
         c.expand_scales = c.make(ACL_FLOAT, {128});
       }},
      {"mask of slots", kTiling, "xActiveMaskOptional",
       [](Call& c) {
         c.mask = c.make(ACL_BOOL, {3, 2});
       }},
      {"special experts", kTiling, "commAlg is \"hierarchy\"", [](Call& c) { c.zero = 1; }},
      {"no expertScales", kTiling, "expertScalesOptional", [](Call& c) { c.weights = nullptr; }},
      {"too many experts", kTiling, "moeExpertNum is 528", [](Call& c) { c.experts = 528; }},
      {"experts per rank", kTiling, "epWorldSize is 16", [](Call& c) { c.experts = 400; }},
      {"short counts", kTiling, "epRecvCountsOut", [](Call& c) { c.counts = c.make(ACL_INT32, {100}); }},
  };
  expect_refusals(table, hierarchy);
}

TEST(DispatchErrors, On950) {
  if (!run_again_with("MOEYARD_SOC", "950")) return;
  const Refusal<Call> table[] = {
      {"one rank", kTiling, "epWorldSize is 1", [](Call& c) { c.ranks = 1; }},
      {"too many ranks", kTiling, "epWorldSize is 1025", [](Call& c) { c.ranks = 1025; }},
      {"quantMode 6", kTiling, "quantMode is 6", [](Call& c) { c.quant_mode = 6; }},
      {"INT32 tokens", kTiling, "not be INT32",
       [](Call& c) {
         c.x = c.make(ACL_INT32, {3, 1024}), c.scales = c.make(ACL_FLOAT, {3}),
         c.expand_x = c.make(ACL_INT32, {12, 1024});
       }},
      {"commAlg of A3", kTiling, "commAlg is \"hierarchy\"", [](Call& c) { c.algorithm = "hierarchy"; }},
      {"TP", kTiling, "no TP domain", [](Call& c) { c.tp_ranks = 2; }},
      {"too many experts", kTiling, "moeExpertNum is 1026", [](Call& c) { c.experts = 1026; }},
      {"too many shared experts", kTiling, "sharedExpertNum is 5", [](Call& c) { c.shared = 5; }},
      {"H below", kTiling, "H is 512",
       [](Call& c) {
         c.x = c.make(ACL_BF16, {3, 512}), c.expand_x = c.make(ACL_BF16, {12, 512});
       }},
      {"ccu and performanceInfo", kNull, "performanceInfoOptional",
       [](Call& c) { c.algorithm = "ccu", c.performance = c.make(ACL_INT64, {2}); }},
  };
  const Calls calls({.hidden = 1024});
  calls.expect(table);
  calls.expect(kNulls);
  calls.expect(kOutputs);
}

TEST(DispatchErrors, OnA2) {
  if (!run_again_with("MOEYARD_SOC", "A2")) return;
  const Refusal<Call> table[] = {
      {"no ranks", kTiling, "epWorldSize is 0", [](Call& c) { c.ranks = 0; }},
      {"too many ranks", kTiling, "epWorldSize is 392", [](Call& c) { c.ranks = 392, c.experts = 784; }},
      {"no multiple of 8", kTiling, "epWorldSize is 12", [](Call& c) { c.ranks = 12; }},
      {"TP", kTiling, "no TP domain", [](Call& c) { c.tp_ranks = 2; }},
      {"quantMode 1", kTiling, "quantMode is 1", [](Call& c) { c.quant_mode = 1; }},
      {"quantMode 3", kTiling, "quantMode is 3", [](Call& c) { c.quant_mode = 3; }},
      {"quantMode 4", kTiling, "quantMode is 4", [](Call& c) { c.quant_mode = 4; }},
      {"HIFLOAT8 tokens", kTiling, "x is HIFLOAT8",
       [](Call& c) {
         c.x = c.make(ACL_HIFLOAT8, {3, 32}), c.expand_x = c.make(ACL_HIFLOAT8, {12, 32});
         c.scales = c.make(ACL_FLOAT, {3, 1});
       }},
      {"INT32 tokens with quantMode 2", kTiling, "quantMode is 2",
       [](Call& c) {
         c.quant_mode = 2, c.x = c.make(ACL_INT32, {3, 32}), c.scales = c.make(ACL_FLOAT, {3}),
         c.expand_x = c.make(ACL_INT32, {12, 32});
       }},
      {"INT32 tokens with scales of 2 dimensions", kTiling, "have shape (BS) with tokens of INT32",
       [](Call& c) {
         c.x = c.make(ACL_INT32, {3, 32}), c.scales = c.make(ACL_FLOAT, {3, 1}),
         c.expand_x = c.make(ACL_INT32, {12, 32});
       }},
      {"FP8 rows", kTiling, "be INT8 when quantMode is 2",
       [](Call& c) {
         c.quant_mode = 2, c.expand_x = c.make(ACL_FLOAT8_E4M3FN, {12, 32});
       }},
      {"constant experts", kTiling, "constExpertNum is 1", [](Call& c) { c.constant = 1; }},
      {"expertScales", kTiling, "expertScalesOptional is null", [](Call& c) { c.weights = nullptr; }},
      {"elasticInfo", kTiling, "elasticInfoOptional", [](Call& c) { c.elastic = c.make(ACL_INT32, {8}); }},
      {"H no multiple of 32", kTiling, "H is 40",
       [](Call& c) {
         c.x = c.make(ACL_BF16, {3, 40}), c.expand_x = c.make(ACL_BF16, {12, 40});
       }},
      {"H above", kTiling, "H is 10272",
       [](Call& c) {
         c.x = c.make(ACL_BF16, {3, 10272}), c.expand_x = c.make(ACL_BF16, {12, 10272});
       }},
      {"assistInfo below one entry per slot", kTiling, "P = 6",
       [](Call& c) { c.assist = c.make(ACL_INT32, {5}); }},
  };
  const Calls calls({.hidden = 32});
  calls.expect(table);
  calls.expect(kNulls);
  // Outputs are the caller's business there, shared experts are ignored, and so is groupTp.
  calls.expect_accepted([](Call& c) {
    c.expand_x = c.make(ACL_BF16, {1, 32}), c.expand_scales = c.make(ACL_FLOAT, {1});
  });
  calls.expect_accepted([](Call& c) { c.shared = 3, c.shared_ranks = 7, c.group_tp = kLongName.c_str(); });
  calls.expect_accepted([](Call& c) {
    c.x = c.make(ACL_INT32, {3, 32}), c.scales = c.make(ACL_FLOAT, {3}),
    c.expand_x = c.make(ACL_INT32, {12, 32});
  });
  calls.expect_accepted([](Call& c) { c.algorithm = "anything"; });  // up to 8 ranks the name is not read
}

TEST(DispatchErrors, TheWindowOnA3) {
  if (!run_again_with("MOEYARD_SOC", "A3")) return;
  // The documents' example: 64 tokens, 8 of 64 experts on 16 ranks, H 7168 need 130 MiB.
  const PartSize size{.tokens = 64, .topk = 8, .hidden = 7168, .experts_per_rank = 4};
  for (const auto& [megabytes, code] : {std::pair{"129", kTiling}, std::pair{"130", 0}}) {
    ASSERT_EQ(setenv("HCCL_BUFFSIZE", megabytes, 1), 0);
    const Calls calls(size, 16);
    Call call = calls.good();
    EXPECT_EQ(plan_only(static_cast<DispatchParams&>(call)), code) << recent_message();
    if (code != 0) {
      EXPECT_THAT(recent_message(), testing::HasSubstr("at least 130 MiB"));
    }
  }
}

}  // namespace
}  // namespace oracle
