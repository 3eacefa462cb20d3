// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fmt/format.h>

#include <string>

namespace moeyard {

// Levels of MOEYARD_LOG; `plan` shows what phase one of each operator decided.
enum class LogLevel : int { debug, plan, info, warning, error, off };

bool log_enabled(LogLevel level);
void set_log_level(LogLevel level);  // instead of what the environment says
void reset_log_level();
void log_line(LogLevel level, const std::string& text);

template <class... Args>
void log_at(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) log_line(level, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::debug, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_plan(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::plan, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::warning, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::error, format, std::forward<Args>(args)...);
}

}  // namespace moeyard
