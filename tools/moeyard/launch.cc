// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// moeyard launch: a program as several ranks.
#include <fmt/format.h>

#include <memory>

#include "model/errors.h"
#include "moeyard/command.h"
#include "moeyard/launcher.h"

namespace moeyard::tool {
namespace {

struct LaunchOptions {
  int ranks = 1;
  double grace = 5;
  std::vector<std::string> command;
};

int launch(const LaunchOptions& options) {
  if (options.command.empty()) {
    fmt::print(stderr, "moeyard launch: name a program to run: moeyard launch -n 4 PROGRAM ARGUMENT ...\n");
    return static_cast<int>(model::Ending::bad_input);
  }
  const auto code = run_launch({options.ranks, options.command,
                                std::chrono::milliseconds(static_cast<std::int64_t>(options.grace * 1000))});
  if (code) return *code;
  fmt::print(stderr, "moeyard launch: {}\n", code.error().message());
  return code.error().code();
}

}  // namespace

Command launch_command() {
  auto options = std::make_shared<LaunchOptions>();
  Command command{
      "launch", "Run a program as several ranks of this host: moeyard launch -n 4 PROGRAM ARGUMENT ...",
      "Each process has RANK_ID, RANK_SIZE and RANK_TABLE_FILE as programs for CANN read them, RANK,\n"
      "WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE as torchrun sets them. Exit code: that of the first\n"
      "rank that failed, 128 + n if signal n has ended it."};
  command.option("-n,--ranks", options->ranks, "Processes to start").between(1, 1024);
  command.option("--grace", options->grace,
                 "Seconds that the others have to end by themselves after the first failure");
  command.rest = &options->command;
  command.run = [options] { return launch(*options); };
  return command;
}

}  // namespace moeyard::tool
