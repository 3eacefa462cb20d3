// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>

namespace moeyard {

// What MOEYARD_SOC selects: the product whose dtypes, limits and error codes are emulated. `host` is the
// union of them without the limits of on-chip memory.
enum class Product : std::uint8_t { host, a2, a3, a950, p310, kirin };

// A set of products, as contracts name them: kA3 | k950.
struct Products {
  std::uint8_t bits;
  constexpr bool has(Product product) const { return (bits >> static_cast<int>(product)) & 1; }
  constexpr Products operator|(Products other) const {
    return {static_cast<std::uint8_t>(bits | other.bits)};
  }
};
inline constexpr Products kHost{1 << 0}, kA2{1 << 1}, kA3{1 << 2}, k950{1 << 3}, k310P{1 << 4},
    kKirin{1 << 5};
inline constexpr Products kDevices = kA2 | kA3 | k950 | k310P | kKirin;  // every emulated product
inline constexpr Products kEverywhere = kHost | kDevices;

// The product of this process, from MOEYARD_SOC.
Product product();
std::string_view name_of(Product product);

}  // namespace moeyard
