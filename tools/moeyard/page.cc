// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "moeyard/page.h"

#include <utility>

// The files of tools/moeyard/page and the chart library, put here while building (embed.S of the build folder).
extern "C" {
extern const char moeyard_page_html[], moeyard_page_html_end[];
extern const char moeyard_page_css[], moeyard_page_css_end[];
extern const char moeyard_page_js[], moeyard_page_js_end[];
extern const char moeyard_chart_js[], moeyard_chart_js_end[];
extern const char moeyard_chart_license[], moeyard_chart_license_end[];
}

namespace moeyard::tool {
namespace {

std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

std::string in_html(std::string_view text) {
  std::string made;
  for (const char c : text) {
    if (c == '&')
      made += "&amp;";
    else if (c == '<')
      made += "&lt;";
    else
      made += c;
  }
  return made;
}

// No element can be closed from within the data.
std::string in_script(std::string_view json) {
  std::string made;
  for (const char c : json) {
    if (c == '<')
      made += "\\u003c";
    else
      made += c;
  }
  return made;
}

}  // namespace

std::string make_page(std::string_view title, std::string_view data) {
  const std::pair<std::string_view, std::string> parts[] = {
      {"%license%", std::string(between(moeyard_chart_license, moeyard_chart_license_end))},
      {"%title%", in_html(title)},
      {"%style%", std::string(between(moeyard_page_css, moeyard_page_css_end))},
      {"%data%", in_script(data)},
      {"%library%", std::string(between(moeyard_chart_js, moeyard_chart_js_end))},
      {"%script%", std::string(between(moeyard_page_js, moeyard_page_js_end))}};
  std::string_view left = between(moeyard_page_html, moeyard_page_html_end);
  std::string page;
  for (const auto& [mark, text] : parts) {  // in the order of the template
    const std::size_t at = left.find(mark);
    page.append(left.substr(0, at)).append(text);
    left.remove_prefix(at + mark.size());
  }
  return page.append(left);
}

}  // namespace moeyard::tool
