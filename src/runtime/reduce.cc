// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/reduce.h"

#include <cstring>
#include <type_traits>

#include "base/dtype.h"
#include "base/errors.h"
#include "base/numbers.h"

namespace moeyard::runtime {
namespace {

constexpr Dtypes kReducible = kINT8 | only(ACL_INT16) | kINT32 | kFP16 | kBF16 | kFP32;

// The type in which two elements are combined, and the way back.
constexpr float widen(float value) { return value; }
constexpr float widen(Fp16 value) { return to_float(value); }
constexpr float widen(Bf16 value) { return to_float(value); }
constexpr std::int64_t widen(std::int32_t value) { return value; }

template <class T, class Wide>
T narrow(Wide value) {
  if constexpr (std::is_same_v<T, Fp16>)
    return to_fp16(value);
  else if constexpr (std::is_same_v<T, Bf16>)
    return to_bf16(value);
  else
    return static_cast<T>(value);  // integers wrap
}

template <class Wide>
Wide combine(aclrtReduceKind kind, Wide a, Wide b) {
  switch (kind) {
    case ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX:
      return a < b ? b : a;
    case ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN:
      return b < a ? b : a;
    default:
      return a + b;
  }
}

template <class T>
void reduce(const Reduction& reduction) {
  auto* to = static_cast<std::byte*>(reduction.dst);
  const auto* from = static_cast<const std::byte*>(reduction.src);
  for (std::uint64_t at = 0; at < reduction.bytes; at += sizeof(T)) {
    T a, b;
    std::memcpy(&a, to + at, sizeof(T));
    std::memcpy(&b, from + at, sizeof(T));
    a = narrow<T>(combine(reduction.kind, widen(a), widen(b)));
    std::memcpy(to + at, &a, sizeof(T));
  }
}

}  // namespace

void Reduction::run() const {
  switch (dtype) {
    case ACL_INT8:
      return reduce<std::int8_t>(*this);
    case ACL_INT16:
      return reduce<std::int16_t>(*this);
    case ACL_INT32:
      return reduce<std::int32_t>(*this);
    case ACL_FLOAT16:
      return reduce<Fp16>(*this);
    case ACL_BF16:
      return reduce<Bf16>(*this);
    default:
      return reduce<float>(*this);
  }
}

Status check_reduction(std::string_view function, const Reduction& reduction) {
  if (reduction.kind == ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL)
    return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, TextCode::runtime_parameter,
                "{}: kind EQUAL is not supported; use SUM, MAX or MIN", function);
  if (reduction.kind < ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM ||
      reduction.kind > ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL)
    return fail(ACL_ERROR_RT_PARAM_INVALID, TextCode::runtime_parameter,
                "{}: kind is {} but must be a value of aclrtReduceKind", function,
                static_cast<int>(reduction.kind));
  if (!kReducible.has(reduction.dtype))
    return fail(ACL_ERROR_RT_PARAM_INVALID, TextCode::runtime_parameter,
                "{}: type is {} but must be one of {}", function, name_of(reduction.dtype),
                names_of(kReducible));
  const auto element = static_cast<std::uint64_t>(bytes_of(reduction.dtype, 1));
  if (reduction.bytes % element != 0)
    return fail(ACL_ERROR_RT_PARAM_INVALID, TextCode::runtime_parameter,
                "{}: count is {} bytes but must be a multiple of {}, the size of {}", function,
                reduction.bytes, element, name_of(reduction.dtype));
  return {};
}

}  // namespace moeyard::runtime
