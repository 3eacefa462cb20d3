// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// The program `moeyard check`: the situations that users of these operators report most often each get a sentence that
// solves them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/program.h"

namespace {

using moeyard::test::Outcome;
using moeyard::test::run_moeyard;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Check : public testing::Test {
 protected:
  ~Check() override { std::filesystem::remove(path_); }

  // A dispatch that every product accepts.
  static json dispatch() {
    return json::parse(R"({"function": "aclnnMoeDistributeDispatchV4",
      "parameters": {"x": "BF16[64,7168]", "expertIds": "INT32[64,8]", "expertScalesOptional": "FP32[64,8]",
                     "groupEp": "ep", "epWorldSize": 16, "epRankId": 3, "moeExpertNum": 64,
                     "expandScalesOut": "FP32[4096]"}})");
  }
  Outcome check(const json& call, std::vector<std::string> more, const std::string& environment = "") {
    return check_text(call.dump(), std::move(more), environment);
  }
  Outcome check_text(const std::string& text, std::vector<std::string> more = {},
                     const std::string& environment = "") {
    std::ofstream(path_) << text;
    std::vector<std::string> arguments = {"check", path_.string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_moeyard(arguments, environment);
  }
  void expect_refusal(const json& call, const std::string& soc, const std::string& part) {
    const Outcome outcome = check(call, {"--soc", soc});
    EXPECT_EQ(outcome.code, 1) << outcome.text;
    EXPECT_THAT(outcome.text, HasSubstr(part));
    EXPECT_EQ(outcome.last_line(), "FAIL on " + soc);
  }
  void expect_bad_input(const std::string& text, const std::string& part) {
    const Outcome outcome = check_text(text);
    EXPECT_EQ(outcome.code, 2) << outcome.text;
    EXPECT_THAT(outcome.text, HasSubstr(part));
  }
  const std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("call_" + std::to_string(getpid()) + ".json");
};

TEST_F(Check, TellsWhatAGoodCallNeeds) {
  const Outcome outcome = check(dispatch(), {"--soc", "all"});
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text,
              AllOf(HasSubstr("expandXOut BF16[>= 4096, 7168] (not in the file)"), HasSubstr("workspace"),
                    // 16 ranks, 64 experts, 64 tokens: the example of CANN's document
                    HasSubstr("needs      HCCL_BUFFSIZE of at least 130: MiB of the window")));
  EXPECT_EQ(outcome.last_line(), "PASS");
}

TEST_F(Check, TellsMachinesToo) {
  const Outcome outcome = check(dispatch(), {"--soc", "A3", "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  const json report = json::parse(outcome.text);
  EXPECT_EQ(report["products"][0]["product"], "A3");
  EXPECT_EQ(report["products"][0]["calls"][0]["needs"]["HCCL_BUFFSIZE"], 130);
  EXPECT_EQ(report["products"][0]["calls"][0]["dims"]["A"], 4096);
}

TEST_F(Check, FindsOutputDtypesThatWereLeftOut) {
  json call = dispatch();
  call["parameters"]["quantMode"] = 2;
  call["parameters"]["dynamicScalesOut"] = "FP32[4096]";
  EXPECT_THAT(check(call, {"--soc", "A3"}).text,
              HasSubstr("expandXOut INT8[>= 4096, 7168] (not in the file)"));
}

TEST_F(Check, TooSmallBuffer) {
  json call = dispatch();
  call["environment"]["HCCL_BUFFSIZE"] = "64";
  expect_refusal(
      call, "A3",
      "HCCL_BUFFSIZE is 64 MiB but must be at least 130 MiB for 64 tokens per rank, K 8, H 7168 and "
      "16 ranks, by "
      "2 * (L * BS * W * Align512(Align32(2 * H) + 64) + (K + sharedExpertNum) * BS * Align512(2 "
      "* H)) bytes; "
      "set it before the communicator is made");
}

TEST_F(Check, AbsentWeightsOnA2) {
  json call = dispatch();
  call["parameters"]["expertScalesOptional"] = nullptr;
  call["environment"] = {{"HCCL_INTRA_PCIE_ENABLE", "1"}, {"HCCL_INTRA_ROCE_ENABLE", "0"}};  // hierarchy
  expect_refusal(
      call, "A2",
      "expertScalesOptional is null but must be given on this product; pass the weights of the slots");
}

TEST_F(Check, TooManyTokens) {
  json call = dispatch();
  call["parameters"]["x"] = "BF16[600,7168]";
  call["parameters"]["expertIds"] = "INT32[600,8]";
  call["parameters"]["expertScalesOptional"] = "FP32[600,8]";
  call["parameters"]["expandScalesOut"] = "FP32[38400]";
  expect_refusal(call, "A3", "BS is 600 but must be in [1, 512]");
  expect_refusal(call, "A3", "split the tokens over several calls");
  EXPECT_EQ(check(call, {"--soc", "host"}).code, 0);
}

TEST_F(Check, TooManyExperts) {
  json call = dispatch();
  call["parameters"]["moeExpertNum"] = 2048;
  expect_refusal(call, "950", "moeExpertNum is 2048 but must be at most 1024");
}

TEST_F(Check, WorldSizeThatTheProductDoesNotHave) {
  json call = dispatch();
  call["parameters"]["epWorldSize"] = 12;
  call["parameters"]["moeExpertNum"] = 48;
  call["parameters"]["expandScalesOut"] = "FP32[3072]";
  expect_refusal(call, "A2",
                 "epWorldSize is 12 but must be in [1, 384], with more than 8 ranks a multiple of 8");
  EXPECT_EQ(check(call, {"--soc", "A3"}).code, 0);
}

TEST_F(Check, WorldSizeThatTheGroupDoesNotHave) {
  json call = dispatch();
  call["groups"]["groupEp"]["ranks"] = 8;
  expect_refusal(call, "A3", "epWorldSize is 16 but must be the number of ranks of groupEp");
}

TEST_F(Check, MoreExpertsPerTokenThanExperts) {
  json call = dispatch();
  call["parameters"]["epWorldSize"] = 2;
  call["parameters"]["epRankId"] = 1;
  call["parameters"]["moeExpertNum"] = 4;
  call["parameters"]["expandScalesOut"] = "FP32[1024]";
  expect_refusal(call, "950", "K is 8 but must be at most the number of experts");
}

TEST_F(Check, DifferentParametersOnDifferentRanks) {
  json call = dispatch();
  call["parameters"]["epWorldSize"] = 4;
  call["ranks"] = json::array();
  for (int r = 0; r < 4; ++r) call["ranks"].push_back({{"epRankId", r}});
  EXPECT_EQ(check(call, {"--soc", "A3"}).code, 0);
  call["ranks"][2]["moeExpertNum"] = 32;
  expect_refusal(
      call, "A3",
      "moeExpertNum is 64 on rank 0 but 32 on rank 2; pass the same value on all ranks of the group");
  call["ranks"][2] = {{"epRankId", 2},
                      {"x", "BF16[63,7168]"},
                      {"expertIds", "INT32[63,8]"},
                      {"expertScalesOptional", "FP32[63,8]"}};
  expect_refusal(call, "A3", "pass the largest BS of all ranks times epWorldSize as globalBs");
  const json shared = call["parameters"];
  for (json& rank : call["ranks"]) {
    json whole = shared;
    whole.update(rank);
    rank = whole;
  }
  call.erase("parameters");  // which say nothing that the ranks don't
  expect_refusal(call, "A3", "pass the largest BS of all ranks times epWorldSize as globalBs");
}

TEST_F(Check, RanksThatNeverCome) {
  json call = dispatch();
  call["parameters"]["epWorldSize"] = 4;
  call["ranks"] = {{{"epRankId", 0}}, {{"epRankId", 1}}, {{"epRankId", 1}}};
  expect_refusal(call, "A3", "2 of the 4 ranks never make the call (rank 2, 3), so the others wait for them");
  expect_refusal(call, "A3", "two of the calls are made by rank 1");
  call["ranks"] = {{{"epRankId", 2}}};
  expect_refusal(call, "A3", "3 of the 4 ranks never make the call (rank 0, 1, 3)");
}

TEST_F(Check, TellsAllThatIsWrongAtOnce) {
  json call = dispatch();
  call["parameters"]["expertShardType"] = 1;
  call["parameters"]["tpWorldSize"] = 3;
  call["parameters"]["expertTokenNumsType"] = 7;
  const Outcome outcome = check(call, {"--soc", "A3"});
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("expertShardType is 1"), HasSubstr("tpWorldSize is 3"),
                                  HasSubstr("expertTokenNumsType is 7")));
}

TEST_F(Check, ManyRanks) {
  json call = dispatch();
  call["parameters"]["epWorldSize"] = 768;
  call["parameters"]["epRankId"] = 767;
  call["parameters"]["moeExpertNum"] = 768;
  call["parameters"]["x"] = "BF16[8,1024]";
  call["parameters"]["expertIds"] = "INT32[8,8]";
  call["parameters"]["expertScalesOptional"] = "FP32[8,8]";
  call["parameters"]["expandScalesOut"] = "FP32[6144]";
  const Outcome outcome = check(call, {"--soc", "A3"});
  EXPECT_EQ(outcome.code, 0) << outcome.text;
}

TEST_F(Check, OtherOperators) {
  EXPECT_EQ(check_text(R"({"function": "MoeUpdateExpert", "parameters":
      {"expertIds": "INT32[4,2]", "eplbTable": "INT32[8,3]", "balanceMode": 1,
       "balancedActiveMask": "BOOL[4,2]"}})")
                .code,
            0);
  EXPECT_EQ(check_text(R"({"function": "aclnnCast", "parameters":
      {"self": {"dtype": "fp32", "shape": [4, 4], "strides": [1, 4]}, "dtype": "BF16", "out": "BF16[4,4]"}})")
                .code,
            0);
  // Lists, and an operator that does not exist on a product.
  EXPECT_EQ(check_text(R"({"function": "aclnnGroupedMatmulV5", "parameters": {"x": ["BF16[5,4]"],
      "weight": ["BF16[2,4,6]"], "groupListOptional": "INT64[2]", "splitItem": 3, "out": ["BF16[5,6]"]}})")
                .code,
            0);
  EXPECT_THAT(check_text(R"({"function": "aclnnMoeReRoutingV2", "soc": "A3", "parameters": {}})").text,
              HasSubstr("no kernel on this product"));
}

TEST_F(Check, ScalarsAreNumbers) {
  EXPECT_EQ(
      check_text(
          R"({"function": "aclnnMuls", "parameters": {"self": "FP32[4]", "other": 2.5, "out": "FP32[4]"}})")
          .code,
      0);
  EXPECT_THAT(
      check_text(
          R"({"function": "aclnnMuls", "parameters": {"self": "INT32[4]", "other": 2.5, "out": "INT32[4]"}})")
          .text,
      HasSubstr("an integer or BOOL where out has an integer type"));
  expect_bad_input(R"({"function": "aclnnMuls", "parameters": {"other": "2"}})",
                   "parameters.other must be a number");
}

// An array in V1 and V2 of GroupedMatmul, and one that is only V5's.
TEST_F(Check, ListsOfIntegersAreLookedAt) {
  EXPECT_THAT(
      check_text(
          R"({"function": "aclnnGroupedMatmul", "parameters": {"x": ["BF16[5,4]"], "weight": ["BF16[2,4,6]"],
      "groupListOptional": [3, 2], "splitItem": 3, "y": ["BF16[5,6]"]}})")
          .text,
      HasSubstr("ascend from 0"));
  EXPECT_THAT(
      check_text(
          R"({"function": "aclnnGroupedMatmulV5", "parameters": {"x": ["BF16[5,4]"], "weight": ["BF16[2,4,6]"],
      "groupListOptional": "INT64[2]", "splitItem": 3, "tuningConfigOptional": [9], "out": ["BF16[5,6]"]}})")
          .text,
      HasSubstr("the first entry of tuningConfigOptional"));
}

TEST_F(Check, RefusesWhatIsNoCall) {
  expect_bad_input("{", "not valid JSON");
  expect_bad_input("[]", "not a JSON object");
  expect_bad_input(R"({"schema": 2, "function": "aclnnCast"})", "schema must be 1");
  expect_bad_input(R"({"function": "aclnnNothing"})", "is 'aclnnNothing', which is no operator here");
  expect_bad_input(R"({"function": "aclnnCast", "parameters": {"selv": null}})",
                   "parameters.selv is no parameter of aclnnCast; did you mean self?");
  expect_bad_input(R"({"function": "aclnnCast", "parameters": {"self": "BF17[1]"}})", "has the dtype 'BF17'");
  expect_bad_input(R"({"function": "aclnnCast", "parameters": {"self": "BF16[1,x]"}})",
                   "a tensor is written like");
  expect_bad_input(
      R"({"function": "aclnnCast", "parameters": {"self": {"dtype": "BF16", "shape": [1], "file": "../x"}}})",
      "must be the name of a file beside this one");
  expect_bad_input(R"({"function": "aclnnCast", "parameters": {"dtype": 1.5}})",
                   "parameters.dtype must be an integer");
  expect_bad_input(R"({"function": "aclnnCast", "parameters": {}, "environment": {"PATH": "x"}})",
                   "must be a variable HCCL_*");
  expect_bad_input(R"({"function": "aclnnCast", "color": 1})", "color is no member of a call");
  EXPECT_THAT(check(dispatch(), {"--soc", "A4"}).text, HasSubstr("'A4' is no product"));
}

}  // namespace
