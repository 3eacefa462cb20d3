// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "model/errors.h"
#include "moeyard/command.h"

namespace moeyard::tool {
namespace {

constexpr Command (*kCommands[])() = {run_command,    launch_command,  ops_command,    explain_command,
                                      check_command,  balance_command, plan_command,   bench_command,
                                      doctor_command, report_command,  replay_command, context_command,
                                      env_command,    version_command};

CLI::Option* add_option(CLI::App& app, const Option& option) {
  CLI::Option* added = std::visit(
      [&]<class T>(T* target) {
        if constexpr (std::is_same_v<T, bool>) return app.add_flag(option.name, *target, option.help);
        CLI::Option* made = app.add_option(option.name, *target, option.help);
        if constexpr (std::is_arithmetic_v<T>)
          if (option.least != 0 || option.most != 0)
            made->check(CLI::Range(static_cast<T>(option.least), static_cast<T>(option.most)));
        return made;
      },
      option.target);
  const auto* text = std::get_if<std::string*>(&option.target);
  const bool has_default = text != nullptr ? !(*text)->empty() : option.target.index() != 0;
  if (has_default && !option.is_required) added->capture_default_str();
  if (!option.type_name.empty()) added->type_name(option.type_name);
  if (!option.choices.empty()) added->check(CLI::IsMember(option.choices));
  if (option.is_hidden) added->group("");
  if (option.given != nullptr) added->each([given = option.given](const std::string&) { *given = true; });
  return added->required(option.is_required);
}

void add_command(CLI::App& app, const Command& command, int& code) {
  CLI::App* added = app.add_subcommand(command.name, command.summary);
  if (!command.footer.empty()) added->footer(command.footer);
  for (const Option& option : command.options) add_option(*added, option);
  for (const Option& option : command.options) {
    CLI::Option* here = added->get_option(option.name.substr(option.name.find(',') + 1));
    for (const std::string& other : option.needed) here->needs(added->get_option(other));
    for (const std::string& other : option.excluded) here->excludes(added->get_option(other));
  }
  if (command.rest != nullptr) added->prefix_command();
  added->callback([run = command.run, rest = command.rest, added, &code] {
    if (rest != nullptr) *rest = added->remaining();
    code = run();
  });
}

int run_program(int argc, char** argv) {
  using model::Ending;
  CLI::App app("Runs CANN's mixture-of-experts operators on ordinary machines.", "moeyard");
  app.get_formatter()->column_width(34);
  app.set_version_flag("--version", "moeyard " MOEYARD_VERSION, "Print the version");
  app.require_subcommand(0, 1);  // else `moeyard ops balance` would be two commands
  int code = static_cast<int>(Ending::pass);
  for (const auto make : kCommands) add_command(app, make(), code);
  try {
    app.parse(argc, argv);
    if (!app.get_subcommands().empty()) return code;
    std::fputs(app.help().c_str(), stderr);
    return static_cast<int>(Ending::bad_input);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(Ending::bad_input);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "moeyard: %s\n", error.what());
    return static_cast<int>(Ending::failed);
  }
}

}  // namespace
}  // namespace moeyard::tool

int main(int argc, char** argv) { return moeyard::tool::run_program(argc, argv); }
