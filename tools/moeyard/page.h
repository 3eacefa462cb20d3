// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace moeyard::tool {

// A self-contained HTML page: the template of tools/moeyard/page with everything in it. `data` is JSON that was dumped in
// ASCII.
std::string make_page(std::string_view title, std::string_view data);

}  // namespace moeyard::tool
