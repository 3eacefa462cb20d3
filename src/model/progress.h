// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <string_view>

namespace moeyard::model {

// Told now and then how far long work is. Called by one thread at a time.
using Progress = std::function<void(std::string_view what, std::int64_t done, std::int64_t all)>;

}  // namespace moeyard::model
