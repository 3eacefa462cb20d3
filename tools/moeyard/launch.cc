// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// moeyard launch: a program as several ranks.
#include <fmt/format.h>

#include <iterator>
#include <memory>
#include <sstream>

#include "model/errors.h"
#include "moeyard/agent.h"
#include "moeyard/command.h"
#include "moeyard/launcher.h"

namespace moeyard::tool {
namespace {

struct LaunchOptions {
  int ranks = 1;
  bool ranks_given = false, agent = false;
  double grace = 5;
  std::string hosts, addresses, remote_program, variables, ssh = "ssh -o BatchMode=yes";
  std::vector<std::string> command;
};

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

Result<int> launch(const LaunchOptions& options) {
  if (options.command.empty())
    return model::bad_input("name a program to run: moeyard launch -n 4 PROGRAM ARGUMENT ...");
  Launch launch{options.ranks, options.command,
                std::chrono::milliseconds(static_cast<std::int64_t>(options.grace * 1000))};
  if (options.hosts.empty() && options.ranks > kMostSlots)
    return model::bad_input("-n {} is more than the {} ranks that a host can have.", options.ranks,
                            kMostSlots);
  if (options.hosts.empty()) return run_launch(launch);
  launch.hosts =
      MOEYARD_TRY(read_hosts(options.hosts, options.ranks_given ? options.ranks : 0, options.addresses));
  launch.ssh = words(options.ssh);
  if (launch.ssh.empty()) return model::bad_input("--ssh is empty; it is the command that reaches a host.");
  launch.remote_program = options.remote_program;
  launch.variables = split_list(options.variables);
  return run_launch_on_hosts(launch);
}

int run(const LaunchOptions& options) {
  if (options.agent) return run_agent();
  const auto code = launch(options);
  if (code) return *code;
  fmt::print(stderr, "moeyard launch: {}\n", code.error().message());
  return code.error().code();
}

}  // namespace

Command launch_command() {
  auto options = std::make_shared<LaunchOptions>();
  Command command{
      "launch", "Run a program as several ranks: moeyard launch -n 4 PROGRAM ARGUMENT ...",
      "Each process has RANK_ID, RANK_SIZE and RANK_TABLE_FILE as programs for CANN read them, RANK,\n"
      "WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE as torchrun sets them. Exit code: that of the first\n"
      "rank that failed, 128 + n if signal n has ended it."};
  command.option("-n,--ranks", options->ranks, "Processes to start")
      .between(1, 1 << 16)
      .tells(options->ranks_given);
  command.option("--hosts", options->hosts, "Where to start them, with how many each")
      .type("A,B:RANKS,...")
      .excludes("--agent");
  command.option("--addresses", options->addresses, "Where ranks of these hosts find each other")
      .type("IP,IP,...")
      .needs("--hosts");
  command.option("--ssh", options->ssh, "Runs a command on a host").type("COMMAND").needs("--hosts");
  command
      .option("--remote-program", options->remote_program, "This program on other hosts, if elsewhere there")
      .type("FILE")
      .needs("--hosts");
  command.option("--env", options->variables, "Variables that ranks on hosts get as well")
      .type("NAME,NAME,...")
      .needs("--hosts");
  command.option("--agent", options->agent, "").hide();
  command.option("--grace", options->grace,
                 "Seconds that the others have to end by themselves after the first failure");
  command.rest = &options->command;
  command.run = [options] { return run(*options); };
  return command;
}

}  // namespace moeyard::tool
