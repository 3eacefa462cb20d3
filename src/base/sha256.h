// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace moeyard {

using Digest = std::array<std::uint8_t, 32>;

Digest sha256(std::string_view text);
// HMAC-SHA-256: only who knows the key can make it.
Digest hmac_sha256(std::string_view key, std::string_view text);
// Takes the same time wherever they differ.
bool same_digest(const Digest& a, const Digest& b);

}  // namespace moeyard
