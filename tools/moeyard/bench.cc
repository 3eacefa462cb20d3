// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// moeyard bench: runs the benchmark programs and shows their figures in one table, each beside its limit.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "model/errors.h"
#include "model/json_file.h"
#include "moeyard/command.h"
#include "moeyard/terminal.h"

namespace moeyard::tool {
namespace {

using model::bad_input;
using model::Ending;
using nlohmann::json;
namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> names;
  std::string programs;
  bool quick = false, json = false;
};

// What is aimed at, by the beginning of a figure's name: a ratio to the limit or, for times, the most microseconds.
struct Aim {
  std::string_view figure;
  double value;
};
constexpr Aim kRatios[] = {{"dispatch/against_the_limit", 0.8},
                           {"combine/against_the_limit", 0.85},
                           {"dispatch_against_mpi", 5},
                           {"processes_against_mpi", 4},
                           {"against_threads", 0.8},
                           {"permute/against_the_limit", 0.8},
                           {"unpermute/against_the_limit", 0.8},
                           {"grouped_matmul/fp32", 0.8}};
constexpr Aim kTimes[] = {{"two_phases", 2}};

// One line of the table.
struct Figure {
  std::string program, name;
  std::string ours, limit;  // with their units
  std::optional<double> ratio, aim;
  std::string error;
  bool missed() const { return !error.empty() || (ratio && aim && *ratio < *aim); }
};

std::optional<double> aim_of(std::span<const Aim> aims, std::string_view name) {
  for (const Aim& aim : aims)
    if (name.starts_with(aim.figure)) return aim.value;
  return std::nullopt;
}

double number(const json& run, const std::string& name) {
  const auto found = run.find(name);
  return found != run.end() && found->is_number() ? found->get<double>() : 0;
}

double in_microseconds(const json& run) {
  const std::string unit = run.value("time_unit", "ns");
  return number(run, "real_time") * (unit == "s" ? 1e6 : unit == "ms" ? 1e3 : unit == "us" ? 1 : 1e-3);
}

std::string time_text(double us) {
  return us < 1000  ? fmt::format("{:.3g} us", us)
         : us < 1e6 ? fmt::format("{:.4g} ms", us * 1e-3)
                    : fmt::format("{:.4g} s", us * 1e-6);
}

// A benchmark that raced against something has counters for both, one that did not has a roof beside it in its program.
Figure figure_of(const std::string& program, const json& run, const json& all) {
  Figure figure{program, run.value("name", "?"), {}, {}, {}, {}, {}};
  if (const std::size_t settings = figure.name.find("/manual_time"); settings != std::string::npos)
    figure.name.erase(settings);
  if (const std::size_t settings = figure.name.find("/real_time"); settings != std::string::npos)
    figure.name.erase(settings);
  if (run.value("error_occurred", false)) {
    figure.error = run.value("error_message", "failed");
    return figure;
  }
  for (const char* rival : {"rival_", "limit_"})
    for (const auto& [name, value] : run.items()) {
      if (!name.starts_with(rival)) continue;
      const std::string unit = name.substr(6);
      figure.ours = fmt::format("{:.3g} {}", number(run, unit), unit);
      figure.limit = fmt::format("{:.3g} {}", number(run, name), unit);
      figure.ratio = number(run, rival[0] == 'r' ? "of_rival" : "of_limit");
      figure.aim = aim_of(kRatios, figure.name);
      return figure;
    }
  if (const double us = number(run, "us_per_token"); us > 0) {  // latency where a rank has one token
    figure.ours = figure.name.starts_with("1_token") ? time_text(number(run, "us_latency"))
                                                     : fmt::format("{:.3g} us of a core per token", us);
    return figure;
  }
  if (const double rate = number(run, "bytes_per_second"); rate > 0) {
    figure.ours = fmt::format("{:.3g} GB/s", rate * 1e-9);
    // The first benchmark of a kernel's program is its roof: memcpy, or reading.
    const json& roof = all.front();
    if (roof.value("name", "") == run.value("name", "") ||
        roof.value("name", "").find('/') != std::string::npos)
      return figure;
    figure.limit = fmt::format("{:.3g} GB/s", number(roof, "bytes_per_second") * 1e-9);
    if (number(roof, "bytes_per_second") > 0) figure.ratio = rate / number(roof, "bytes_per_second");
    return figure;
  }
  const double us = in_microseconds(run);
  figure.ours = time_text(us);
  if (const auto most = aim_of(kTimes, figure.name)) {
    figure.limit = time_text(*most);
    if (us > 0) figure.ratio = *most / us;
    figure.aim = 1;
  }
  return figure;
}

// Removed with its content.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "moeyard_bench_XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// What it prints goes to standard error, as standard output is for the table.
Status run_program(const fs::path& program, const fs::path& output, bool quick) {
  std::vector<std::string> words = {program.string(), "--benchmark_out=" + output.string(),
                                    "--benchmark_out_format=json"};
  if (quick) words.push_back("--benchmark_min_time=0.05");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return model::run_failed("{} cannot be started.", program.string());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return model::run_failed("{} did not end well; start it by itself to see why.", program.string());
  return {};
}

Result<std::vector<Figure>> figures_of(const fs::path& program, const fs::path& output) {
  const json report = MOEYARD_TRY(model::read_json_object(output));
  const auto runs = report.find("benchmarks");
  if (runs == report.end() || !runs->is_array())
    return model::run_failed("{} wrote no benchmarks.", program.string());
  std::vector<Figure> figures;
  for (const json& run : *runs)
    if (run.is_object()) figures.push_back(figure_of(program.filename().string(), run, *runs));
  return figures;
}

Result<std::vector<fs::path>> find_programs(const Options& options) {
  std::error_code error;
  const fs::path folder = options.programs.empty() ? fs::read_symlink("/proc/self/exe", error).parent_path()
                                                   : fs::path(options.programs);
  std::vector<fs::path> programs;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with("_bench") || ::access(entry.path().c_str(), X_OK) != 0) continue;
    if (options.names.empty() || std::ranges::any_of(options.names, [&](const std::string& word) {
          return name.find(word) != std::string::npos;
        }))
      programs.push_back(entry.path());
  }
  if (programs.empty())
    return bad_input(
        "{} has no benchmark program{}: scripts/build --no-install makes them, --programs names their "
        "folder.",
        folder.string(), options.names.empty() ? "" : " of this name");
  std::ranges::sort(programs);
  return programs;
}

void print_table(const std::vector<Figure>& figures) {
  const Style style = style_of_output();
  std::size_t width = 6;
  for (const Figure& figure : figures) width = std::max(width, figure.name.size() + 2);
  fmt::print("{:<{}} {:>14} {:>14} {:>8} {:>8}\n", "figure", width, "here", "limit", "reached", "aim");
  std::string program;
  for (const Figure& figure : figures) {
    if (figure.program != program) fmt::print("{}\n", program = figure.program);
    std::string line = fmt::format("  {:<{}} ", figure.name, width - 2);
    line += figure.error.empty() ? fmt::format("{:>14} {:>14} {:>8} {:>8}", figure.ours,
                                               figure.limit.empty() ? "-" : figure.limit,
                                               figure.ratio ? fmt::format("{:.2f}", *figure.ratio) : "-",
                                               figure.aim ? fmt::format("{:.2f}", *figure.aim) : "-")
                                 : figure.error;
    fmt::print("{}\n", figure.missed() ? in_red(style, line) : line);
  }
  fmt::print(
      "\nreached: the limit's or rival's time over ours, measured in the same run; 1 is the limit "
      "(docs/performance.md)\n");
}

void print_json(const std::vector<Figure>& figures) {
  auto list = nlohmann::ordered_json::array();
  const auto or_null = [](const std::optional<double>& value) {
    return value ? nlohmann::ordered_json(*value) : nullptr;
  };
  for (const Figure& figure : figures)
    list.push_back({{"program", figure.program},
                    {"figure", figure.name},
                    {"here", figure.ours},
                    {"limit", figure.limit},
                    {"reached", or_null(figure.ratio)},
                    {"aim", or_null(figure.aim)},
                    {"error", figure.error}});
  fmt::print("{}\n", nlohmann::ordered_json{{"schema", 1}, {"figures", list}}.dump(1));
}

Status run_all(const Options& options) {
  const Folder folder;
  if (folder.path().empty()) return model::run_failed("no temporary folder can be made.");
  std::vector<Figure> figures;
  for (const fs::path& program : MOEYARD_TRY(find_programs(options))) {
    const fs::path output = folder.path() / (program.filename().string() + ".json");
    MOEYARD_TRY(run_program(program, output, options.quick));
    const auto more = MOEYARD_TRY(figures_of(program, output));
    figures.insert(figures.end(), more.begin(), more.end());
  }
  options.json ? print_json(figures) : print_table(figures);
  return {};
}

}  // namespace

Command bench_command() {
  auto options = std::make_shared<Options>();
  Command command{"bench", "Measure, and show each figure beside its limit",
                  "Close other programs first: the figures are of the whole machine.\n"
                  "Exit code: 0 measured, 2 bad input or usage, 3 a program failed."};
  command.option("names", options->names, "Only programs with one of these words in their name");
  command
      .option("--programs", options->programs,
              "Folder of the benchmark programs; default: that of this program")
      .type("DIR");
  command.option("--quick", options->quick, "A first impression: short measurements");
  command.option("--json", options->json, "As JSON, for machines");
  command.run = [options] {
    const Status status = run_all(*options);
    if (status.ok()) return static_cast<int>(Ending::pass);
    fmt::print(stderr, "moeyard bench: {}\n", status.message());
    return status.code();
  };
  return command;
}

}  // namespace moeyard::tool
