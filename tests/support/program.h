// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

namespace moeyard::test {

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

}  // namespace moeyard::test
