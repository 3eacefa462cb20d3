// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// moeyard replay: runs the calls that MOEYARD_DUMP recorded once more, or compares two recordings.
#include "calls/replay.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "model/errors.h"
#include "moeyard/command.h"
#include "moeyard/terminal.h"

namespace moeyard::tool {
namespace {

using calls::Comparison;
using calls::Difference;
using calls::OutputDifference;
using calls::Recorded;
using model::Ending;
using Json = nlohmann::ordered_json;

struct Options {
  std::string folder, other;
  std::int64_t ulps = 0;
  bool json = false, all = false;
};

struct Counts {
  int equal = 0, different = 0, skipped = 0;
};

bool is_good(const Comparison& one, const Options& options) {
  return one.same_code() && std::ranges::all_of(one.outputs, [&](const OutputDifference& output) {
           return output.difference.within(static_cast<std::uint64_t>(options.ulps));
         });
}

std::string histogram_text(const Difference& difference) {
  std::string text;
  for (std::size_t bin = 0; bin < Difference::kBins; ++bin)
    if (difference.ulps[bin] > 0)
      text +=
          fmt::format("{}{}: {}", text.empty() ? "" : "  ", calls::name_of_bin(bin), difference.ulps[bin]);
  if (difference.no_number > 0) text += fmt::format("  no number on one side: {}", difference.no_number);
  return text;
}

void print_output(const OutputDifference& output) {
  const Difference& d = output.difference;
  const std::int64_t compared = d.elements - d.unwritten;
  fmt::print("    {} {}: {} of {} differ{}", output.name, calls::text_of(output.tensor), d.different,
             compared,
             d.unwritten > 0 ? fmt::format(", {} are not written by the operator", d.unwritten) : "");
  if (d.different == 0) return fmt::print("\n");
  fmt::print("; largest error {:.3g}, relative {:.3g}, mean {:.3g}\n", d.largest_error, d.largest_relative,
             d.sum_of_errors / static_cast<double>(std::max<std::int64_t>(1, compared)));
  fmt::print("      first at {}: {:.9g} instead of {:.9g}\n", calls::index_text(d.first, output.tensor.shape),
             d.first_got, d.first_want);
  fmt::print("      units in the last place  {}\n", histogram_text(d));
}

void print(const Comparison& one, bool good, const Options& options) {
  const std::string name = one.call->call.folder.filename().string();
  const auto head = [&](const char* word) {
    fmt::print("  {:<7} device {} {}\n", word, one.call->outcome.device, name);
  };
  if (!one.skipped.empty()) {
    head("skipped");
    return fmt::print("    {}\n", one.skipped);
  }
  if (good && !options.all) return;
  head(good ? "same" : "differs");
  if (!one.same_code())
    return fmt::print("    code {} instead of {}{}{}\n", one.code, *one.call->outcome.code,
                      one.message.empty() ? "" : ": ", one.message.substr(0, one.message.find('\n')));
  for (const OutputDifference& output : one.outputs)
    if (options.all || output.difference.different > 0) print_output(output);
}

// JSON has no infinity.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json json_of(const OutputDifference& output) {
  const Difference& d = output.difference;
  Json histogram = Json::object();
  for (std::size_t bin = 0; bin < Difference::kBins; ++bin)
    if (d.ulps[bin] > 0) histogram[calls::name_of_bin(bin)] = d.ulps[bin];
  Json made = {{"name", output.name},
               {"tensor", calls::text_of(output.tensor)},
               {"elements", d.elements},
               {"unwritten", d.unwritten},
               {"different", d.different},
               {"no_number", d.no_number},
               {"largest_error", number(d.largest_error)},
               {"largest_relative", number(d.largest_relative)},
               {"sum_of_errors", number(d.sum_of_errors)},
               {"ulps", histogram}};
  if (d.first >= 0)
    made["first"] = {{"index", calls::index_text(d.first, output.tensor.shape)},
                     {"got", number(d.first_got)},
                     {"want", number(d.first_want)}};
  return made;
}

Json json_of(const Comparison& one, bool good) {
  Json outputs = Json::array();
  for (const OutputDifference& output : one.outputs) outputs.push_back(json_of(output));
  Json made = {{"call", one.call->call.folder.filename().string()},
               {"device", one.call->outcome.device},
               {"verdict", !one.skipped.empty() ? "skipped"
                           : good               ? "same"
                                                : "differs"},
               {"outputs", outputs}};
  if (!one.skipped.empty()) made["reason"] = one.skipped;
  if (one.skipped.empty()) made["code"] = one.code, made["recorded_code"] = *one.call->outcome.code;
  if (!one.message.empty()) made["message"] = one.message;
  return made;
}

class Summary {
 public:
  explicit Summary(const Options& options) : options_(options) {}

  void add(const Comparison& one) {
    const bool good = is_good(one, options_);
    ++(!one.skipped.empty() ? counts_.skipped : good ? counts_.equal : counts_.different);
    if (options_.json)
      list_.push_back(json_of(one, good));
    else
      print(one, good, options_);
  }
  int finish() const {
    const bool passed = counts_.different == 0 && counts_.equal > 0;
    if (options_.json)
      fmt::print("{}\n", Json{{"schema", 1}, {"passes", passed}, {"calls", list_}}.dump(
                             1, ' ', false, Json::error_handler_t::replace));
    else
      fmt::print("{} {} calls the same, {} differ, {} skipped\n", passed ? "PASS" : "FAIL", counts_.equal,
                 counts_.different, counts_.skipped);
    return static_cast<int>(passed ? Ending::pass : Ending::mismatch);
  }

 private:
  const Options& options_;
  Counts counts_;
  Json list_ = Json::array();
};

Result<int> compare_dumps(const Options& options) {
  const auto mine = MOEYARD_TRY(calls::read_dump(options.folder));
  const auto theirs = MOEYARD_TRY(calls::read_dump(options.other));
  std::map<std::pair<std::int64_t, std::int64_t>, const Recorded*> by_number;
  for (const Recorded& one : theirs) by_number[{one.outcome.device, one.outcome.number}] = &one;
  Summary summary(options);
  for (const Recorded& one : mine) {
    const auto found = by_number.find({one.outcome.device, one.outcome.number});
    summary.add(
        MOEYARD_TRY(calls::compare_recorded(one, found == by_number.end() ? nullptr : found->second)));
  }
  return summary.finish();
}

Result<int> replay(const Options& options) {
  setenv("MOEYARD_DEVICES", "1024", 0);
  unsetenv("MOEYARD_DUMP");  // replaying is not to be recorded
  const auto recorded = MOEYARD_TRY(calls::read_dump(options.folder));
  const model::Progress progress = progress_line();
  const auto sets = calls::sets_of(recorded);
  Summary summary(options);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    progress("calls", static_cast<std::int64_t>(i), static_cast<std::int64_t>(sets.size()));
    for (const Comparison& one : MOEYARD_TRY(calls::replay(recorded, sets[i]))) {
      clear_progress_line();
      summary.add(one);
    }
  }
  clear_progress_line();
  return summary.finish();
}

}  // namespace

Command replay_command() {
  auto options = std::make_shared<Options>();
  Command command{"replay", "Run recorded calls again and compare their outputs, or compare two recordings",
                  "MOEYARD_DUMP=DIR records the calls of a program; docs/dump.md describes the files.\n"
                  "Exit code: 0 all the same, 1 something differs, 2 bad input, 3 failure at run time."};
  command.option("folder", options->folder, "Folder that MOEYARD_DUMP named").type("DIR").required();
  command.option("--compare", options->other, "Another one: compare its outputs, run nothing").type("DIR");
  command.option("--ulps", options->ulps, "Units in the last place that outputs may differ by")
      .between(0, 1e15);
  command.option("--all", options->all, "Tell of calls that are the same, too");
  command.option("--json", options->json, "As JSON, for machines");
  command.run = [options] {
    const auto code = options->other.empty() ? replay(*options) : compare_dumps(*options);
    if (code) return *code;
    fmt::print(stderr, "moeyard replay: {}\n", code.error().message());
    return code.error().code();
  };
  return command;
}

}  // namespace moeyard::tool
