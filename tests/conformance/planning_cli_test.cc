// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// The programs that plan: `moeyard balance` and `moeyard plan`. What is predicted is compared with what `moeyard run` measures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/model_files.h"
#include "support/program.h"

namespace {

using moeyard::test::Outcome;
using moeyard::test::run_moeyard;
using moeyard::test::TemporaryFolder;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

json read(const fs::path& path) { return json::parse(moeyard::test::contents(path)); }

class Planning : public testing::Test {
 protected:
  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string write(const std::string& name, const json& content) const {
    std::ofstream(file(name)) << content.dump();
    return file(name);
  }
  static std::vector<std::string> layer(const std::string& json_file,
                                        const std::vector<std::string>& more = {}) {
    const fs::path data = fs::path(MOEYARD_TEST_DATA) / "qwen3_moe";
    std::vector<std::string> all = {"--ranks", "8", "--json", json_file};
    all.insert(all.end(), more.begin(), more.end());
    return moeyard::test::run_arguments(fs::path(MOEYARD_TEST_DATA) / "qwen3_moe", 2, all);
  }
  // What is printed for a table with a fault.
  void expect_fault(const json& table, const std::string& part, int ranks = 2) {
    const Outcome outcome =
        run_moeyard({"balance", "--ranks", std::to_string(ranks), "--check", write("table.json", table)});
    EXPECT_EQ(outcome.code, 1) << outcome.text;
    EXPECT_THAT(outcome.text, HasSubstr(part));
    EXPECT_EQ(outcome.last_line(), "FAIL");
  }
  void expect_bad_input(const std::vector<std::string>& arguments, const std::string& part) {
    const Outcome outcome = run_moeyard(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.text;
    EXPECT_THAT(outcome.text, HasSubstr(part));
  }
  const TemporaryFolder folder_;
};

double imbalance(const json& rows) {
  double most = 0, sum = 0;
  for (const auto& one : rows) most = std::max(most, one.get<double>()), sum += one.get<double>();
  return most * static_cast<double>(rows.size()) / sum;
}

TEST_F(Planning, ARunWithThePlacementIsBalancedAsPredicted) {
  ASSERT_EQ(run_moeyard(layer(file("before.json"))).code, 0);
  const double before = imbalance(read(file("before.json"))["load"]["rows_of_rank"]);
  const Outcome outcome = run_moeyard(
      {"balance", file("before.json"), "--ranks", "8", "--redundant", "8", "-o", file("placement.json")});
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const json made = read(file("placement.json"));
  EXPECT_NEAR(made["balance"][0]["in_order"]["imbalance"].get<double>(), before, 1e-9);
  ASSERT_EQ(run_moeyard(layer(file("after.json"), {"--placement", file("placement.json")})).code, 0);
  const json after = read(file("after.json"));
  EXPECT_EQ(after["load"]["expert_of_instance"], made["phy2log"]);
  // Tokens are in turn, so each of two instances has half of the rows only about.
  EXPECT_LT(imbalance(after["load"]["rows_of_rank"]), 1 + (before - 1) / 3);
  // Its own table passes, and has the same balance.
  const Outcome check = run_moeyard(
      {"balance", file("before.json"), "--ranks", "8", "--check", file("placement.json"), "--json"});
  EXPECT_EQ(check.code, 0) << check.text;
  EXPECT_EQ(json::parse(check.text)["layers"][0]["rows_of_rank"], made["balance"][0]["rows_of_rank"]);
}

TEST_F(Planning, TablesAreThoseOfThePlannersAndOfUpdateExpert) {
  write("loads.json", {{"loads", {10, 40, 25, 25}}});
  const json made = json::parse(
      run_moeyard({"balance", file("loads.json"), "--ranks", "3", "--instances", "6", "--json"}).text);
  const auto experts = made["phy2log"].get<std::vector<int>>();
  ASSERT_EQ(experts.size(), 6U);
  for (int e = 0; e < 4; ++e) {
    std::vector<int> instances;
    for (int p = 0; p < 6; ++p)
      if (experts[p] == e) instances.push_back(p);
    EXPECT_EQ(made["logcnt"][e], instances.size());
    auto row = made["eplbTable"][e].get<std::vector<int>>();
    EXPECT_EQ(row[0], static_cast<int>(instances.size()));
    for (std::size_t i = 1; i < row.size(); ++i) {
      EXPECT_EQ(row[i], i <= instances.size() ? instances[i - 1] : -1);
      EXPECT_EQ(made["log2phy"][e][i - 1], row[i]);
    }
  }
}

TEST_F(Planning, LayersAndFilesAreKeptApartOrAddedUp) {
  write("two.json", {{"loads", {{1, 2, 3, 4}, {40, 30, 20, 10}}}});
  const Outcome both = run_moeyard({"balance", file("two.json"), file("two.json"), "--ranks", "2", "--groups",
                                    "2", "--hosts", "2", "-o", file("p.json")});
  EXPECT_EQ(both.code, 0) << both.text;
  EXPECT_THAT(both.text, AllOf(HasSubstr("hierarchical"), HasSubstr("layer 1")));
  const json made = read(file("p.json"));
  EXPECT_EQ(made["phy2log"].size(), 2U);
  EXPECT_EQ(made["balance"][0]["placement"]["mean"], 10);  // 2 x (1 + 2 + 3 + 4) / 2
  EXPECT_EQ(run_moeyard({"balance", file("two.json"), "--ranks", "2", "--check", file("p.json")}).last_line(),
            "PASS");
  EXPECT_EQ(
      run_moeyard({"balance", file("two.json"), "--ranks", "2", "--check", file("p.json")}, "MOEYARD_SOC=A3")
          .last_line(),
      "PASS");
}

TEST_F(Planning, FaultsOfTablesAreNamed) {
  expect_fault({{"phy2log", {0, 0, 2, 2}}}, "expert 1 has no instance; tokens that choose it would be lost");
  expect_fault({{"phy2log", {0, 1, 2}}}, "3 instances do not lie evenly on 2 ranks; 1, 3 ranks would do");
  expect_fault({{"phy2log", {0, 1, 1, 1}}}, "an expert has 3 instances, more than the 2 ranks");
  expect_fault({{"phy2log", {0, -1}}}, "instance 1 has no expert");
  expect_fault({{"eplbTable", {{1, 0}, {2, 1}}}},
               "eplbTable[1][0] is 2 but must be a number of instances in [1, 1]");
  expect_fault({{"eplbTable", {{1, 0}, {1, 0}}}},
               "eplbTable[1][1] is 0, an instance that expert 0 has already");
  expect_fault({{"eplbTable", {{1, 0}, {1, -4}}}}, "eplbTable[1][1] is -4 but must be the id of an instance");
  expect_fault({{"eplbTable", {{1, 0}, {1, 3}}}}, "instance 1 has no expert");
  expect_fault({{"eplbTable", {{1, 0}, {1, 1}}}, {"phy2log", {1, 0}}}, "name different placements");
  const Outcome twins =
      run_moeyard({"balance", "--ranks", "2", "--check", write("t.json", {{"phy2log", {0, 0, 1, 1}}})});
  EXPECT_EQ(twins.code, 0);
  EXPECT_THAT(twins.text,
              HasSubstr("note: 2 instance(s) lie on a rank that has one of the same expert already"));
  // What only the operator knows: more experts than the product has.
  json many = json::array();
  for (int e = 0; e < 1025; ++e) many.push_back(e);
  write("many.json", {{"phy2log", many}});
  EXPECT_EQ(run_moeyard({"balance", "--ranks", "5", "--check", file("many.json")}).code, 0);
  const Outcome refused =
      run_moeyard({"balance", "--ranks", "5", "--check", file("many.json")}, "MOEYARD_SOC=A3");
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.text, HasSubstr("must have at most 1024 experts"));
}

TEST_F(Planning, NumbersThatDoNotFitAreRefused) {
  const std::string loads = write("loads.json", {{"loads", {1, 2, 3, 4}}});
  expect_bad_input({"balance", loads, "--ranks", "3"},
                   "4 instances do not lie evenly on 3 ranks: --instances 6 would");
  expect_bad_input({"balance", loads, "--ranks", "2", "--instances", "2"}, "fewer than the 4 experts");
  expect_bad_input({"balance", loads, "--ranks", "2", "--instances", "10"}, "more than one of each");
  expect_bad_input({"balance", loads, "--ranks", "2", "--instances", "4", "--redundant", "0"},
                   "say the same");
  expect_bad_input({"balance", loads, "--ranks", "2", "--policy", "hierarchical", "--hosts", "2"},
                   "needs --groups");
  expect_bad_input(
      {"balance", loads, "--ranks", "2", "--policy", "hierarchical", "--hosts", "3", "--groups", "3"},
      "--hosts 3 does not divide the 2 ranks");
  expect_bad_input({"balance", "--ranks", "2"}, "no file with loads");
  expect_bad_input({"balance", write("x.json", {{"loads", {1, -2}}}), "--ranks", "2"},
                   "'-2' as entry 1 of loads");
  expect_bad_input({"balance", write("x.json", {{"loads", {1, "a"}}}), "--ranks", "1"},
                   "as entry 1 of loads");
  expect_bad_input({"balance", write("x.json", {{"load", 3}}), "--ranks", "1"}, "has neither loads nor what");
  expect_bad_input({"balance", loads, write("y.json", {{"loads", {1, 2}}}), "--ranks", "2"},
                   "loads of 2 experts, others have 4");
  expect_bad_input({"balance", "--ranks", "2", "--check", write("z.json", {{"phy2log", {0, 1.5}}})},
                   "must be an integer");
  expect_bad_input({"balance", "--ranks", "2", "--check", write("z.json", {{"a", 1}})},
                   "neither phy2log nor eplbTable");
  expect_bad_input({"balance", "--ranks", "2", "--check", write("z.json", {{"eplbTable", {{1, 0}, {1}}}})},
                   "as many columns");
}

// --- moeyard plan ------------------------------------------------------------------------------------------------

// The rows that a plan counts for recorded choices are those that dispatch moved.
TEST_F(Planning, APlanOfRecordedTokensIsWhatRan) {
  const fs::path data = fs::path(MOEYARD_TEST_DATA) / "qwen3_moe";
  for (const bool placed : {false, true}) {
    std::vector<std::string> more = {"--output", file("out.safetensors"), "--with-topk"};
    std::vector<std::string> plan = {
        "plan", "--model", data.string(),           "--layer", "2", "--ranks", "2", "--tokens",
        "55",   "--trace", file("out.safetensors"), "--json"};
    if (placed)
      for (auto* list : {&more, &plan})
        list->insert(list->end(), {"--placement", (data / "placement.json").string()});
    auto run_arguments = layer(file("run.json"), more);
    *(std::ranges::find(run_arguments, "--ranks") + 1) = "2";
    ASSERT_EQ(run_moeyard(run_arguments).code, 0);
    const json ran = read(file("run.json"));
    const Outcome outcome = run_moeyard(plan);
    ASSERT_EQ(outcome.code, 0) << outcome.text;
    const json planned = json::parse(outcome.text);
    EXPECT_EQ(planned["loads"], ran["load"]["rows_of_expert"]);
    for (int from = 0; from < 2; ++from)
      for (int to = 0; to < 2; ++to)
        EXPECT_EQ(planned["rows_from_rank_to_rank"][from][to].get<std::int64_t>() * 256 * 2,
                  ran["bytes_from_rank_to_rank"][from][to].get<std::int64_t>());
  }
}

// Two hosts of a rank, two tokens each, which go to both experts: each rank sends two rows of 2 * 100 + 12 bytes.
TEST_F(Planning, TimesAreThoseOfTheModel) {
  const std::string cluster =
      write("cluster.json", {{"inter_gb_per_s", 0.1}, {"latency_us", 10}, {"tflops", 0.001}});
  const Outcome outcome =
      run_moeyard({"plan", "--experts", "2", "--topk", "2", "--hidden", "100", "--intermediate", "10",
                   "--ranks", "2", "--hosts", "2", "--tokens", "2", "--cluster", cluster, "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const json plan = json::parse(outcome.text);
  EXPECT_EQ(plan["dispatch_bytes"]["inter_out"], 424);
  EXPECT_EQ(plan["dispatch_bytes"]["all_inter"], 848);
  EXPECT_EQ(plan["dispatch_bytes"]["intra_out"], 0);
  EXPECT_NEAR(plan["estimate_us"]["dispatch"].get<double>(), 10 + 4.24, 1e-9);
  EXPECT_NEAR(plan["estimate_us"]["combine"].get<double>(), 10 + 4.0, 1e-9);
  EXPECT_NEAR(plan["estimate_us"]["experts"].get<double>(), 4 * 6 * 100 * 10 / 1e9 * 1e6, 1e-9);  // 4 rows
  EXPECT_EQ(plan["estimate_us"]["dispatch_limit"], "inter");
}

TEST_F(Planning, TokensCrossToAHostOnceWithHierarchy) {
  const std::string cluster = write("cluster.json", {{"inter_gb_per_s", 1}});
  std::vector<std::string> arguments = {"plan", "--experts", "8",     "--topk",  "8", "--hidden",
                                        "64",   "--ranks",   "8",     "--hosts", "2", "--tokens",
                                        "3",    "--cluster", cluster, "--json"};
  const json flat = json::parse(run_moeyard(arguments).text);
  arguments.push_back("--hierarchy");
  const json once = json::parse(run_moeyard(arguments).text);
  EXPECT_EQ(flat["dispatch_bytes"]["all_inter"],
            4 * flat["dispatch_bytes"]["all_once"].get<int>());  // 4 experts a host
  EXPECT_NEAR(flat["estimate_us"]["dispatch"].get<double>(),
              4 * once["estimate_us"]["dispatch"].get<double>(), 1e-9);
}

TEST_F(Planning, BalancingMakesAPlanFaster) {
  const std::vector<std::string> arguments = {"plan",     "--experts", "64",      "--topk", "4",
                                              "--hidden", "64",        "--ranks", "8",      "--tokens",
                                              "500",      "--skew",    "1",       "--json"};
  const json before = json::parse(run_moeyard(arguments).text);
  EXPECT_GT(before["imbalance"], 1.3);
  write("loads.json", {{"loads", before["loads"]}});
  ASSERT_EQ(
      run_moeyard({"balance", file("loads.json"), "--ranks", "8", "--redundant", "16", "-o", file("p.json")})
          .code,
      0);
  auto placed = arguments;
  placed.insert(placed.end(), {"--placement", file("p.json")});
  EXPECT_LT(json::parse(run_moeyard(placed).text)["imbalance"], 1.1);
  // Tokens drawn like loads have about those loads.
  auto drawn = arguments;
  drawn[11] = "--loads", drawn[12] = file("loads.json");
  const json again = json::parse(run_moeyard(drawn).text);
  EXPECT_NEAR(again["imbalance"].get<double>(), before["imbalance"].get<double>(), 0.1);
}

TEST_F(Planning, ManyRanksArePlannedToo) {
  const Outcome outcome =
      run_moeyard({"plan", "--experts", "768", "--topk", "8", "--hidden", "7168", "--ranks", "768", "--hosts",
                   "96", "--tokens", "16", "--rows", "int8"});
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("mean 128,"), HasSubstr("no times: --cluster")));
}

TEST_F(Planning, PlansThatCannotBeAreRefused) {
  const std::vector<std::string> good = {"plan", "--experts", "8", "--topk",   "2", "--hidden",
                                         "64",   "--ranks",   "4", "--tokens", "5"};
  const auto with = [&](const std::vector<std::string>& more) {
    auto all = good;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  EXPECT_EQ(run_moeyard(good).code, 0);
  expect_bad_input({"plan", "--ranks", "4", "--tokens", "5"}, "give --model and --layer, or --experts");
  expect_bad_input(with({"--hosts", "3"}), "--hosts 3 does not divide the 4 ranks");
  expect_bad_input(
      {"plan", "--experts", "9", "--topk", "2", "--hidden", "64", "--ranks", "4", "--tokens", "5"},
      "do not lie evenly on 4 ranks");
  expect_bad_input(with({"--cluster", write("c.json", {{"speed", 1}})}), "'speed', which is none of");
  expect_bad_input(with({"--cluster", write("c.json", {{"tflops", -1}})}), "a number, 0 or more, as tflops");
  expect_bad_input(with({"--measured", write("c.json", {{"tflops", 1}})}),
                   "is not what moeyard run --json writes");
  expect_bad_input(with({"--loads", write("l.json", {{"loads", {1, 2}}})}), "has no loads of 8 experts");
  expect_bad_input(with({"--loads", write("l.json", {{"loads", {1, 0, 0, 0, 0, 0, 0, 0}}})}),
                   "fewer than the 2 of a token");
  expect_bad_input(with({"--trace", write("t.json", {{"a", 1}})}), "t.json");
  expect_bad_input(
      {"plan", "--experts", "8", "--topk", "8", "--hidden", "64", "--ranks", "4", "--tokens", "16000000"},
      "plan with fewer");
}

}  // namespace
