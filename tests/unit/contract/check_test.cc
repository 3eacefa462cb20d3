// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "contract/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/settings.h"
#include "contract/survey.h"

namespace moeyard::contract {
namespace {

using testing::HasSubstr;

// An operator that exists for this test: (x [T,H], ids [T,K], maskOptional [T] or [T,K]) -> y [capacity, H].
struct Args {
  TensorView x, ids, mask;
  TensorListView weights;
  IntArrayView capacities{true, {4, 2}};
  std::int64_t num_experts = 4;
  double eps = 0.5;
  std::string_view group = "ep";
  TensorView y, rows;
};

constexpr Param kParams[] = {
    in<&Args::x>("x", kHalves, "T, H", "tokens"),
    in<&Args::ids>("ids", kINT32, "T, K", "experts"),
    in<&Args::mask>("maskOptional", kBOOL, "T | T, K", "slots in use").optional().any_format(),
    in<&Args::weights>("weights", kHalves, "", "a list").like("x").optional(),
    attribute<&Args::capacities>("capacities", "rows of each expert"),
    attribute<&Args::num_experts>("numExperts", "experts in all"),
    attribute<&Args::eps>("eps", "a number"),
    attribute<&Args::group>("group", "a name"),
    out<&Args::y>("yOut", kHalves, ">= T*K, H", "rows").like("x"),
    out<&Args::rows>("rowsOut", kINT32, "capacity", "places").optional().contiguous_only(),
};
constexpr Dim kDims[] = {
    dim("T", "tokens"),
    dim("K", "experts per token"),
    dim("H", "hidden size"),
    dim<Args>("capacity", "rows at most", [](const Args& a) { return a.num_experts * 10; }),
};
constexpr Rule kRules[] = {
    rule<Args>(
        Stage::strings, kEverywhere, "group", "have 1 to 127 characters",
        [](const Args& a) { return !a.group.empty() && a.group.size() < 128; }, {}, 161001),
    rule<Args>(Stage::attributes, kEverywhere, "capacities", "have 2 elements",
               [](const Args& a) { return a.capacities.size() == 2; }),
    rule<Args>(Stage::attributes, kEverywhere, "numExperts", "be positive",
               [](const Args& a) { return a.num_experts > 0; }),
    rule<Args>(
        Stage::shapes, kEverywhere, "ids", "have a K of at most numExperts",
        [](const Args& a) { return a.ids.dim(1) <= a.num_experts; }, "use fewer experts per token"),
    rule<Args>(Stage::shapes, kA3, "x", "have an H of at least 16",
               [](const Args& a) { return a.x.dim(1) >= 16; }),
};
constexpr Figure kFacts[] = {figure<Args>("numExperts", {}, [](const Args& a) { return a.num_experts; })};
const Contract kContract{{
    .name = "Example",
    .products = kHost | kA3,
    .codes = {.shape = 561002, .rule = 561002},
    .params = kParams,
    .dims = kDims,
    .rules = kRules,
    .facts = kFacts,
}};

TensorView tensor(aclDataType dtype, std::vector<std::int64_t> shape) {
  TensorView view;
  view.dtype = dtype;
  view.format = ACL_FORMAT_ND;
  view.rank = static_cast<std::int32_t>(shape.size());
  std::int64_t dense = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (axis < kMaxRank) {
      view.shape[axis] = shape[axis];
      view.strides[axis] = dense;
    }
    dense *= shape[axis];
  }
  return view;
}

class CheckTest : public testing::Test {
 protected:
  void SetUp() override {
    args.x = tensor(ACL_BF16, {3, 8});
    args.ids = tensor(ACL_INT32, {3, 2});
    args.y = tensor(ACL_BF16, {6, 8});
  }
  void TearDown() override { use_product("host"); }
  void use_product(const char* name) {
    setenv("MOEYARD_SOC", name, 1);
    reload_settings();
  }
  void expect(std::int32_t code, const std::string& part) {
    const Status status = check(kContract, "aclnnExample", &args);
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_THAT(status.message(), HasSubstr(part));
  }
  Args args;
};

TEST_F(CheckTest, AcceptsAGoodCall) {
  EXPECT_TRUE(check(kContract, "aclnnExample", &args).ok());
  args.mask = tensor(ACL_BOOL, {3});
  args.rows = tensor(ACL_INT32, {40});
  args.y = tensor(ACL_BF16, {9, 8});  // more rows than needed
  EXPECT_TRUE(check(kContract, "aclnnExample", &args).ok());
  args.mask = tensor(ACL_BOOL, {3, 2});
  EXPECT_TRUE(check(kContract, "aclnnExample", &args).ok());
}

TEST_F(CheckTest, NamesAMissingTensor) {
  args.ids = {};
  expect(161001, "[EZ1001] aclnnExample: ids is null but is required; pass a tensor");
}

TEST_F(CheckTest, NullsComeBeforeAllElse) {
  args.x.dtype = ACL_FLOAT;
  args.y = {};
  expect(161001, "yOut is null");
}

TEST_F(CheckTest, NamesAWrongDtypeAndTheAllowedOnes) {
  args.x.dtype = ACL_FLOAT;
  expect(161002, "x is FP32[3,8] but must be FP16 or BF16; cast it first");
}

TEST_F(CheckTest, ComparesDtypesOfTwins) {
  args.y.dtype = ACL_FLOAT16;
  expect(161002, "yOut is FP16[6,8] but must have the dtype of x, BF16");
}

TEST_F(CheckTest, ShowsArraysOfIntegers) {
  args.capacities.items.push_back(9);
  expect(561002, "capacities is {4, 2, 9} but must have 2 elements");
  args.capacities = {};
  expect(161001, "capacities is null but is required; pass an array of integers");
}

TEST_F(CheckTest, LooksIntoLists) {
  args.weights.given = true;
  args.weights.items = {tensor(ACL_BF16, {2, 2}), TensorView(), tensor(ACL_INT8, {2, 2})};
  expect(161002, "weights is INT8[2,2]");
}

TEST_F(CheckTest, NamesAWrongShapeWithWhatIsKnown) {
  args.ids = tensor(ACL_INT32, {4, 2});
  expect(561002, "ids is INT32[4,2] but must have shape (T, K) with T = 3");
  SetUp();
  args.y = tensor(ACL_BF16, {5, 8});
  expect(561002, "yOut is BF16[5,8] but must have shape (>= T*K, H) with T = 3, K = 2, H = 8");
  SetUp();
  args.rows = tensor(ACL_INT32, {39});
  expect(561002, "rowsOut is INT32[39] but must have shape (capacity) with capacity = 40");
  SetUp();
  args.mask = tensor(ACL_BOOL, {3, 3});
  expect(561002, "maskOptional is BOOL[3,3] but must have shape (T | T, K)");
  args.mask = tensor(ACL_BOOL, {3, 2, 1});
  expect(561002, "maskOptional is BOOL[3,2,1]");
}

TEST_F(CheckTest, NamesABrokenRuleWithTheValuesInIt) {
  args.num_experts = 1;
  expect(
      561002,
      "ids is INT32[3,2] but must have a K of at most numExperts (K = 2, numExperts = 1); use fewer experts");
  args.num_experts = 0;
  expect(561002, "numExperts is 0 but must be positive");
  args.num_experts = 4;
  args.group = "";
  expect(161001, "group is \"\" but must have 1 to 127 characters");
}

TEST_F(CheckTest, LooksPastFormatsOnRequest) {
  args.mask = tensor(ACL_BOOL, {3});
  args.mask.format = ACL_FORMAT_FRACTAL_NZ;
  EXPECT_TRUE(check(kContract, "aclnnExample", &args).ok());
}

TEST_F(CheckTest, ChecksStringsBeforeDtypesAndAttributesBeforeShapes) {
  args.group = "";
  args.x.dtype = ACL_FLOAT;
  expect(161001, "group");
  args.group = "ep";
  args.x = tensor(ACL_BF16, {3});
  args.num_experts = -1;
  expect(561002, "numExperts");
}

TEST_F(CheckTest, RefusesMalformedTensors) {
  args.x.dtype = static_cast<aclDataType>(5);
  expect(161002, "x is dtype 5[3,8] but must have a data type that tensors can hold");
  SetUp();
  args.x = tensor(ACL_BF16, {1, 1, 1, 1, 1, 1, 1, 1, 1});
  expect(161002, "at most 8 dimensions");
  SetUp();
  args.x.shape[0] = -3;
  expect(161002, "x is BF16[-3,8] but must have no negative dimension");
  SetUp();
  args.x.shape[0] = args.x.shape[1] = INT64_C(1) << 40;
  expect(161002, "fewer than 2^56 elements");
  SetUp();
  args.x.shape[0] = 0;  // behind which no other size may hide
  args.x.shape[1] = INT64_MAX;
  expect(161002, "fewer than 2^56 elements");
  for (const std::int64_t wild : {INT64_MAX, INT64_MIN, INT64_C(1) << 56}) {
    SetUp();
    args.x.strides[0] = wild;
    expect(161002, "strides and an offset that stay within as many");
    SetUp();
    args.x.offset = wild;
    expect(161002, "strides and an offset that stay within as many");
  }
  SetUp();
  args.x.strides[0] = args.x.strides[1] = INT64_C(1) << 54;  // 2 * 2^54 + 7 * 2^54 elements
  expect(161002, "strides and an offset that stay within as many");
  SetUp();
  args.x.format = ACL_FORMAT_FRACTAL_NZ;
  expect(161002, "FRACTAL_NZ");
}

TEST_F(CheckTest, RefusesOutputsThatCannotBeWritten) {
  args.y.strides[0] = 0;
  expect(161002, "yOut is BF16[6,8] strides (0,1) but must not overlap itself");
  SetUp();
  args.rows = tensor(ACL_INT32, {40});
  args.rows.strides[0] = 2;
  expect(161002, "rowsOut is INT32[40] strides (2) but must be contiguous");
}

TEST_F(CheckTest, AppliesAProductsRules) {
  use_product("A3");
  expect(561002, "x is BF16[3,8] but must have an H of at least 16 (H = 8)");
  use_product("A2");
  expect(561003, "no kernel on this product: Example does not exist on A2");
}

std::vector<std::string> broken_of(const Survey& survey) {
  std::vector<std::string> subjects;
  for (const Survey::Broken& broken : survey.broken) subjects.emplace_back(broken.subject);
  return subjects;
}

TEST_F(CheckTest, TellsASurveyAllThatIsBroken) {
  Survey survey;
  args.x.dtype = ACL_FLOAT;
  args.ids.dtype = ACL_INT64;
  args.num_experts = 0;  // a later stage
  expect(161002, "x is FP32[3,8]");
  EXPECT_EQ(survey.contract, &kContract);
  EXPECT_EQ(broken_of(survey), (std::vector<std::string>{"x", "ids"}));
  SetUp();
  expect(561002, "numExperts is 0 but must be positive");
  EXPECT_EQ(broken_of(survey), std::vector<std::string>{"numExperts"});
  args.capacities.items = {1};
  expect(561002, "capacities");
  EXPECT_EQ(broken_of(survey), (std::vector<std::string>{"capacities", "numExperts"}));
}

TEST_F(CheckTest, EndsASurveyAtAProductWithoutTheOperator) {
  Survey survey;
  args = {};  // what no later check could take
  use_product("A2");
  expect(561003, "no kernel on this product");
  EXPECT_EQ(broken_of(survey), std::vector<std::string>{"Example"});
}

TEST_F(CheckTest, TellsASurveySizes) {
  Survey survey;
  args.ids.shape[1] = 5;
  args.rows = tensor(ACL_INT32, {40});
  expect(561002, "yOut is BF16[6,8] but must have shape (>= T*K, H) with T = 3, K = 5, H = 8");
  ASSERT_EQ(survey.outputs.size(), 2u);
  EXPECT_EQ(survey.outputs[0].param->name, "yOut");
  EXPECT_EQ(survey.outputs[0].shape[0].value, 15);
  EXPECT_TRUE(survey.outputs[0].shape[0].at_least);
  EXPECT_EQ(survey.outputs[0].shape[1].value, 8);
  EXPECT_EQ(survey.outputs[1].shape[0].value, 40);
  ASSERT_EQ(survey.dims.size(), 4u);
  EXPECT_EQ(survey.dims[1].name, "K");
  EXPECT_EQ(survey.dims[1].value, 5);
  EXPECT_TRUE(survey.facts.empty());  // of intact calls only
}

TEST_F(CheckTest, TellsASurveyFacts) {
  Survey survey;
  EXPECT_TRUE(check(kContract, "aclnnExample", &args).ok());
  EXPECT_TRUE(survey.broken.empty());
  ASSERT_EQ(survey.facts.size(), 1u);
  EXPECT_EQ(survey.facts[0].name, "numExperts");
  EXPECT_EQ(survey.facts[0].value, 4);
}

}  // namespace
}  // namespace moeyard::contract
