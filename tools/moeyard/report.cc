// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// moeyard report: a page about a run, from the file of moeyard run --json.
#include <fmt/format.h>

#include <fstream>
#include <memory>

#include "model/errors.h"
#include "model/json_file.h"
#include "moeyard/command.h"
#include "moeyard/page.h"

namespace moeyard::tool {
namespace {

using model::bad_input;
using model::Ending;
using nlohmann::json;

constexpr std::int64_t kMostRanks = 65536;

// Looks at all that the page reads, as it cannot say what is missing. The first thing that is wrong is kept.
class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}
  const Status& status() const { return status_; }

  const json& member(const json& object, const char* name) {
    static const json none;
    const auto found = object.is_object() ? object.find(name) : object.end();
    if (object.is_object() && found != object.end()) return *found;
    refuse("has no member {}", name);
    return none;
  }
  std::int64_t integer(const json& object, const char* name, std::int64_t least, std::int64_t most) {
    const json& value = member(object, name);
    if (value.is_number_integer() && value.get<std::int64_t>() >= least && value.get<std::int64_t>() <= most)
      return value.get<std::int64_t>();
    refuse("must have an integer in [{}, {}] as {}", least, most, name);
    return least;
  }
  void text(const json& object, const char* name) {
    if (!member(object, name).is_string()) refuse("must have a text as {}", name);
  }
  void number(const json& object, const char* name, bool or_null = false) {
    const json& value = member(object, name);
    if (!value.is_number() && !(or_null && value.is_null())) refuse("must have a number as {}", name);
  }
  void flag(const json& object, const char* name) {
    if (!member(object, name).is_boolean()) refuse("must have true or false as {}", name);
  }
  // A list of numbers of a size; -1: any.
  std::int64_t numbers(const json& list, const char* name, std::int64_t size) {
    if (!list.is_array() || (size >= 0 && std::ssize(list) != size)) {
      refuse("must have a list of {} numbers as {}", size, name);
      return 0;
    }
    for (const json& value : list)
      if (!value.is_number() || value.get<double>() < 0)
        refuse("has something else than numbers from 0 on in {}", name);
    return std::ssize(list);
  }
  void matrix(const json& list, const char* name, std::int64_t rows, std::int64_t columns) {
    if (!list.is_array() || std::ssize(list) != rows) return refuse("must have {} lists as {}", rows, name);
    for (const json& row : list) numbers(row, name, columns);
  }
  template <class... Args>
  void refuse(fmt::format_string<Args...> format, Args&&... args) {
    if (status_.ok())
      status_ = bad_input("{} {}; moeyard run --json writes such files.", path_,
                          fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  std::string path_;
  Status status_;
};

void look_at_setup(Reader& reader, const json& run) {
  const json &model = reader.member(run, "model"), &setup = reader.member(run, "setup");
  for (const char* name : {"directory", "model_type"}) reader.text(model, name);
  for (const char* name : {"layer", "hidden", "intermediate", "experts", "experts_per_token"})
    reader.integer(model, name, 0, INT64_MAX);
  for (const char* name : {"placement", "dtype"}) reader.text(setup, name);
  reader.integer(setup, "tokens", 0, INT64_MAX);
}

// How many ranks have experts, and which is the first; and how many have tokens.
struct Workers {
  std::int64_t ranks, first_expert_rank, expert_ranks, token_ranks;
};

Workers workers_of(Reader& reader, const json& run) {
  const json& setup = reader.member(run, "setup");
  const std::int64_t ranks = reader.integer(setup, "ranks", 1, kMostRanks);
  if (!setup.is_object() || !setup.contains("afd")) return {ranks, 0, ranks, ranks};
  const json& afd = setup["afd"];
  const std::int64_t attention = reader.integer(afd, "attention_workers", 1, ranks);
  const std::int64_t ffn = reader.integer(afd, "ffn_workers", 1, ranks);
  if (attention + ffn != ranks) reader.refuse("has other numbers of workers than of ranks");
  return {ranks, attention, ffn, attention};
}

void look_at_load(Reader& reader, const json& run, const Workers& workers) {
  const json& load = reader.member(run, "load");
  for (const char* name : {"tokens_of_rank", "rows_of_rank"})
    reader.numbers(reader.member(load, name), name, workers.ranks);
  const std::int64_t instances =
      reader.numbers(reader.member(load, "expert_of_instance"), "expert_of_instance", -1);
  reader.numbers(reader.member(load, "rows_of_instance"), "rows_of_instance", instances);
  if (instances < 1 || instances % workers.expert_ranks != 0)
    reader.refuse("has {} instances, which do not lie evenly on {} ranks", instances, workers.expert_ranks);
  if (load.is_object() && load.contains("rows_from_rank_to_instance"))
    reader.matrix(load["rows_from_rank_to_instance"], "rows_from_rank_to_instance", workers.token_ranks,
                  instances);
  reader.matrix(reader.member(run, "bytes_from_rank_to_rank"), "bytes_from_rank_to_rank", workers.ranks,
                workers.ranks);
}

void look_at_times(Reader& reader, const json& run, const Workers& workers) {
  reader.number(run, "layer_ms");
  const std::int64_t passes = reader.numbers(reader.member(run, "layer_ms_of_pass"), "layer_ms_of_pass", -1);
  if (passes < 1) reader.refuse("has no pass");
  const json& phases = reader.member(run, "phases");
  if (!phases.is_array() || phases.size() > 64) return reader.refuse("must have a list of phases");
  for (const json& phase : phases) {
    reader.text(phase, "name");
    for (const char* name : {"ms", "bytes", "gb_per_s"}) reader.number(phase, name);
    reader.matrix(reader.member(phase, "ms_of_pass_and_rank"), "ms_of_pass_and_rank", passes, workers.ranks);
  }
}

void look_at_checks(Reader& reader, const json& run) {
  const json &checks = reader.member(run, "checks"), &warnings = reader.member(run, "warnings");
  if (!checks.is_array() || !warnings.is_array())
    return reader.refuse("must have lists of checks and warnings");
  for (const json& warning : warnings)
    if (!warning.is_string()) reader.refuse("must have texts as warnings");
  for (const json& check : checks) {
    reader.text(check, "against");
    reader.flag(check, "passed");
    for (const char* name : {"tokens", "values_beyond_limit"}) reader.number(check, name);
    reader.number(check, "largest_error", /*or_null*/ true);
    for (const char* name : {"token", "column"}) reader.number(reader.member(check, "worst"), name);
  }
}

Status check_run(const std::string& path, const json& run) {
  Reader reader(path);
  if (run.value("schema", json()) != 1) reader.refuse("must have the schema 1");
  reader.text(run, "moeyard");
  reader.text(run, "verdict");
  look_at_setup(reader, run);
  const Workers workers = workers_of(reader, run);
  if (!reader.status().ok()) return reader.status();
  look_at_load(reader, run, workers);
  look_at_times(reader, run, workers);
  look_at_checks(reader, run);
  return reader.status();
}

Status write_report(const std::string& input, const std::string& output) {
  const json run = MOEYARD_TRY(model::read_json_object(input));
  MOEYARD_TRY(check_run(input, run));
  const std::string title =
      fmt::format("{}, layer {}: moeyard run", run["model"]["model_type"].get<std::string>(),
                  run["model"]["layer"].get<std::int64_t>());
  std::ofstream out(output);
  out << make_page(title, run.dump(-1, ' ', /*ascii*/ true, json::error_handler_t::replace));
  out.close();
  if (!out) return bad_input("{} cannot be written.", output);
  return {};
}

}  // namespace

Command report_command() {
  struct Options {
    std::string input, output;
  };
  auto options = std::make_shared<Options>();
  Command command{"report", "Make a page about a run: loads, bytes, times, checks",
                  "The page is one file that needs no network.\n"
                  "Exit code: 0 written, 2 bad input or usage."};
  command.option("run", options->input, "File of moeyard run --json").type("FILE").required();
  command.option("-o,--output", options->output, "HTML file to write").type("FILE").required();
  command.run = [options] {
    const Status status = write_report(options->input, options->output);
    if (status.ok()) return static_cast<int>(Ending::pass);
    fmt::print(stderr, "moeyard report: {}\n", status.message());
    return status.code();
  };
  return command;
}

}  // namespace moeyard::tool
