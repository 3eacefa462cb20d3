// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <CLI/CLI.hpp>

namespace moeyard::tool {

// Each adds its command; the command leaves the exit code of the program in `code`.
void add_run(CLI::App& app, int& code);
void add_context(CLI::App& app, int& code);
void add_env(CLI::App& app, int& code);
void add_version(CLI::App& app, int& code);

}  // namespace moeyard::tool
