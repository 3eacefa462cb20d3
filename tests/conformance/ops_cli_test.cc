// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// The programs `moeyard ops`, `moeyard explain` and `moeyard env`; what MOEYARD_TRACE writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "support/program.h"

namespace {

using moeyard::test::Outcome;
using moeyard::test::run_moeyard;
using testing::HasSubstr;
using testing::Not;

TEST(Ops, ListsOperatorsByFamily) {
  const Outcome outcome = run_moeyard({"ops"});
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("\nbalance "));
  EXPECT_THAT(outcome.text, HasSubstr("aclnnMoeDistributeDispatchV2, V3, V4"));
}

TEST(Ops, ListsAFamilyOrAWord) {
  const Outcome family = run_moeyard({"ops", "balance"});
  EXPECT_THAT(family.text, HasSubstr("aclnnMoeUpdateExpert"));
  EXPECT_THAT(family.text, Not(HasSubstr("Dispatch")));
  EXPECT_THAT(run_moeyard({"ops", "updateexp"}).text, HasSubstr("aclnnMoeUpdateExpert"));
  const Outcome none = run_moeyard({"ops", "nothing"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.text, HasSubstr("has the word 'nothing'"));
}

TEST(Explain, TellsOfAnOperatorAParameterAndACode) {
  const Outcome all = run_moeyard({"explain", "aclnnMoeDistributeDispatchV4"});
  EXPECT_EQ(all.code, 0) << all.text;
  EXPECT_THAT(all.text, HasSubstr("epWorldSize"));
  EXPECT_THAT(run_moeyard({"explain", "MoeDistributeDispatchV4", "epWorldSize"}).text,
              HasSubstr("be in [2, 768], with commAlg hierarchy a multiple"));
  EXPECT_THAT(run_moeyard({"explain", "MoeDistributeDispatchV4", "161001"}).text,
              HasSubstr("name a communicator"));
}

TEST(Explain, SaysWhatToDoAboutPeersThatNeverConnect) {
  EXPECT_THAT(run_moeyard({"explain", "HCCL_E_TIMEOUT"}).text, HasSubstr("HCCL_CONNECT_TIMEOUT"));
  EXPECT_THAT(run_moeyard({"explain", "507048"}).text, HasSubstr("names the ranks that are missing"));
}

TEST(Explain, RefusesWhatItDoesNotKnow) {
  const Outcome outcome = run_moeyard({"explain", "nothing"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.text, HasSubstr("neither an operator nor a code"));
  const Outcome parameter = run_moeyard({"explain", "MoeUpdateExpert", "epWorldSize"});
  EXPECT_EQ(parameter.code, 2);
  EXPECT_THAT(parameter.text, HasSubstr("its parameters are expertIds, eplbTable"));
}

TEST(Env, ListsSettingsAndVariablesOfHccl) {
  const Outcome outcome = run_moeyard({"env"}, "MOEYARD_SOC=A3 HCCL_BUFFSIZE=64");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, testing::ContainsRegex("MOEYARD_SOC +A3 +environment +host"));
  EXPECT_THAT(outcome.text, testing::ContainsRegex("HCCL_BUFFSIZE +64 +environment +200"));
  EXPECT_THAT(outcome.text, testing::ContainsRegex("HCCL_CONNECT_TIMEOUT +120 +default +120"));
}

TEST(Env, NamesWhatIsMisspelt) {
  const auto env = [](const char* environment) { return run_moeyard({"env"}, environment); };
  EXPECT_THAT(env("MOEYARD_SOCK=A3").text, HasSubstr("MOEYARD_SOCK is set but is no setting of Moeyard"));
  EXPECT_THAT(env("MOEYARD_LOG=debgu").text, HasSubstr("MOEYARD_LOG=debgu is not one of debug, plan"));
  EXPECT_EQ(env("HCCL_BUFFSIZE=many").code, 2);
  const std::filesystem::path data = std::filesystem::path(MOEYARD_TEST_DATA) / "mixtral";
  const Outcome run = run_moeyard(moeyard::test::run_arguments(data, 1), "MOEYARD_TARGET=AVX9");
  EXPECT_THAT(run.text, HasSubstr("MOEYARD_TARGET=AVX9 is no SIMD target of this machine, which has"));
}

TEST(Trace, ShowsOperatorsAndWaits) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("trace_" + std::to_string(getpid()));
  const std::filesystem::path data = std::filesystem::path(MOEYARD_TEST_DATA) / "mixtral";
  const Outcome run =
      run_moeyard(moeyard::test::run_arguments(data, 1, {"--ranks", "2"}), "MOEYARD_TRACE=" + path.string());
  EXPECT_EQ(run.code, 0) << run.text;
  std::ifstream file(path);
  const auto trace = nlohmann::json::parse(file);
  std::set<std::pair<std::string, std::string>> seen;
  std::set<std::string> threads;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "M") threads.insert(event["args"]["name"]);
    if (event["ph"] != "X") continue;
    EXPECT_GE(event["dur"].get<double>(), 0);
    seen.emplace(event["cat"], event["name"].get<std::string>());
  }
  EXPECT_TRUE(seen.contains({"wait", "wait for peers"}));
  const auto has = [&](const std::string& category, const std::string& part) {
    return std::any_of(seen.begin(), seen.end(), [&](const auto& event) {
      return event.first == category && event.second.find(part) != std::string::npos;
    });
  };
  EXPECT_TRUE(has("phase one", "aclnnMoeDistributeDispatchV4"));
  EXPECT_TRUE(has("phase two", "Dispatch"));
  EXPECT_TRUE(has("stream", "Dispatch"));
  EXPECT_TRUE(std::any_of(threads.begin(), threads.end(),
                          [](const std::string& name) { return name.find("device 1, stream") == 0; }));
  std::filesystem::remove(path);
}

}  // namespace
