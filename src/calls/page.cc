// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "calls/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace moeyard::calls {
namespace {

constexpr std::size_t kWidest = 24, kNarrowest = 28;  // columns, and the last one

std::vector<std::string> broken_into_lines(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  while (text.size() > width) {
    std::size_t end = text.rfind(' ', width);
    if (end == std::string_view::npos || end == 0) end = text.find(' ', width);
    if (end == std::string_view::npos) break;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  lines.emplace_back(text);
  return lines;
}

std::string trimmed(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

// Columns as wide as what they hold, up to a limit, but for the last one, which takes what is left.
std::string table_as_text(const Page::Table& table, std::size_t width) {
  const std::size_t columns = table.columns.size();
  std::vector<std::size_t> widths(columns);
  std::size_t left = 2;
  for (std::size_t c = 0; c + 1 < columns; ++c) {
    widths[c] = table.columns[c].size();
    for (const auto& row : table.rows) widths[c] = std::max(widths[c], row[c].size());
    widths[c] = std::min(widths[c], kWidest);
    left += widths[c] + 2;
  }
  widths.back() = std::max(left < width ? width - left : 0, kNarrowest);
  std::string text;
  const auto add = [&](const std::vector<std::string>& row) {
    std::vector<std::vector<std::string>> cells;
    std::size_t lines = 0;
    for (std::size_t c = 0; c < columns; ++c) {
      cells.push_back(broken_into_lines(row[c], widths[c]));
      lines = std::max(lines, cells.back().size());
    }
    for (std::size_t i = 0; i < lines; ++i) {
      std::string line = " ";
      for (std::size_t c = 0; c < columns; ++c)
        line += fmt::format(" {:<{}} ", i < cells[c].size() ? cells[c][i] : "", widths[c]);
      text += trimmed(line) + "\n";
    }
  };
  add(table.columns);
  for (const auto& row : table.rows) add(row);
  return text;
}

std::string in_cell(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|' || c == '*' || c == '<') cell += '\\';
    cell += c;
  }
  return cell;
}

std::string table_as_markdown(const Page::Table& table) {
  std::string text;
  for (const std::string& column : table.columns) text += "| " + column + " ";
  text += "|\n";
  for (std::size_t c = 0; c < table.columns.size(); ++c) text += "|---";
  text += "|\n";
  for (const auto& row : table.rows) {
    for (const std::string& cell : row) text += "| " + in_cell(cell) + " ";
    text += "|\n";
  }
  return text;
}

}  // namespace

std::string Page::as_text(std::size_t width) const {
  std::string text = title + "\n";
  for (const std::string& paragraph : paragraphs) {
    text += "\n";
    for (const std::string& line : broken_into_lines(paragraph, width)) text += line + "\n";
  }
  for (const Table& table : tables)
    if (!table.rows.empty()) text += fmt::format("\n{}\n{}", table.title, table_as_text(table, width));
  for (const Code& code : codes) text += fmt::format("\n{}\n{}\n", code.title, code.text);
  return text;
}

std::string Page::as_markdown() const {
  std::string text = fmt::format("# {}\n", title);
  for (const std::string& paragraph : paragraphs) text += fmt::format("\n{}\n", paragraph);
  for (const Table& table : tables)
    if (!table.rows.empty()) text += fmt::format("\n## {}\n\n{}", table.title, table_as_markdown(table));
  for (const Code& code : codes) text += fmt::format("\n## {}\n\n```text\n{}\n```\n", code.title, code.text);
  return text;
}

}  // namespace moeyard::calls
