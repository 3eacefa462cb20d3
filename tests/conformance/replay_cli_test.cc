// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// MOEYARD_DUMP and `moeyard replay`: a recorded program gives the same bits again, differences are found and described, and
// hostile files do no harm.
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
using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

class Replay : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder = std::make_unique<TemporaryFolder>();
    const Outcome outcome =
        record("dump", {"--ranks", "4", "--placement", (data() / "placement.json").string()});
    EXPECT_EQ(outcome.code, 0) << outcome.text;
  }
  static void TearDownTestSuite() { folder.reset(); }

  static fs::path data() { return fs::path(MOEYARD_TEST_DATA) / "qwen3_moe"; }
  static Outcome record(const std::string& name, const std::vector<std::string>& more) {
    return run_moeyard(moeyard::test::run_arguments(data(), 2, more),
                       "MOEYARD_DUMP=" + (folder->path() / name).string());
  }
  // A copy of the dump to damage.
  fs::path copy(const std::string& name) const {
    fs::copy(folder->path() / "dump", folder->path() / name, fs::copy_options::recursive);
    return folder->path() / name;
  }
  // The folder of a call by a part of its name.
  static fs::path call(const fs::path& dump, const std::string& part, int device = 0) {
    for (const auto& entry : fs::directory_iterator(dump / ("device_" + std::to_string(device))))
      if (entry.path().filename().string().find(part) != std::string::npos) return entry.path();
    ADD_FAILURE() << "no call of " << part;
    return {};
  }
  static inline std::unique_ptr<TemporaryFolder> folder;
};

TEST_F(Replay, ARecordedProgramGivesTheSameBitsAgain) {
  const Outcome outcome = run_moeyard({"replay", (folder->path() / "dump").string(), "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  const json report = json::parse(outcome.text);
  EXPECT_EQ(report["passes"], true);
  int with_gaps = 0;
  for (const auto& one : report["calls"]) {
    EXPECT_EQ(one["verdict"], "same") << one;
    EXPECT_FALSE(one["outputs"].empty());
    for (const auto& output : one["outputs"]) with_gaps += output["unwritten"] > 0 ? 1 : 0;
  }
  EXPECT_GE(report["calls"].size(), 4U * 7);
  EXPECT_GE(with_gaps, 4);  // dispatch does not write rows that nobody sent
}

TEST_F(Replay, DifferencesAreDescribed) {
  const fs::path dump = copy("changed");
  const fs::path file = call(dump, "CombineV4") / "out_xOut.npy";
  std::string bytes = contents(file);
  const std::size_t begin = bytes.size() - 27 * 256 * 2;
  bytes[begin + 2 * (3 * 256 + 5)] ^= 1;  // FP16: one unit at [3, 5]
  bytes[begin + 2 * (20 * 256)] ^= 4;
  write(file, bytes);
  const Outcome outcome = run_moeyard({"replay", dump.string()});
  EXPECT_EQ(outcome.code, 1) << outcome.text;
  EXPECT_THAT(outcome.text,
              AllOf(HasSubstr("differs device 0"), HasSubstr("xOut FP16[27,256]: 2 of 6912 differ"),
                    HasSubstr("first at [3, 5]: "), HasSubstr("0: 6910  1: 1  3-4: 1"), HasSubstr("FAIL ")));
  EXPECT_EQ(run_moeyard({"replay", dump.string(), "--ulps", "4"}).code, 0);
  // The same by comparing the two recordings.
  const Outcome compared =
      run_moeyard({"replay", (folder->path() / "dump").string(), "--compare", dump.string()});
  EXPECT_EQ(compared.code, 1);
  EXPECT_THAT(compared.text, HasSubstr("2 of 6912 differ"));
  EXPECT_EQ(run_moeyard({"replay", dump.string(), "--compare", dump.string()}).code, 0);
  fs::remove_all(dump);
}

TEST_F(Replay, CallsWithoutTheirPeersAreSkipped) {
  const fs::path dump = copy("alone");
  fs::remove_all(dump / "device_3");
  const Outcome outcome = run_moeyard({"replay", dump.string()});
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("1 of 4 ranks did not record it (rank 3)"));
  fs::remove_all(dump);
}

TEST_F(Replay, RecordedCallsCanBeChecked) {
  const fs::path file = call(folder->path() / "dump", "DispatchV4", 2) / "call.json";
  EXPECT_EQ(run_moeyard({"check", file.string()}).last_line(), "PASS");
  const Outcome refused = run_moeyard({"check", file.string(), "--soc", "A3"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.text, HasSubstr("H is 256 but must be in [1024, 8192]"));
}

TEST_F(Replay, RefusalsAreRecordedToo) {
  const fs::path dump = copy("refused");
  const fs::path file = call(dump, "GatingTopKSoftmaxV2") / "call.json";
  json recorded = json::parse(contents(file));
  recorded["recorded"]["code"] = 507015;
  write(file, recorded.dump());
  const Outcome outcome = run_moeyard({"replay", dump.string()});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.text, HasSubstr("code 0 instead of 507015"));
  recorded["recorded"]["code"] = nullptr;
  write(file, recorded.dump());
  EXPECT_THAT(run_moeyard({"replay", dump.string()}).text, HasSubstr("had not ended when the program did"));
  fs::remove_all(dump);
}

TEST_F(Replay, AFolderIsUsedOnce) {
  const std::string before = contents(folder->path() / "dump" / "manifest.json");
  const Outcome again = record("dump", {"--ranks", "1"});
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.text, HasSubstr("the folder has a dump already"));
  EXPECT_EQ(contents(folder->path() / "dump" / "manifest.json"), before);
  EXPECT_EQ(run_moeyard({"replay", (folder->path() / "none").string()}).code, 2);
}

// A program with random calls of many operators, versions and modes, recorded by its process's number.
TEST_F(Replay, RandomCallsGiveTheSameBitsAgain) {
  const fs::path dumps = folder->path() / "random";
  const Outcome program = moeyard::test::run_program(
      MOEYARD_RANDOM_CALLS, {},
      "GTEST_FILTER=-*OfHalves MOEYARD_TEST_CALLS=40 MOEYARD_DUMP=" + dumps.string() + "/%p");
  ASSERT_EQ(program.code, 0) << program.text;
  const Outcome outcome = run_moeyard({"replay", dumps.string()});
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.last_line(), HasSubstr(" calls the same, 0 differ, ")) << outcome.text;
  // Halves are made by some ranks alone, whose numbers of calls then differ. Only random calls whose outputs lie in each other are left out.
  for (std::size_t at = 0; (at = outcome.text.find("  skipped", at)) != std::string::npos; ++at)
    EXPECT_THAT(outcome.text.substr(at, 400), HasSubstr("lie in the same memory"));
}

TEST_F(Replay, WorkersOfBothKindsAreSkippedWithAReason) {
  ASSERT_EQ(record("afd", {"--afd"}).code, 0);
  const Outcome outcome = run_moeyard({"replay", (folder->path() / "afd").string()});
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("its tensors hold addresses and windows of the program"));
}

// Anything in a description or file may be wrong: a sentence or a difference, never a crash, and nothing outside is read.
TEST_F(Replay, HostileFilesDoNoHarm) {
  std::mt19937 random(11);
  const fs::path dump = copy("hostile");
  for (int device = 1; device < 4; ++device) fs::remove_all(dump / ("device_" + std::to_string(device)));
  std::vector<fs::path> calls;
  for (const auto& entry : fs::directory_iterator(dump / "device_0"))
    if (entry.path().filename().string().find("Distribute") == std::string::npos)
      calls.push_back(entry.path());
    else
      fs::remove_all(entry.path());
  const json others[] = {nullptr,
                         -1,
                         0,
                         1e300,
                         "x",
                         "../../etc/passwd",
                         "BF16[9999999999,9]",
                         json::array(),
                         json::object(),
                         true,
                         std::int64_t{1} << 62,
                         json::array({1 << 20, 1 << 20}),
                         json::array({-1, 3}),
                         "INT4",
                         "STRING"};
  for (int i = 0; i < 160; ++i) {
    const fs::path file = calls[random() % calls.size()] / "call.json";
    const std::string before = contents(file);
    json recorded = json::parse(before);
    json* place = &recorded;
    while (place->is_structured() && !place->empty() && (place == &recorded || random() % 5 != 0)) {
      auto member = place->begin();
      std::advance(member, random() % place->size());
      place = &*member;
    }
    *place = others[random() % std::size(others)];
    write(file, recorded.dump());
    const Outcome outcome = run_moeyard({"replay", dump.string()});
    EXPECT_TRUE(0 <= outcome.code && outcome.code <= 3) << outcome.code << "\n"
                                                        << outcome.text << recorded.dump(1);
    write(file, before);
  }
  for (int i = 0; i < 40; ++i) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(calls[random() % calls.size()]))
      files.push_back(entry.path());
    const fs::path file = files[random() % files.size()];
    const std::string before = contents(file);
    std::string damaged = before;
    for (int k = 0; k < 3; ++k)
      damaged[random() % std::min<std::size_t>(damaged.size(), 400)] = static_cast<char>(random());
    if (i % 4 == 0) damaged.resize(random() % damaged.size());
    write(file, damaged);
    const Outcome outcome = run_moeyard({"replay", dump.string()});
    EXPECT_TRUE(0 <= outcome.code && outcome.code <= 3) << outcome.code << "\n" << outcome.text << file;
    write(file, before);
  }
  // A link must not make another file readable.
  const fs::path x = call(dump, "SwiGlu") / "x.npy";
  fs::rename(x, dump / "moved.npy");
  fs::create_symlink(dump / "moved.npy", x);
  EXPECT_EQ(run_moeyard({"replay", dump.string()}).code, 2);
}

}  // namespace
