// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/status.h"

namespace moeyard::model {

// How a command ends: its exit code, and the code of a Status in this folder.
enum class Ending : int { pass = 0, mismatch = 1, bad_input = 2, failed = 3 };

// The user gave something that cannot be used; the sentence says what, and what would do.
template <class... Args>
Status bad_input(fmt::format_string<Args...> format, Args&&... args) {
  return Status(static_cast<int>(Ending::bad_input), fmt::format(format, std::forward<Args>(args)...));
}

// Something failed that is not the user's input.
template <class... Args>
Status run_failed(fmt::format_string<Args...> format, Args&&... args) {
  return Status(static_cast<int>(Ending::failed), fmt::format(format, std::forward<Args>(args)...));
}

// Text out of a file, fit for a message: in quotes, control characters as ?, at most 96 characters of it.
std::string in_quotes(std::string_view text);

}  // namespace moeyard::model
