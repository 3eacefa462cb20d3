// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/stored_type.h"

#include <cstring>

#include "base/numbers.h"

namespace moeyard::model {
namespace {

// In the order of the enumeration.
constexpr StoredTypeInfo kTypes[] = {
    {StoredType::f64, "F64", 8},   {StoredType::f32, "F32", 4},         {StoredType::f16, "F16", 2},
    {StoredType::bf16, "BF16", 2}, {StoredType::f8_e4m3, "F8_E4M3", 1}, {StoredType::f8_e5m2, "F8_E5M2", 1},
    {StoredType::i64, "I64", 8},   {StoredType::i32, "I32", 4},         {StoredType::i16, "I16", 2},
    {StoredType::i8, "I8", 1},     {StoredType::u8, "U8", 1},           {StoredType::boolean, "BOOL", 1},
};

// Tensors of a file start at any byte, so elements are copied out.
template <class T>
T element(const std::byte* from, std::int64_t i) {
  T value;
  std::memcpy(&value, from + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <class T>
void widen_as(const std::byte* from, std::int64_t n, float* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = to_float(element<T>(from, i));
}

// An exponent of all ones is NaN or infinity.
template <class Bits>
std::int64_t find_exponent(const std::byte* from, std::int64_t n, Bits exponent) {
  for (std::int64_t i = 0; i < n; ++i)
    if ((element<Bits>(from, i) & exponent) == exponent) return i;
  return -1;
}

}  // namespace

const StoredTypeInfo* find_stored_type(std::string_view name) {
  for (const StoredTypeInfo& info : kTypes)
    if (info.name == name) return &info;
  return nullptr;
}

const StoredTypeInfo& info_of(StoredType type) { return kTypes[static_cast<int>(type)]; }

bool is_real(StoredType type) {
  return type == StoredType::f32 || type == StoredType::f16 || type == StoredType::bf16;
}

void widen(StoredType type, const std::byte* from, std::int64_t n, float* to) {
  if (type == StoredType::bf16) return widen_as<Bf16>(from, n, to);
  if (type == StoredType::f16) return widen_as<Fp16>(from, n, to);
  widen_as<float>(from, n, to);
}

std::int64_t find_not_finite(StoredType type, const std::byte* from, std::int64_t n) {
  if (type == StoredType::bf16) return find_exponent<std::uint16_t>(from, n, 0x7F80u);
  if (type == StoredType::f16) return find_exponent<std::uint16_t>(from, n, 0x7C00u);
  return find_exponent<std::uint32_t>(from, n, 0x7F800000u);
}

void narrow(std::span<const float> from, StoredType type, std::uint16_t* to) {
  const auto n = static_cast<std::int64_t>(from.size());
  if (type == StoredType::bf16)
    for (std::int64_t i = 0; i < n; ++i) to[i] = to_bf16(from[i]).bits;
  else
    for (std::int64_t i = 0; i < n; ++i) to[i] = to_fp16(from[i]).bits;
}

}  // namespace moeyard::model
