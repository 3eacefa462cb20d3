// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// The program `moeyard report`: the page has everything in it, hostile files do no harm, and, where a browser is
// installed, its charts are drawn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "support/model_files.h"
#include "support/program.h"

namespace {

using moeyard::test::contents;
using moeyard::test::Outcome;
using moeyard::test::run_moeyard;
using moeyard::test::TemporaryFolder;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

class Report : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const TemporaryFolder folder;
    const auto run = [&](std::vector<std::string> more) {
      more.insert(more.end(), {"--json", (folder.path() / "run.json").string()});
      const fs::path data = fs::path(MOEYARD_TEST_DATA) / "qwen3_moe";
      EXPECT_EQ(run_moeyard(moeyard::test::run_arguments(data, 2, more)).code, 0);
      return json::parse(contents(folder.path() / "run.json"));
    };
    plain = run({"--ranks", "4", "--repeat", "2"});
    workers = run({"--afd", "--ffn-workers", "4", "--placement",
                   (fs::path(MOEYARD_TEST_DATA) / "qwen3_moe" / "placement.json").string()});
  }
  Outcome report(const json& run) { return report_text(run.dump()); }
  Outcome report_text(const std::string& text) {
    std::ofstream(folder_.path() / "run.json") << text;
    return run_moeyard({"report", (folder_.path() / "run.json").string(), "-o", page_path()});
  }
  std::string page_path() const { return (folder_.path() / "page.html").string(); }
  // What is left of the page's data, in the page that was written last.
  json data() const {
    const std::string page = contents(page_path()), open = "id=\"run\">";
    const std::size_t begin = page.find(open) + open.size();
    return json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  }
  // The element body once all scripts have run.
  std::string body_in(const std::string& browser) const {
    const Outcome outcome = moeyard::test::run_program(
        browser, {"--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--dump-dom",
                  "--user-data-dir=" + (folder_.path() / "profile").string(), "file://" + page_path()});
    const std::size_t begin = outcome.text.find("<body");
    return begin == std::string::npos ? outcome.text
                                      : outcome.text.substr(begin, outcome.text.find('>', begin) + 1 - begin);
  }
  const TemporaryFolder folder_;
  static inline json plain, workers;
};

TEST_F(Report, RowsFromRanksAddUpToThoseOfInstances) {
  for (const json& run : {plain, workers}) {
    const json& load = run["load"];
    for (std::size_t p = 0; p < load["rows_of_instance"].size(); ++p) {
      std::int64_t rows = 0;
      for (const auto& from : load["rows_from_rank_to_instance"]) rows += from[p].get<std::int64_t>();
      EXPECT_EQ(load["rows_of_instance"][p], rows);
    }
  }
}

TEST_F(Report, ThePageHasEverythingInIt) {
  ASSERT_EQ(report(plain).code, 0);
  const std::string page = contents(page_path());
  EXPECT_EQ(data(), plain);
  EXPECT_THAT(page, HasSubstr("Chart.js v3"));
  EXPECT_THAT(page, HasSubstr("Permission is hereby granted, free of charge"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(page, HasSubstr("@media print"));
  EXPECT_THAT(page, HasSubstr("width=device-width"));
  for (const char* outside : {"<link", "<img", " src=", "@import", "url(", "%data%", "%script%"})
    EXPECT_THAT(page, Not(HasSubstr(outside)));
}

TEST_F(Report, TextCannotLeaveItsPlace) {
  json run = plain;
  run["model"]["model_type"] = "</title></script><script>document.body.dataset.error = 1</script>";
  run["warnings"] = {"<img src=x onerror=alert(1)>", "\u2028 \xc3\xa9 --> <!--"};
  ASSERT_EQ(report(run).code, 0);
  EXPECT_EQ(data(), run);
  const std::string page = contents(page_path());
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("<script>document")));
}

TEST_F(Report, FilesOfOtherKindsAreRefused) {
  const auto refuse = [&](const std::function<void(json&)>& damage, const std::string& part) {
    json run = plain;
    damage(run);
    const Outcome outcome = report(run);
    EXPECT_EQ(outcome.code, 2) << outcome.text;
    EXPECT_THAT(outcome.text, HasSubstr(part));
    EXPECT_FALSE(fs::exists(page_path()));
  };
  refuse([](json& run) { run["schema"] = 2; }, "must have the schema 1");
  refuse([](json& run) { run.erase("load"); }, "has no member load");
  refuse([](json& run) { run["setup"]["ranks"] = 5; }, "must have a list of 5 numbers as tokens_of_rank");
  refuse([](json& run) { run["setup"]["ranks"] = 0; }, "must have an integer in [1, 65536] as ranks");
  refuse([](json& run) { run["bytes_from_rank_to_rank"][1] = {1}; }, "as bytes_from_rank_to_rank");
  refuse([](json& run) { run["load"]["rows_of_rank"][0] = "x"; }, "something else than numbers");
  refuse([](json& run) { run["phases"][0]["name"] = 3; }, "must have a text as name");
  refuse(
      [](json& run) {
        run["setup"]["afd"] = {{"attention_workers", 1}, {"ffn_workers", 1}};
      },
      "other numbers of workers");
  EXPECT_EQ(report_text("[1]").code, 2);
  EXPECT_EQ(report_text("").code, 2);
}

// Any member at any depth replaced by something else: a page or a sentence, never a crash.
TEST_F(Report, DamagedFilesDoNoHarm) {
  std::mt19937 random(7);
  const json others[] = {
      nullptr, -1, 1e300, "text", json::array(), json::object(), true, std::int64_t{1} << 62};
  for (int i = 0; i < 150; ++i) {
    json run = i % 2 == 0 ? plain : workers;
    json* place = &run;
    while (place->is_structured() && !place->empty() && (place == &run || random() % 4 != 0)) {
      auto member = place->begin();
      std::advance(member, random() % place->size());
      place = &*member;
    }
    *place = others[random() % std::size(others)];
    const Outcome outcome = report(run);
    EXPECT_TRUE(outcome.code == 0 || outcome.code == 2) << outcome.code << outcome.text << run.dump();
  }
}

TEST_F(Report, ABrowserDrawsAllCharts) {
  const Outcome which =
      moeyard::test::run_program("sh", {"-c", "command -v chromium || command -v google-chrome"});
  if (which.code != 0) GTEST_SKIP() << "no browser is installed; Debian has chromium";
  const std::string browser = which.text.substr(0, which.text.find('\n'));
  json one = plain, older = plain;
  one["model"]["model_type"] = "</script><script>document.body.dataset.error = 1</script>";
  older["load"].erase("rows_from_rank_to_instance");
  for (const json& run : {plain, workers, one, older}) {
    ASSERT_EQ(report(run).code, 0);
    EXPECT_EQ(body_in(browser), "<body data-charts=\"4\">");
  }
}

}  // namespace
