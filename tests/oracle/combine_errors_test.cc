// Moeyard. SPDX-License-Identifier: Apache-2.0
// What the first phase of aclnnMoeDistributeCombineV4 refuses, row by row, on every product.
#include <memory>

#include "oracle/ep_part.h"
#include "support/refusals.h"
#include "support/rerun.h"

namespace oracle {
namespace {

constexpr int kNull = 161001, kInvalid = 161002, kTiling = 561002;

// A good call of rank 0 of two, and whatever tensors spoil it.
struct Call : CombineParams {
  std::shared_ptr<EpPart> part;
  std::vector<std::shared_ptr<Tensor>> kept;

  aclnnStatus phase_one(std::uint64_t* size, aclOpExecutor** executor) { return plan(*this, size, executor); }
  aclTensor* make(aclDataType dtype, std::vector<std::int64_t> shape) {
    kept.push_back(std::make_shared<Tensor>(dtype, std::move(shape), 8));
    return *kept.back();
  }
  std::int64_t hidden() const { return part->x.shape()[1]; }
  // Copy and constant experts with all that they need.
  void add_special() {
    copy = constant = 1;
    ori_x = make(ACL_BF16, {3, hidden()}), alpha1 = make(ACL_BF16, {1, hidden()}),
    alpha2 = make(ACL_BF16, {1, hidden()});
    v = make(ACL_BF16, {1, hidden()});
  }
};

class Calls {
 public:
  explicit Calls(PartSize size, int ranks = 2) : group(ranks), size_(size) {}
  Call good() const {
    Call call;
    call.part = std::make_shared<EpPart>(group, 0, size_);
    static_cast<CombineParams&>(call) = call.part->combine;
    return call;
  }
  template <std::size_t kCount>
  void expect(const Refusal<Call> (&table)[kCount]) const {
    expect_accepted([](Call&) {});
    expect_refusals(table, [this] { return good(); });
  }
  void expect_accepted(const std::function<void(Call&)>& change) const {
    Call call = good();
    change(call);
    EXPECT_EQ(plan_only(static_cast<CombineParams&>(call)), 0) << recent_message();
  }

  const Device device;
  const EpGroup group;

 private:
  const PartSize size_;
};

const std::string kLongName(128, 'g');

const Refusal<Call> kNulls[] = {
    {"epSendCounts", kNull, "epSendCounts is null", [](Call& c) { c.counts = nullptr; }},
    {"expertScales", kNull, "expertScales is null", [](Call& c) { c.weights = nullptr; }},
    {"xOut", kNull, "xOut is null", [](Call& c) { c.out = nullptr; }},
    {"expandX", kNull, "expandX is null", [](Call& c) { c.expand_x = nullptr; }},
    {"expertIds", kNull, "expertIds is null", [](Call& c) { c.ids = nullptr; }},
    {"assistInfoForCombine", kNull, "assistInfoForCombine is null", [](Call& c) { c.assist = nullptr; }},
    {"groupEp", kNull, "groupEp", [](Call& c) { c.group = nullptr; }},
    {"groupEp empty", kNull, "groupEp", [](Call& c) { c.group = ""; }},
    {"groupEp too long", kInvalid, "groupEp", [](Call& c) { c.group = kLongName.c_str(); }},
};

const Refusal<Call> kDtypes[] = {
    {"expandX", kInvalid, "expandX is",
     [](Call& c) {
       c.expand_x = c.make(ACL_FLOAT, {12, c.hidden()});
     }},
    {"expertIds", kInvalid, "expertIds is",
     [](Call& c) {
       c.ids = c.make(ACL_INT64, {3, 2});
     }},
    {"assistInfo", kInvalid, "assistInfoForCombine is",
     [](Call& c) { c.assist = c.make(ACL_INT64, {1536}); }},
    {"epSendCounts", kInvalid, "epSendCounts is", [](Call& c) { c.counts = c.make(ACL_INT64, {4}); }},
    {"expertScales", kInvalid, "expertScales is",
     [](Call& c) {
       c.weights = c.make(ACL_BF16, {3, 2});
     }},
    {"tpSendCounts", kInvalid, "tpSendCountsOptional is",
     [](Call& c) { c.tp_counts = c.make(ACL_INT64, {1}); }},
    {"mask", kInvalid, "xActiveMaskOptional is", [](Call& c) { c.mask = c.make(ACL_INT32, {3}); }},
    {"expandScales", kInvalid, "expandScalesOptional is",
     [](Call& c) { c.expand_scales = c.make(ACL_BF16, {12}); }},
    {"sharedExpertX", kInvalid, "sharedExpertXOptional is",
     [](Call& c) {
       c.shared_x = c.make(ACL_FLOAT16, {3, c.hidden()});
     }},
    {"oriX", kInvalid, "oriXOptional is",
     [](Call& c) {
       c.ori_x = c.make(ACL_FLOAT16, {3, c.hidden()});
     }},
    {"alpha1", kInvalid, "constExpertAlpha1Optional is",
     [](Call& c) {
       c.add_special(), c.alpha1 = c.make(ACL_FLOAT, {1, c.hidden()});
     }},
    {"xOut", kInvalid, "xOut is",
     [](Call& c) {
       c.out = c.make(ACL_FLOAT16, {3, c.hidden()});
     }},
};

const Refusal<Call> kAttributes[] = {
    {"INT32 rows", kTiling, "expandX is INT32",
     [](Call& c) {
       c.expand_x = c.make(ACL_INT32, {12, c.hidden()}), c.out = c.make(ACL_BF16, {3, c.hidden()});
     }},
    {"rank above", kTiling, "epRankId is 2", [](Call& c) { c.rank = 2; }},
    {"expertShardType", kTiling, "expertShardType is 1", [](Call& c) { c.shard_type = 1; }},
    {"commQuantMode 1", kTiling, "commQuantMode is 1", [](Call& c) { c.quant_mode = 1; }},
    {"commQuantMode 5", kTiling, "commQuantMode is 5", [](Call& c) { c.quant_mode = 5; }},
    {"moeExpertNum", kTiling, "moeExpertNum is 5", [](Call& c) { c.experts = 5; }},
    {"zeroExpertNum", kTiling, "zeroExpertNum is -1", [](Call& c) { c.zero = -1; }},
    {"activationScale", kTiling, "activationScaleOptional",
     [](Call& c) { c.activation_scale = c.make(ACL_FLOAT, {1}); }},
    {"weightScale", kTiling, "weightScaleOptional", [](Call& c) { c.weight_scale = c.make(ACL_FLOAT, {1}); }},
    {"groupList", kTiling, "groupListOptional", [](Call& c) { c.group_list = c.make(ACL_INT64, {1}); }},
    {"elasticInfo", kTiling, "elasticInfoOptional", [](Call& c) { c.elastic = c.make(ACL_INT32, {9}); }},
    {"performanceInfo", kTiling, "performanceInfoOptional",
     [](Call& c) { c.performance = c.make(ACL_INT64, {1}); }},
    {"copy experts without oriX", kTiling, "oriXOptional is null", [](Call& c) { c.copy = 1; }},
    {"globalBs", kTiling, "globalBs is 7", [](Call& c) { c.global_bs = 7; }},
    {"other group", kInvalid, "group not found", [](Call& c) { c.group = "nobody"; }},
};

const Refusal<Call> kShapes[] = {
    {"expertIds of 1 dimension", kTiling, "expertIds is", [](Call& c) { c.ids = c.make(ACL_INT32, {6}); }},
    {"mask", kTiling, "xActiveMaskOptional is", [](Call& c) { c.mask = c.make(ACL_BOOL, {4}); }},
    {"expertScales", kTiling, "expertScales is",
     [](Call& c) {
       c.weights = c.make(ACL_FLOAT, {3, 3});
     }},
    {"expandX of 1 dimension", kTiling, "expandX is", [](Call& c) { c.expand_x = c.make(ACL_BF16, {96}); }},
    {"expandScales of 2 dimensions", kTiling, "expandScalesOptional is",
     [](Call& c) {
       c.expand_scales = c.make(ACL_FLOAT, {12, 1});
     }},
    {"xOut rows", kTiling, "xOut is",
     [](Call& c) {
       c.out = c.make(ACL_BF16, {4, c.hidden()});
     }},
    {"xOut width", kTiling, "xOut is",
     [](Call& c) {
       c.out = c.make(ACL_BF16, {3, 2 * c.hidden()});
     }},
    {"oriX", kTiling, "oriXOptional is",
     [](Call& c) {
       c.ori_x = c.make(ACL_BF16, {2, c.hidden()});
     }},
    {"epSendCounts too short", kTiling, "W = 2", [](Call& c) { c.counts = c.make(ACL_INT32, {3}); }},
};

// What A2 has not, or does not look at.
const Refusal<Call> kMeshOnly[] = {
    {"expandX too short", kTiling, "A = 12",
     [](Call& c) {
       c.expand_x = c.make(ACL_BF16, {11, c.hidden()});
     }},
    {"assistInfo too short", kTiling, "P = 1536", [](Call& c) { c.assist = c.make(ACL_INT32, {1535}); }},
    {"tpRankId", kTiling, "tpRankId is 1", [](Call& c) { c.tp_rank = 1; }},
    {"groupTp too long", kInvalid, "groupTp", [](Call& c) { c.group_tp = kLongName.c_str(); }},
    {"sharedExpertX beside shared ranks", kTiling, "sharedExpertXOptional is",
     [](Call& c) {
       c.shared = c.shared_ranks = 1, c.experts = 2, c.counts = c.make(ACL_INT32, {2});
       c.shared_x = c.make(ACL_BF16, {3, c.hidden()});
     }},
    {"sharedExpertX rows", kTiling, "sharedExpertXOptional is",
     [](Call& c) {
       c.shared_x = c.make(ACL_BF16, {4, c.hidden()});
     }},
    {"sharedExpertX of 3 dimensions", kTiling, "sharedExpertXOptional is",
     [](Call& c) {
       c.shared_x = c.make(ACL_BF16, {2, 2, c.hidden()});
     }},
    {"sharedExpertX of 1 dimension", kTiling, "sharedExpertXOptional is",
     [](Call& c) { c.shared_x = c.make(ACL_BF16, {3}); }},
    {"constant experts without oriX", kTiling, "oriXOptional is null",
     [](Call& c) { c.add_special(), c.copy = 0, c.ori_x = nullptr; }},
    {"no alpha1", kTiling, "constExpertAlpha1Optional is null",
     [](Call& c) { c.add_special(), c.alpha1 = nullptr; }},
    {"no alpha2", kTiling, "constExpertAlpha2Optional is null",
     [](Call& c) { c.add_special(), c.alpha2 = nullptr; }},
    {"no V", kTiling, "constExpertVOptional is null", [](Call& c) { c.add_special(), c.v = nullptr; }},
    {"alpha1 rows", kTiling, "constExpertAlpha1Optional is",
     [](Call& c) {
       c.add_special(), c.alpha1 = c.make(ACL_BF16, {2, c.hidden()});
     }},
    {"alpha2 width", kTiling, "constExpertAlpha2Optional is",
     [](Call& c) {
       c.add_special(), c.alpha2 = c.make(ACL_BF16, {1, 5});
     }},
    {"V without constant experts", kTiling, "constExpertVOptional is",
     [](Call& c) {
       c.v = c.make(ACL_BF16, {1, c.hidden()});
     }},
};

TEST(CombineErrors, Nulls) { Calls({}).expect(kNulls); }
TEST(CombineErrors, Dtypes) { Calls({}).expect(kDtypes); }
TEST(CombineErrors, Attributes) { Calls({}).expect(kAttributes); }
TEST(CombineErrors, Shapes) { Calls({}).expect(kShapes); }
TEST(CombineErrors, WhatMeshesHave) { Calls({}).expect(kMeshOnly); }

TEST(CombineErrors, NullResults) {
  const Calls calls({});
  Call call = calls.good();
  expect_null_results_refused(call);
}

TEST(CombineErrors, OnHost) {
  const Refusal<Call> table[] = {
      {"no ranks", kTiling, "epWorldSize is 0", [](Call& c) { c.ranks = 0; }},
      {"TP", kTiling, "groupTp is", [](Call& c) { c.tp_ranks = 2; }},
      {"commQuantMode 1", kTiling, "commQuantMode is 1", [](Call& c) { c.quant_mode = 1; }},
      {"commQuantMode 5", kTiling, "commQuantMode is 5", [](Call& c) { c.quant_mode = 5; }},
      {"ccu and performanceInfo", kNull, "performanceInfoOptional",
       [](Call& c) { c.algorithm = "ccu", c.performance = c.make(ACL_INT64, {2}); }},
  };
  const Calls calls({});
  calls.expect(table);
  for (const int mode : {2, 3, 4}) calls.expect_accepted([&](Call& c) { c.quant_mode = mode; });
  calls.expect_accepted([](Call& c) { c.add_special(); });
  calls.expect_accepted([](Call& c) { c.weights = c.make(ACL_FLOAT, {0}); });
  calls.expect_accepted([](Call& c) { c.weights = c.make(ACL_FLOAT, {3, 0, 2}); });
  calls.expect_accepted([](Call& c) { c.shared_x = c.make(ACL_BF16, {3, 1, c.hidden()}); });
  calls.expect_accepted(
      [](Call& c) { c.out_dtype = 7, c.list_type = 3, c.expand_scales = nullptr, c.algorithm = nullptr; });
  calls.expect_accepted(
      [](Call& c) { c.group_tp = c.group, c.tp_ranks = 1, c.tp_counts = c.make(ACL_INT32, {1}); });
}

TEST(CombineErrors, OnA3) {
  if (!run_again_with("MOEYARD_SOC", "A3")) return;
  const Refusal<Call> table[] = {
      {"one rank", kTiling, "epWorldSize is 1", [](Call& c) { c.ranks = 1; }},
      {"empty expertScales", kTiling, "expertScales is", [](Call& c) { c.weights = c.make(ACL_FLOAT, {0}); }},
      {"commQuantMode 3", kTiling, "commQuantMode is 3", [](Call& c) { c.quant_mode = 3; }},
      {"too many shared experts", kTiling, "sharedExpertNum is 5", [](Call& c) { c.shared = 5; }},
      {"H", kTiling, "H is 512",
       [](Call& c) {
         c.expand_x = c.make(ACL_BF16, {12, 512}), c.out = c.make(ACL_BF16, {3, 512});
       }},
  };
  const Calls calls({.hidden = 1024});
  calls.expect(table);
  calls.expect(kNulls);
  calls.expect(kMeshOnly);
  calls.expect_accepted([](Call& c) { c.algorithm = "anything"; });
  calls.expect_accepted([](Call& c) { c.quant_mode = 2; });
  const Refusal<Call> hierarchy[] = {
      {"expandScales", kTiling, "expandScalesOptional is null",
       [](Call& c) { c.algorithm = "hierarchy", c.expand_scales = nullptr; }},
  };
  Calls({.hidden = 1024}, 16).expect(hierarchy);
}

TEST(CombineErrors, On950) {
  if (!run_again_with("MOEYARD_SOC", "950")) return;
  const Refusal<Call> table[] = {
      {"too many ranks", kTiling, "epWorldSize is 1025", [](Call& c) { c.ranks = 1025; }},
      {"TP", kTiling, "no TP domain", [](Call& c) { c.tp_ranks = 2; }},
      {"commQuantMode 1", kTiling, "commQuantMode is 1", [](Call& c) { c.quant_mode = 1; }},
  };
  const Calls calls({.hidden = 1024});
  calls.expect(table);
  calls.expect(kNulls);
  calls.expect(kMeshOnly);
  for (const int mode : {2, 3, 4}) calls.expect_accepted([&](Call& c) { c.quant_mode = mode; });
  calls.expect_accepted([](Call& c) { c.weights = c.make(ACL_FLOAT, {0}); });
}

TEST(CombineErrors, OnA2) {
  if (!run_again_with("MOEYARD_SOC", "A2")) return;
  const Refusal<Call> table[] = {
      {"commQuantMode 2", kTiling, "commQuantMode is 2", [](Call& c) { c.quant_mode = 2; }},
      {"constant experts", kTiling, "constExpertNum is 1", [](Call& c) { c.add_special(); }},
      {"V", kTiling, "constExpertVOptional",
       [](Call& c) {
         c.v = c.make(ACL_BF16, {0, 32});
       }},
      {"sharedExpertX", kTiling, "sharedExpertXOptional",
       [](Call& c) {
         c.shared_x = c.make(ACL_BF16, {3, 32});
       }},
      {"empty expertScales", kTiling, "expertScales is", [](Call& c) { c.weights = c.make(ACL_FLOAT, {0}); }},
      {"copy experts without oriX", kTiling, "oriXOptional is null", [](Call& c) { c.copy = 1; }},
      {"H", kTiling, "H is 40",
       [](Call& c) {
         c.expand_x = c.make(ACL_BF16, {12, 40}), c.out = c.make(ACL_BF16, {3, 40});
       }},
  };
  const Calls calls({.hidden = 32});
  calls.expect(table);
  calls.expect(kNulls);
  calls.expect_accepted([](Call& c) {
    c.expand_x = c.make(ACL_BF16, {1, 32}), c.assist = c.make(ACL_INT32, {6});
  });
  Calls({.hidden = 32}, 16).expect_accepted([](Call& c) { c.algorithm = "hierarchy", c.quant_mode = 2; });
}

}  // namespace
}  // namespace oracle
