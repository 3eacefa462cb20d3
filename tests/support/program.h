// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace moeyard::test {

// Programs that a test runs. MOEYARD_CLI is the command line's.

// How a program ended, and what it wrote to both of its outputs.
struct Outcome {
  int code;
  std::string text;
  std::string last_line() const {
    const std::size_t end = text.find_last_not_of('\n');
    const std::size_t begin = text.find_last_of('\n', end);
    return end == std::string::npos ? "" : text.substr(begin + 1, end - begin);
  }
};

// environment: "NAME=value NAME=value".
inline Outcome run_program(const std::string& program, const std::vector<std::string>& arguments,
                           const std::string& environment = "") {
  std::string command = environment + " '" + program + "'";
  for (const std::string& argument : arguments) command.append(" '").append(argument).append("'");
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  Outcome outcome{-1, ""};
  std::array<char, 4096> part;
  while (const std::size_t n = std::fread(part.data(), 1, part.size(), pipe))
    outcome.text.append(part.data(), n);
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  return outcome;
}

inline Outcome run_moeyard(const std::vector<std::string>& arguments, const std::string& environment = "") {
  return run_program(MOEYARD_CLI, arguments, environment);
}

// Arguments of `moeyard run` for a layer of the model in a folder, whose input is in hidden.safetensors there.
inline std::vector<std::string> run_arguments(const std::filesystem::path& model, int layer,
                                              const std::vector<std::string>& more = {}) {
  std::vector<std::string> all = {"run",
                                  "--model",
                                  model.string(),
                                  "--layer",
                                  std::to_string(layer),
                                  "--input",
                                  (model / "hidden.safetensors").string()};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

inline std::string contents(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace moeyard::test
