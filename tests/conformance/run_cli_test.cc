// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// The program `moeyard run` on the layers of tests/data and on damaged ones: exit codes, last lines, files.
#include <gmock/gmock.h>

#include <functional>

#include "support/model_files.h"
#include "support/program.h"

namespace {

using moeyard::test::contents;
using moeyard::test::Outcome;
using moeyard::test::run_moeyard;
using moeyard::test::TemporaryFolder;
using moeyard::test::TensorWriter;
using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;
namespace fs = std::filesystem;

struct Layer {
  const char* name;
  int number;
  const char* dtype;  // as stored
  int other_ranks;    // divides its experts and its instances as well
};
void PrintTo(const Layer& layer, std::ostream* out) { *out << layer.name; }
constexpr Layer kLayers[] = {
    {"mixtral", 1, "bf16", 2}, {"qwen3_moe", 2, "fp16", 8}, {"deepseek_v3", 1, "bf16", 2}};

fs::path data(const Layer& layer) { return fs::path(MOEYARD_TEST_DATA) / layer.name; }

std::vector<std::string> arguments_of(const Layer& layer, const std::vector<std::string>& more = {}) {
  return moeyard::test::run_arguments(data(layer), layer.number, more);
}

std::vector<std::string> expecting(const Layer& layer, std::vector<std::string> more) {
  more.insert(more.end(), {"--expect", (data(layer) / "expected.safetensors").string()});
  return arguments_of(layer, more);
}

// Header of a safetensors file, and the bytes of one tensor.
json header_of(const std::string& bytes) {
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  return json::parse(bytes.substr(8, length));
}
std::string tensor_of(const std::string& bytes, const std::string& name) {
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  const auto offsets = header_of(bytes).at(name).at("data_offsets");
  const auto begin = offsets[0].get<std::size_t>();
  return bytes.substr(8 + length + begin, offsets[1].get<std::size_t>() - begin);
}

class Layers : public testing::TestWithParam<Layer> {};
INSTANTIATE_TEST_SUITE_P(Data, Layers, testing::ValuesIn(kLayers),
                         [](const auto& info) { return info.param.name; });

TEST_P(Layers, PassAgainstTransformersOnAnyNumberOfRanksInBothTypes) {
  for (const char* dtype : {"bf16", "fp16"}) {
    std::string first;
    for (const int ranks : {1, 2, 4, GetParam().other_ranks}) {
      const TemporaryFolder folder;
      const std::string output = (folder.path() / "out.safetensors").string();
      const Outcome outcome = run_moeyard(
          expecting(GetParam(), {"--ranks", std::to_string(ranks), "--dtype", dtype, "--output", output}));
      ASSERT_EQ(outcome.code, 0) << outcome.text;
      EXPECT_THAT(outcome.last_line(), StartsWith("PASS ")) << outcome.text;
      if (first.empty()) first = contents(output);
      EXPECT_EQ(contents(output), first) << ranks << " ranks give other bits";
    }
  }
}

TEST_P(Layers, PassWithRanksAsProcessesWithTheSameBitsAndRows) {
  const TemporaryFolder folder;
  std::string bits[2];
  json load[2];
  for (const bool processes : {false, true}) {
    const std::string output = (folder.path() / "out.safetensors").string();
    const std::string file = (folder.path() / "report.json").string();
    const Outcome outcome =
        run_moeyard(expecting(GetParam(), {processes ? "--processes" : "--ranks", "4", "--repeat", "3",
                                           "--output", output, "--with-topk", "--json", file}));
    ASSERT_EQ(outcome.code, 0) << outcome.text;
    EXPECT_THAT(outcome.last_line(), StartsWith("PASS ")) << outcome.text;
    bits[processes] = contents(output);
    load[processes] = json::parse(contents(file)).at("load");
  }
  EXPECT_EQ(bits[0], bits[1]);
  EXPECT_EQ(load[0], load[1]);
}

TEST(Processes, ARankThatFailsIsNamedAndTheOthersEnd) {
  const Outcome outcome =
      run_moeyard(arguments_of(kLayers[0], {"--processes", "4"}), "ASCEND_RT_VISIBLE_DEVICES=0,1,2");
  EXPECT_EQ(outcome.code, 3) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("rank 3: aclrtSetDevice returned 107001"));
}

TEST(Processes, EachKeepsItsTrace) {
  const TemporaryFolder folder;
  for (const char* name : {"trace.json", "of.ranks/trace", "%p.json"}) {
    const fs::path trace = folder.path() / name;
    fs::create_directory(folder.path() / "of.ranks");
    ASSERT_EQ(
        run_moeyard(arguments_of(kLayers[0], {"--processes", "2"}), "MOEYARD_TRACE=" + trace.string()).code,
        0);
  }
  int found = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
    if (entry.is_directory()) continue;
    ++found;
    EXPECT_TRUE(json::accept(contents(entry.path()))) << entry;
    EXPECT_THAT(contents(entry.path()), HasSubstr("aclnnMoeDistributeDispatchV4")) << entry;
  }
  EXPECT_EQ(found, 6);  // of two ranks each
  for (const char* name : {"trace.rank0.json", "trace.rank1.json", "of.ranks/trace.rank1"})
    EXPECT_TRUE(fs::exists(folder.path() / name)) << name;
}

TEST_P(Layers, WorkersOfBothKindsGiveTheSameBits) {
  const TemporaryFolder folder;
  const std::string output = (folder.path() / "out.safetensors").string();
  const std::string file = (folder.path() / "report.json").string();
  const std::string placement = (data(GetParam()) / "placement.json").string();
  for (const char* dtype : {"bf16", "fp16"}) {
    ASSERT_EQ(run_moeyard(arguments_of(GetParam(), {"--dtype", dtype, "--output", output})).code, 0);
    const std::string plain = contents(output);
    const std::vector<std::vector<std::string>> deployments = {
        {},
        {"--attention-workers", "1", "--ffn-workers", "1", "--micro-batches", "1"},
        {"--attention-workers", "3", "--ffn-workers", "4", "--micro-batch-tokens", "7", "--placement",
         placement},
        {"--attention-workers", "5", "--micro-batches", "2", "--micro-batch-tokens", "1"}};
    for (std::vector<std::string> deployment : deployments) {
      deployment.insert(deployment.end(), {"--afd", "--dtype", dtype, "--output", output, "--repeat", "2"});
      const Outcome outcome = run_moeyard(expecting(GetParam(), deployment));
      ASSERT_EQ(outcome.code, 0) << outcome.text;
      EXPECT_THAT(outcome.last_line(), StartsWith("PASS ")) << outcome.text;
      EXPECT_EQ(contents(output), plain) << testing::PrintToString(deployment);
    }
  }
}

TEST_P(Layers, WorkersOfBothKindsAsProcessesGiveTheSameBitsAndRows) {
  const TemporaryFolder folder;
  std::string bits[2];
  json load[2];
  for (const bool processes : {false, true}) {
    const std::string output = (folder.path() / "out.safetensors").string();
    const std::string file = (folder.path() / "report.json").string();
    std::vector<std::string> call = {"--afd", "--attention-workers",
                                     "3",     "--micro-batch-tokens",
                                     "7",     "--repeat",
                                     "3",     "--json",
                                     file,    "--output",
                                     output};
    if (processes) call.insert(call.end(), {"--processes", "5"});
    const Outcome outcome = run_moeyard(expecting(GetParam(), call));
    ASSERT_EQ(outcome.code, 0) << outcome.text;
    EXPECT_THAT(outcome.last_line(), StartsWith("PASS ")) << outcome.text;
    bits[processes] = contents(output);
    const json report = json::parse(contents(file));
    load[processes] = report.at("load");
    for (const auto& phase : report.at("phases")) EXPECT_GT(phase.at("ms").get<double>(), 0.0) << phase;
  }
  EXPECT_EQ(bits[0], bits[1]);
  EXPECT_EQ(load[0], load[1]);
}

// The others wait for what it would send, or for its results.
TEST(Processes, AWorkerOfEitherKindThatFailsEndsTheOthers) {
  for (const char* devices : {"0,1,2", "0"}) {
    const Outcome outcome = run_moeyard(arguments_of(kLayers[0], {"--processes", "4", "--afd"}),
                                        std::string("ASCEND_RT_VISIBLE_DEVICES=") + devices);
    EXPECT_EQ(outcome.code, 3) << outcome.text;
    EXPECT_THAT(outcome.text, HasSubstr("aclrtSetDevice returned 107001"));
  }
  const Outcome outcome =
      run_moeyard(arguments_of(kLayers[0], {"--processes", "4", "--afd"}), "MOEYARD_SOC=A3");
  EXPECT_EQ(outcome.code, 3) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("aclnnAttentionToFFN returned 561002"));
}

TEST_P(Layers, TheReportOfWorkersHasTheirSetupRowsAndPhases) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "report.json").string();
  const Outcome outcome =
      run_moeyard(expecting(GetParam(), {"--afd", "--attention-workers", "3", "--json", file}));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const json report = json::parse(contents(file));
  EXPECT_EQ(report.at("setup").at("ranks"), 5);
  EXPECT_EQ(
      report.at("setup").at("afd"),
      json({{"attention_workers", 3}, {"ffn_workers", 2}, {"micro_batches", 3}, {"micro_batch_tokens", 16}}));
  const json provenance = json::parse(contents(data(GetParam()) / "provenance.json"));
  EXPECT_EQ(report.at("load").at("rows_of_expert"), provenance.at("tokens_per_expert"));
  std::int64_t rows = 0, tokens = 0, bytes = 0;
  for (int r = 0; r < 5; ++r) {
    tokens += report.at("load").at("tokens_of_rank")[r].get<std::int64_t>();
    rows += report.at("load").at("rows_of_rank")[r].get<std::int64_t>();
    for (int to = 0; to < 5; ++to) {
      const auto part = report.at("bytes_from_rank_to_rank")[r][to].get<std::int64_t>();
      EXPECT_EQ(part > 0, r < 3 && to >= 3) << r << " to " << to;
      bytes += part;
    }
  }
  EXPECT_EQ(tokens, report.at("setup").at("tokens"));
  EXPECT_EQ(bytes, rows * report.at("model").at("hidden").get<std::int64_t>() * 2);
  std::vector<std::string> names;
  for (const auto& phase : report.at("phases")) {
    names.push_back(phase.at("name"));
    EXPECT_GT(phase.at("ms").get<double>(), 0.0) << phase;
    EXPECT_GT(phase.at("bytes").get<std::int64_t>(), 0) << phase;
  }
  EXPECT_THAT(names, testing::ElementsAre("gate", "send", "batch", "experts", "send back", "combine"));
}

TEST_P(Layers, APlacementMovesRowsAndChangesNoBit) {
  const TemporaryFolder folder;
  const std::string plain = (folder.path() / "plain.safetensors").string();
  ASSERT_EQ(run_moeyard(arguments_of(GetParam(), {"--output", plain})).code, 0);
  for (const char* balance : {"token", "rank"}) {
    const std::string placed = (folder.path() / "placed.safetensors").string();
    const std::string file = (folder.path() / "report.json").string();
    const Outcome outcome = run_moeyard(
        expecting(GetParam(), {"--placement", (data(GetParam()) / "placement.json").string(), "--balance",
                               balance, "--ranks", "4", "--output", placed, "--json", file}));
    ASSERT_EQ(outcome.code, 0) << outcome.text;
    EXPECT_EQ(contents(placed), contents(plain)) << balance;
    const json report = json::parse(contents(file));
    const json phy2log = json::parse(contents(data(GetParam()) / "placement.json")).at("phy2log");
    EXPECT_EQ(report.at("load").at("expert_of_instance"), phy2log);
    EXPECT_EQ(report.at("setup").at("balance"), balance);
  }
}

TEST_P(Layers, TheReportAgreesWithWhatTransformersChose) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "report.json").string();
  const std::string output = (folder.path() / "out.safetensors").string();
  const Outcome outcome =
      run_moeyard(expecting(GetParam(), {"--ranks", "4", "--repeat", "2", "--json", file, "--output", output,
                                         "--with-topk", "--output-name", "y"}));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const json report = json::parse(contents(file));
  EXPECT_EQ(report.at("schema"), 1);
  EXPECT_EQ(report.at("verdict"), "pass");
  EXPECT_EQ(report.at("setup").at("dtype"), GetParam().dtype);
  EXPECT_EQ(report.at("setup").at("passes"), 2);

  const std::string expected = contents(data(GetParam()) / "expected.safetensors"), got = contents(output);
  EXPECT_EQ(tensor_of(got, "topk_ids"), tensor_of(expected, "topk_ids"));
  EXPECT_EQ(header_of(got).at("y").at("shape"), header_of(expected).at("expected").at("shape"));
  const json provenance = json::parse(contents(data(GetParam()) / "provenance.json"));
  EXPECT_EQ(report.at("load").at("rows_of_expert"), provenance.at("tokens_per_expert"));

  std::int64_t rows = 0, bytes = 0;
  for (const auto& count : report.at("load").at("rows_of_rank")) rows += count.get<std::int64_t>();
  for (const auto& row : report.at("bytes_from_rank_to_rank"))
    for (const auto& part : row) bytes += part.get<std::int64_t>();
  EXPECT_EQ(rows, report.at("setup").at("tokens").get<std::int64_t>() *
                      report.at("model").at("experts_per_token").get<std::int64_t>());
  EXPECT_EQ(bytes, rows * report.at("model").at("hidden").get<std::int64_t>() * 2);
  ASSERT_EQ(report.at("phases").size(), 4u);
  for (const auto& phase : report.at("phases")) {
    EXPECT_GT(phase.at("ms").get<double>(), 0.0) << phase;
    EXPECT_GT(phase.at("bytes").get<std::int64_t>(), 0) << phase;
    EXPECT_EQ(phase.at("ms_of_pass_and_rank").size(), 2u);
    EXPECT_EQ(phase.at("ms_of_pass_and_rank")[0].size(), 4u);
  }
  ASSERT_EQ(report.at("checks").size(), 2u);
  for (const auto& check : report.at("checks"))
    EXPECT_LE(check.at("worst").at("error").get<double>(), check.at("worst").at("limit").get<double>());
}

TEST_P(Layers, LinesFitAHundredColumnsAndNothingIsColored) {
  for (const char* ranks : {"--ranks=4", "--afd"}) {
    const Outcome outcome = run_moeyard(expecting(GetParam(), {ranks}));
    std::istringstream lines(outcome.text);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), 100u) << line;
      EXPECT_EQ(line.find_first_of("\033\r"), std::string::npos) << line;
    }
  }
}

TEST(RunCli, AWrongExpectationIsAMismatch) {
  const TemporaryFolder folder;
  std::string bytes = contents(data(kLayers[0]) / "expected.safetensors");
  const json offsets = header_of(bytes).at("expected").at("data_offsets");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  const float wrong = 100.0f;  // in column 3 of token 2
  std::memcpy(bytes.data() + 8 + length + offsets[0].get<std::size_t>() + (2 * 256 + 3) * 4, &wrong,
              sizeof wrong);
  const Outcome outcome =
      run_moeyard(arguments_of(kLayers[0], {"--expect", folder.write("wrong.safetensors", bytes).string()}));
  EXPECT_EQ(outcome.code, 1) << outcome.text;
  EXPECT_THAT(outcome.last_line(), StartsWith("FAIL 1 value"));
  EXPECT_THAT(outcome.text, HasSubstr("[2, 3]: "));
}

TEST(RunCli, FewerTokensThanRanksWork) {
  for (const int tokens : {0, 1, 3}) {
    const TemporaryFolder folder;
    TensorWriter writer;
    writer.add_pattern("x", {tokens, 256}, "BF16");
    const std::string output = (folder.path() / "out.safetensors").string();
    for (const Layer& layer : kLayers)
      for (const char* ranks : {"--ranks=4", "--afd"}) {
        const Outcome outcome =
            run_moeyard({"run", "--model", data(layer).string(), "--layer", std::to_string(layer.number),
                         "--input", folder.write("x.safetensors", writer.bytes()).string(), "--input-name",
                         "x", ranks, "--output", output, "--json", (folder.path() / "report.json").string()});
        ASSERT_EQ(outcome.code, 0) << outcome.text;
        EXPECT_THAT(outcome.last_line(), StartsWith("PASS "));
        EXPECT_EQ(header_of(contents(output)).at("output").at("shape"), json({tokens, 256}));
        EXPECT_EQ(json::parse(contents(folder.path() / "report.json")).at("setup").at("tokens"), tokens);
      }
  }
}

TEST(RunCli, MoreRanksThanTheDefaultOfDevicesWork) {
  const Outcome outcome = run_moeyard(expecting(kLayers[1], {"--ranks", "24"}));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
}

struct BadCall {
  const char* name;
  std::vector<std::string> more;
  const char* says;
};

class BadCalls : public testing::TestWithParam<BadCall> {};

TEST_P(BadCalls, EndWithTwoAndASentence) {
  const Outcome outcome = run_moeyard(arguments_of(kLayers[1], GetParam().more));
  EXPECT_EQ(outcome.code, 2) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr(GetParam().says));
  EXPECT_THAT(outcome.text, testing::Not(HasSubstr("PASS")));
}

const std::string kPlacement = (data(kLayers[1]) / "placement.json").string();
const BadCall kBadCalls[] = {
    {"ranks_uneven",
     {"--ranks", "5"},
     "--ranks 5 does not divide the 24 experts of this layer: 1, 2, 3, 4, 6, 8, 12, 24 work."},
    {"ranks_zero", {"--ranks", "0"}, "--ranks 0 does not divide"},
    {"ranks_above_experts", {"--ranks", "48"}, "--ranks 48 does not divide"},
    {"ranks_text", {"--ranks", "many"}, "--ranks"},
    {"instances_uneven",
     {"--ranks", "3", "--placement", kPlacement},
     "32 expert instances of this layer: 1, 2, 4, 8, 16, 32 work."},
    {"balance_alone",
     {"--placement", kPlacement, "--balance", "rank"},
     "--balance rank needs at least 2 ranks"},
    {"balance_unknown", {"--balance", "luck"}, "--balance"},
    {"placement_missing", {"--placement", "/nowhere.json"}, "/nowhere.json cannot be read"},
    {"placement_of_another_layer",
     {"--placement", (data(kLayers[0]) / "placement.json").string()},
     "has no instance of expert 8"},
    {"processes_and_ranks", {"--processes", "4", "--ranks", "4"}, "excludes"},
    {"processes_uneven", {"--processes", "5"}, "--processes 5 does not divide the"},
    {"processes_and_other_workers",
     {"--processes", "4", "--afd", "--attention-workers", "2", "--ffn-workers", "4"},
     "--attention-workers 2 and --ffn-workers 4 do not make 4 ranks"},
    {"processes_for_one_kind_only", {"--processes", "2", "--afd"}, "--ffn-workers 0 do not make 2 ranks"},
    {"afd_and_ranks", {"--afd", "--ranks", "4"}, "--ranks"},
    {"workers_without_afd", {"--ffn-workers", "4"}, "--afd"},
    {"ffn_workers_uneven",
     {"--afd", "--ffn-workers", "7"},
     "--ffn-workers 7 does not divide the 24 experts of this layer: 1, 2, 3, 4, 6, 8, 12, 24 work."},
    {"ffn_workers_zero", {"--afd", "--ffn-workers", "0"}, "--ffn-workers 0 does not divide"},
    {"attention_workers_zero", {"--afd", "--attention-workers", "0"}, "must be from 1 to 1024"},
    {"micro_batches_many", {"--afd", "--micro-batches", "65"}, "--micro-batches 65 must be from 1 to 64"},
    {"micro_batch_empty", {"--afd", "--micro-batch-tokens", "0"}, "must be from 1 to 512"},
    {"names_collide",
     {"--output", "/nowhere", "--with-topk", "--output-name", "topk_ids"},
     "--output-name topk_ids is"},
    {"topk_without_output", {"--with-topk"}, "--with-topk needs --output"},
    {"dtype_unknown", {"--dtype", "fp8"}, "--dtype"},
    {"repeat_zero", {"--repeat", "0"}, "--repeat"},
    {"option_unknown", {"--rank", "4"}, "--rank"},
    {"input_name", {"--input-name", "x"}, "tensor 'x' is missing in"},
    {"expect_of_another_layer",
     {"--expect", (data(kLayers[0]) / "expected.safetensors").string()},
     "expects 128 tokens"},
    {"expect_missing", {"--expect", "/nowhere.safetensors"}, "/nowhere.safetensors cannot be read"},
    {"output_nowhere",
     {"--output", "/nowhere/out.safetensors"},
     "/nowhere/out.safetensors cannot be written"},
    {"json_nowhere", {"--json", "/nowhere/report.json"}, "/nowhere/report.json cannot be written"},
};
INSTANTIATE_TEST_SUITE_P(Calls, BadCalls, testing::ValuesIn(kBadCalls),
                         [](const auto& info) { return info.param.name; });

TEST(RunCli, TooFewDevicesAreNamed) {
  const Outcome outcome = run_moeyard(arguments_of(kLayers[1], {"--ranks", "4"}), "MOEYARD_DEVICES=2");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.text, HasSubstr("--ranks 4 needs 4 devices, there are 2: set MOEYARD_DEVICES"));
}

TEST(RunCli, UsageEndsWithTwoAndHelpWithZero) {
  EXPECT_EQ(run_moeyard({}).code, 2);
  EXPECT_EQ(run_moeyard({"walk"}).code, 2);
  EXPECT_EQ(run_moeyard({"run"}).code, 2);
  EXPECT_EQ(run_moeyard({"--help"}).code, 0);
  const Outcome help = run_moeyard({"run", "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.text,
              HasSubstr("Exit code: 0 pass, 1 mismatch, 2 bad input or usage, 3 failure at run time."));
}

TEST(RunCli, VersionAndSettingsAreListed) {
  EXPECT_THAT(run_moeyard({"version"}).text, StartsWith("moeyard "));
  EXPECT_EQ(run_moeyard({"--version"}).text, run_moeyard({"version"}).text);
  const Outcome settings = run_moeyard({"env"}, "MOEYARD_DEVICES=5 MOEYARD_SECRET=hush");
  EXPECT_EQ(settings.code, 0);
  EXPECT_THAT(settings.text, testing::ContainsRegex("MOEYARD_DEVICES +5 +environment +16"));
  EXPECT_THAT(settings.text, testing::ContainsRegex("MOEYARD_SOC +host +default +host"));
  EXPECT_THAT(settings.text, testing::Not(HasSubstr("hush")));
  EXPECT_THAT(run_moeyard({"env"}, "MOEYARD_SOC=a3").text, HasSubstr("MOEYARD_SOC=a3 is not one of"));
}

TEST(RunCli, AFailureOfAnOperatorEndsWithThree) {
  // On this product dispatch takes hidden sizes from 1024 on, and these layers have 256.
  const Outcome outcome = run_moeyard(arguments_of(kLayers[0], {"--ranks", "2"}), "MOEYARD_SOC=A3");
  EXPECT_EQ(outcome.code, 3) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("aclnnMoeDistributeDispatchV4 returned 561002"));
  // So does the operator of attention workers, while FFN workers wait for what they would send.
  const Outcome workers = run_moeyard(arguments_of(kLayers[0], {"--afd"}), "MOEYARD_SOC=A3");
  EXPECT_EQ(workers.code, 3) << workers.text;
  EXPECT_THAT(workers.text, HasSubstr("aclnnAttentionToFFN returned 561002"));
}

// Which wants the weights of the slots in dispatch already, and no rows of a shared expert in combine.
TEST(RunCli, EveryLayerRunsOnA2) {
  for (const Layer& layer : kLayers) {
    const Outcome outcome = run_moeyard(arguments_of(layer, {"--ranks", "2"}), "MOEYARD_SOC=A2");
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    EXPECT_THAT(outcome.text, HasSubstr("PASS"));
  }
}

TEST(RunCli, AWindowThatIsTooSmallIsNamed) {
  const Outcome outcome =
      run_moeyard(arguments_of(kLayers[0], {"--afd", "--micro-batch-tokens", "512"}), "HCCL_BUFFSIZE=1");
  EXPECT_EQ(outcome.code, 3) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("HCCL_BUFFSIZE"));
}

// A copy of the qwen3_moe layer that a test damages.
struct Damage {
  const char* name;
  std::function<void(const fs::path&)> apply;
  const char* says;
};

void edit(const fs::path& path, const std::function<void(std::string&)>& change) {
  std::string bytes = contents(path);
  change(bytes);
  std::ofstream(path, std::ios::binary) << bytes;
}

void edit_config(const fs::path& folder, const std::string& key, const json& value) {
  edit(folder / "config.json", [&](std::string& text) {
    json config = json::parse(text);
    config[key] = value;
    text = config.dump();
  });
}

// Replaces text in the header by text of the same length.
void edit_header(const fs::path& folder, const std::string& from, const std::string& to) {
  ASSERT_EQ(from.size(), to.size());
  edit(folder / "model.safetensors", [&](std::string& bytes) {
    const std::size_t at = bytes.find(from);
    ASSERT_NE(at, std::string::npos);
    bytes.replace(at, from.size(), to);
  });
}

const Damage kDamages[] = {
    {"no_config", [](const fs::path& f) { fs::remove(f / "config.json"); }, "config.json cannot be read"},
    {"no_weights", [](const fs::path& f) { fs::remove(f / "model.safetensors"); },
     "has neither model.safetensors"},
    {"config_cut", [](const fs::path& f) { fs::resize_file(f / "config.json", 40); },
     "config.json is not valid JSON"},
    {"unknown_model", [](const fs::path& f) { edit_config(f, "model_type", "llama"); }, "model_type 'llama'"},
    {"other_activation", [](const fs::path& f) { edit_config(f, "hidden_act", "gelu"); },
     "hidden_act 'gelu'"},
    {"quantised", [](const fs::path& f) { edit_config(f, "quantization_config", json::object()); },
     "not supported yet"},
    {"dense_layer",
     [](const fs::path& f) {
       edit_config(f, "mlp_only_layers", {0, 2});
     },
     "layer 2 is dense; MoE layers of this qwen3_moe model: 1"},
    {"layer_beyond", [](const fs::path& f) { edit_config(f, "num_hidden_layers", 2); },
     "layer 2 does not exist (there are 2)"},
    {"more_experts", [](const fs::path& f) { edit_config(f, "num_local_experts", 32); },
     "has shape [24, 256], config.json needs [32, 256]"},
    {"other_size", [](const fs::path& f) { edit_config(f, "moe_intermediate_size", 64); },
     "config.json needs [24, 128, 256]"},
    {"weights_cut", [](const fs::path& f) { fs::resize_file(f / "model.safetensors", 5000); }, "(cut off?)"},
    {"weights_empty", [](const fs::path& f) { fs::resize_file(f / "model.safetensors", 0); },
     "less than the 8"},
    {"header_cut", [](const fs::path& f) { fs::resize_file(f / "model.safetensors", 100); },
     "a header of 344 bytes is announced"},
    {"header_huge",
     [](const fs::path& f) {
       edit(f / "model.safetensors", [](std::string& b) { b.replace(0, 8, 8, '\xff'); });
     },
     "bytes is announced"},
    {"header_broken", [](const fs::path& f) { edit_header(f, "\"dtype\":\"F16\"", "\"dtype\" \"F16\""); },
     "not valid JSON"},
    {"tensor_missing", [](const fs::path& f) { edit_header(f, "experts.down_proj", "experts.dawn_proj"); },
     "experts.down_proj' is missing"},
    {"router_missing", [](const fs::path& f) { edit_header(f, "mlp.gate.weight", "mlp.gait.weight"); },
     "the router of layer 2 is missing"},
    {"wrong_type",
     [](const fs::path& f) {
       edit_header(f, "\"F16\",\"shape\":[24,256,32]", "\"I16\",\"shape\":[24,256,32]");
     },
     "has type I16"},
    {"wrong_shape", [](const fs::path& f) { edit_header(f, "[24,256,32]", "[24,32,256]"); },
     "has shape [24, 32, 256]"},
    {"nan_weight",
     [](const fs::path& f) {
       edit(f / "model.safetensors", [](std::string& b) { b.replace(b.size() - 2, 2, "\xff\x7f"); });
     },
     "mlp.gate.weight' has NaN or infinity at row 23, column 255"},
    {"nan_token",
     [](const fs::path& f) {
       edit(f / "hidden.safetensors", [](std::string& b) { b.replace(b.size() - 2, 2, "\xff\x7f"); });
     },
     "has NaN or infinity in row 109, column 255"},
    {"tokens_cut", [](const fs::path& f) { fs::resize_file(f / "hidden.safetensors", 1000); },
     "hidden.safetensors is not a usable safetensors file"},
    {"input_is_a_folder",
     [](const fs::path& f) {
       fs::remove(f / "hidden.safetensors");
       fs::create_directory(f / "hidden.safetensors");
     },
     "is not a file"},
    {"tokens_too_wide",
     [](const fs::path& f) {
       TensorWriter w;
       w.add_pattern("hidden_states", {4, 128});
       std::ofstream(f / "hidden.safetensors", std::ios::binary) << w.bytes();
     },
     "it must be [tokens, 256] or [batch, tokens, 256]"},
};

class Damaged : public testing::TestWithParam<Damage> {};
INSTANTIATE_TEST_SUITE_P(Files, Damaged, testing::ValuesIn(kDamages),
                         [](const auto& info) { return info.param.name; });

TEST_P(Damaged, EndsWithTwoAndOneSentence) {
  const TemporaryFolder folder;
  for (const char* file : {"config.json", "model.safetensors", "hidden.safetensors"})
    fs::copy_file(data(kLayers[1]) / file, folder.path() / file);
  GetParam().apply(folder.path());
  const Outcome outcome = run_moeyard({"run", "--model", folder.path().string(), "--layer", "2", "--input",
                                       (folder.path() / "hidden.safetensors").string(), "--ranks", "2"});
  EXPECT_EQ(outcome.code, 2) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr(GetParam().says));
  EXPECT_EQ(std::count(outcome.text.begin(), outcome.text.end(), '\n'), 1) << outcome.text;
}

}  // namespace
