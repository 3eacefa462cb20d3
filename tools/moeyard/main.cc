// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <exception>

#include "model/errors.h"
#include "moeyard/commands.h"

int main(int argc, char** argv) {
  using moeyard::model::Ending;
  CLI::App app("Runs CANN's mixture-of-experts operators on ordinary machines.", "moeyard");
  app.get_formatter()->column_width(34);
  int code = static_cast<int>(Ending::pass);
  moeyard::tool::add_run(app, code);
  moeyard::tool::add_context(app, code);
  moeyard::tool::add_env(app, code);
  moeyard::tool::add_version(app, code);
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
