// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace moeyard::calls {

// A short text with tables, for terminals and as Markdown.
struct Page {
  struct Table {
    std::string title;
    std::vector<std::string> columns;
    std::vector<std::vector<std::string>> rows;
  };
  struct Code {
    std::string title, text;
  };
  std::string title;
  std::vector<std::string> paragraphs;
  std::vector<Table> tables;
  std::vector<Code> codes;  // behind the tables

  std::string as_text(std::size_t width = 100) const;
  std::string as_markdown() const;
};

}  // namespace moeyard::calls
