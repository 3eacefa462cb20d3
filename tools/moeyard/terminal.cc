// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "moeyard/terminal.h"

#include <fmt/format.h>
#include <langinfo.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <memory>

namespace moeyard::tool {
namespace {

constexpr const char* kLeftEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
constexpr const char* kLowerEighths[] = {"·", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

bool locale_is_utf8() {
  std::setlocale(LC_CTYPE, "");
  return std::string_view(nl_langinfo(CODESET)) == "UTF-8";
}

std::string in_color(Style style, int color, std::string_view text) {
  return style.colors ? fmt::format("\033[1;{}m{}\033[0m", color, text) : std::string(text);
}

}  // namespace

Style style_of_output() {
  const char* no_color = std::getenv("NO_COLOR");
  const bool rich = ::isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0');
  return {rich && locale_is_utf8(), rich};
}

std::string in_green(Style style, std::string_view text) { return in_color(style, 32, text); }
std::string in_red(Style style, std::string_view text) { return in_color(style, 31, text); }

std::string bar(Style style, double value, double most, int width) {
  const double length = most > 0 ? value / most * width : 0;
  std::string text;
  int columns = 0;
  if (style.blocks) {
    const int eighths = static_cast<int>(std::lround(length * 8));
    columns = (eighths + 7) / 8;
    for (int i = 0; i < eighths / 8; ++i) text += kLeftEighths[8];
    text += kLeftEighths[eighths % 8];
  } else {
    columns = static_cast<int>(std::lround(length));
    text.append(columns, '#');
  }
  return text.append(std::max(0, width - columns), ' ');
}

std::string columns(Style style, const std::vector<std::int64_t>& values, std::int64_t most) {
  const int steps = style.blocks ? 8 : 9;
  std::string text;
  for (const std::int64_t value : values) {
    const double part = most > 0 ? static_cast<double>(value) / static_cast<double>(most) : 0;
    const int step = static_cast<int>(std::ceil(part * steps));  // anything above zero shows
    if (style.blocks)
      text += kLowerEighths[step];
    else
      text += step == 0 ? '.' : static_cast<char>('0' + step);
  }
  return text;
}

model::Progress progress_line() {
  if (::isatty(STDERR_FILENO) != 1) return [](std::string_view, std::int64_t, std::int64_t) {};
  using Clock = std::chrono::steady_clock;
  auto shown = std::make_shared<Clock::time_point>(Clock::now());  // quick work shows nothing
  return [shown](std::string_view what, std::int64_t done, std::int64_t all) {
    if (Clock::now() - *shown < std::chrono::milliseconds(200)) return;
    *shown = Clock::now();
    fmt::print(stderr, "\r\033[K{} {} of {}", what, done, all);
    std::fflush(stderr);
  };
}

void clear_progress_line() {
  if (::isatty(STDERR_FILENO) != 1) return;
  std::fputs("\r\033[K", stderr);
}

}  // namespace moeyard::tool
