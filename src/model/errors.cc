// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/errors.h"

namespace moeyard::model {

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 96;
  std::string shown = "'";
  for (const char c : text.substr(0, kLongest))
    shown += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
  if (text.size() > kLongest) {
    while ((static_cast<unsigned char>(shown.back()) & 0xC0) == 0x80) shown.pop_back();  // no half characters
    if (static_cast<unsigned char>(shown.back()) >= 0xC0) shown.pop_back();
    shown += "...";
  }
  return shown + "'";
}

}  // namespace moeyard::model
