// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/progress.h"

namespace moeyard::tool {

// What standard output can show.
struct Style {
  bool blocks;  // unicode bars
  bool colors;
};
Style style_of_output();  // plain if it is no terminal, or with NO_COLOR

std::string in_green(Style style, std::string_view text);
std::string in_red(Style style, std::string_view text);

// A bar of value / most, `width` columns wide, padded with blanks: eighths of a block, or # signs.
std::string bar(Style style, double value, double most, int width);

// A column per value: its height of `most` in eighths, or digits 1 to 9; a dot for zero.
std::string columns(Style style, const std::vector<std::int64_t>& values, std::int64_t most);

// A line on standard error that is written over, if that is a terminal; else nothing.
model::Progress progress_line();
void clear_progress_line();

}  // namespace moeyard::tool
