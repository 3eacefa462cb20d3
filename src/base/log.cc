// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace moeyard {
namespace {

bool is_set(const char* value) { return value != nullptr && *value != '\0'; }

// Reads the environment itself: settings() reports unreadable values through this log.
LogLevel configured_level() {
  if (const char* own = std::getenv("MOEYARD_LOG"); is_set(own)) {
    constexpr std::string_view names[] = {"debug", "plan", "info", "warning", "error", "off"};
    for (int i = 0; i < static_cast<int>(std::size(names)); ++i)
      if (names[i] == own) return static_cast<LogLevel>(i);
    log_line(LogLevel::error,
             fmt::format(
                 "MOEYARD_LOG={} is not one of debug, plan, info, warning, error, off; it is not used", own));
  }
  if (const char* ascend = std::getenv("ASCEND_GLOBAL_LOG_LEVEL"); is_set(ascend)) {
    constexpr LogLevel levels[] = {LogLevel::debug, LogLevel::info, LogLevel::warning, LogLevel::error,
                                   LogLevel::off};
    const int number = std::atoi(ascend);
    if (0 <= number && number <= 4) return levels[number];
  }
  return LogLevel::error;
}

std::atomic<LogLevel>& level() {
  static std::atomic<LogLevel> now = configured_level();
  return now;
}

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> made = [] {
    const char* to_stdout = std::getenv("ASCEND_SLOG_PRINT_TO_STDOUT");
    std::shared_ptr<spdlog::sinks::sink> sink;
    if (is_set(to_stdout) && std::string_view(to_stdout) == "1")
      sink = std::make_shared<spdlog::sinks::stdout_sink_mt>();
    else
      sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    auto logger = std::make_shared<spdlog::logger>("moeyard", sink);
    logger->set_level(spdlog::level::trace);
    logger->set_pattern("[%H:%M:%S.%e] [moeyard] [%t] %v");
    return logger;
  }();
  return *made;
}

}  // namespace

bool log_enabled(LogLevel wanted) { return wanted >= level().load(std::memory_order_relaxed); }
void set_log_level(LogLevel wanted) { level() = wanted; }
void reset_log_level() { level() = configured_level(); }

void log_line(LogLevel at, const std::string& text) {
  constexpr const char* names[] = {"debug", "plan", "info", "warning", "error", "off"};
  logger().info("{}: {}", names[static_cast<int>(at)], text);
}

}  // namespace moeyard
