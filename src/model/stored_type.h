// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace moeyard::model {

// Element types of safetensors files.
enum class StoredType { f64, f32, f16, bf16, f8_e4m3, f8_e5m2, i64, i32, i16, i8, u8, boolean };

struct StoredTypeInfo {
  StoredType type;
  std::string_view name;  // as files spell it
  int bytes;              // of one element
};
const StoredTypeInfo* find_stored_type(std::string_view name);  // null: no such type
const StoredTypeInfo& info_of(StoredType type);

// Types that weights, tokens and expectations may have: F32, F16 and BF16. The functions below take these.
bool is_real(StoredType type);

// to[i] = fp32 of element i of from, exactly. from may have any alignment.
void widen(StoredType type, const std::byte* from, std::int64_t n, float* to);

// Index of the first element that is NaN or infinite, -1 if there is none.
std::int64_t find_not_finite(StoredType type, const std::byte* from, std::int64_t n);

// to[i] = from[i] rounded once to type, which is BF16 or F16 (their bits).
void narrow(std::span<const float> from, StoredType type, std::uint16_t* to);

}  // namespace moeyard::model
