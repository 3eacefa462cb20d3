// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace moeyard::tool {

// What an option of the command line is: described here, as the library that reads command lines takes long to compile,
// and only main.cc includes it.
struct Option {
  using Target = std::variant<bool*, int*, std::int64_t*, double*, std::string*, std::vector<std::string>*>;

  std::string name;  // "--layer", "-o,--output"; without dashes: an argument, by place
  Target target;     // holds the default; a bool is a flag
  std::string help;
  std::string type_name = {};  // FILE, DIR, NAME; empty: what the target is
  bool is_required = false;
  std::vector<std::string> choices = {};
  double least = 0, most = 0;                           // of a number; both 0: any
  std::vector<std::string> needed = {}, excluded = {};  // names of other options
  bool is_hidden = false;                               // not in the help
  bool* given = nullptr;                                // becomes true if the option is there

  Option& type(std::string_view shown) { return type_name = shown, *this; }
  Option& required() { return is_required = true, *this; }
  Option& one_of(std::vector<std::string> values) { return choices = std::move(values), *this; }
  Option& between(double low, double high) { return least = low, most = high, *this; }
  Option& needs(std::string_view other) { return needed.emplace_back(other), *this; }
  Option& tells(bool& whether_given) { return given = &whether_given, *this; }
  Option& hide() { return is_hidden = true, *this; }
  Option& excludes(std::string_view other) { return excluded.emplace_back(other), *this; }
};

struct Command {
  std::string name;
  std::string summary;
  std::string footer = {};
  std::vector<Option> options = {};
  std::vector<std::string>* rest = nullptr;  // takes the line from the first argument that is no option on
  std::function<int()> run = {};             // returns the exit code

  // Chained: command.option("--ranks", options->ranks, "Ranks").between(1, 768)
  template <class T>
  Option& option(std::string_view option_name, T& target, std::string_view help) {
    return options.emplace_back(Option{std::string(option_name), &target, std::string(help)});
  }
};

// One per file; main.cc lists them.
Command run_command();
Command ops_command();
Command explain_command();
Command check_command();
Command balance_command();
Command plan_command();
Command bench_command();
Command doctor_command();
Command report_command();
Command replay_command();
Command context_command();
Command launch_command();
Command env_command();
Command version_command();

}  // namespace moeyard::tool
