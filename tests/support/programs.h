// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <thread>
#include <vector>

#include "support/program.h"

namespace moeyard::test {

// The same program several times at once, each with an environment of its own: how each ended.
inline std::vector<Outcome> run_together(const std::string& program,
                                         const std::vector<std::vector<std::string>>& arguments,
                                         const std::vector<std::string>& environments) {
  std::vector<Outcome> outcomes(environments.size());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < environments.size(); ++i)
    threads.emplace_back([&, i] {
      outcomes[i] = run_program(program, arguments[i < arguments.size() ? i : 0], environments[i]);
    });
  threads.clear();
  return outcomes;
}

}  // namespace moeyard::test
