// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/copy.h"

#include <cstring>
#include <optional>

#include "base/errors.h"
#include "base/log.h"
#include "base/settings.h"
#include "runtime/memory.h"

namespace moeyard::runtime {
namespace {

Status not_null(std::string_view function, std::string_view parameter, const void* pointer) {
  if (pointer != nullptr) return {};
  return fail(ACL_ERROR_INVALID_PARAM, TextCode::runtime_parameter, "{}: {} is null; pass a valid one",
              function, parameter);
}

bool is_device(const void* address) {
  const auto block = find_block(address);
  return block && block->is_device();
}

// What a kind says of a side: device memory, host memory, or nothing.
std::optional<bool> says_device(aclrtMemcpyKind kind, bool dst) {
  switch (kind) {
    case ACL_MEMCPY_HOST_TO_HOST:
      return false;
    case ACL_MEMCPY_HOST_TO_DEVICE:
    case ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE:
      return dst;
    case ACL_MEMCPY_DEVICE_TO_HOST:
      return !dst;
    case ACL_MEMCPY_DEVICE_TO_DEVICE:
    case ACL_MEMCPY_INNER_DEVICE_TO_DEVICE:
    case ACL_MEMCPY_INTER_DEVICE_TO_DEVICE:
      return true;
    case ACL_MEMCPY_DEFAULT:
      break;
  }
  return std::nullopt;
}

Status check_side(std::string_view function, std::string_view parameter, const void* address,
                  std::optional<bool> device) {
  if (!device || *device == is_device(address)) return {};
  return fail(
      ACL_ERROR_RT_PARAM_INVALID, TextCode::runtime_parameter,
      "{}: {} is {} memory but kind says {}; pass the kind that fits (MOEYARD_STRICT_MEMORY=2 asks for it)",
      function, parameter, *device ? "host" : "device", *device ? "device" : "host");
}

// Bytes from the first row's begin to the last row's end; none if that is no size.
std::optional<std::uint64_t> reach(std::uint64_t stride, std::uint64_t width, std::uint64_t height) {
  std::uint64_t rows, bytes;
  if (__builtin_mul_overflow(stride, height - 1, &rows) || __builtin_add_overflow(rows, width, &bytes))
    return std::nullopt;
  return bytes;
}

// Programs signal by copying a word over a flag that an operator polls: such a copy is one store that
// publishes what was written before it.
template <class Word>
void copy_word(void* dst, const void* src) {
  const auto is_aligned = [](const void* at) {
    return reinterpret_cast<std::uintptr_t>(at) % sizeof(Word) == 0;
  };
  Word word;
  if (is_aligned(src))
    word = __atomic_load_n(static_cast<const Word*>(src), __ATOMIC_ACQUIRE);
  else
    std::memcpy(&word, src, sizeof word);
  if (is_aligned(dst))
    __atomic_store_n(static_cast<Word*>(dst), word, __ATOMIC_RELEASE);
  else
    std::memcpy(dst, &word, sizeof word);
}

}  // namespace

Status check_range(std::string_view function, std::string_view parameter, const void* begin,
                   std::uint64_t bytes) {
  const auto block = find_block(begin);
  if (!block) return {};
  const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(begin) - block->begin);
  if (bytes <= block->bytes - offset) return {};
  return fail(ACL_ERROR_RT_PARAM_INVALID, TextCode::runtime_parameter,
              "{}: {} bytes at {} end {} bytes past its block of {} bytes, in which it lies at {}; copy less "
              "or allocate more",
              function, bytes, parameter, bytes - (block->bytes - offset), block->requested, offset);
}

Status check_room(std::string_view function, std::string_view room_name, std::uint64_t room,
                  std::uint64_t count) {
  if (count <= room) return {};
  return fail(ACL_ERROR_RT_PARAM_INVALID, TextCode::runtime_parameter,
              "{}: {} bytes do not fit in {}, which is {}; pass the size of the destination there", function,
              count, room_name, room);
}

Status check_kind(std::string_view function, aclrtMemcpyKind kind, aclrtMemcpyKind last) {
  if (ACL_MEMCPY_HOST_TO_HOST <= kind && kind <= last) return {};
  return fail(ACL_ERROR_INVALID_PARAM, TextCode::runtime_parameter,
              "{}: kind is {} but must be a value of aclrtMemcpyKind in [0, {}]", function,
              static_cast<int>(kind), static_cast<int>(last));
}

Status check_direction(std::string_view function, const void* dst, const void* src, aclrtMemcpyKind kind) {
  const bool enforced = settings().strict_memory >= 2;
  if (!enforced && !log_enabled(LogLevel::debug)) return {};
  Status wrong = check_side(function, "dst", dst, says_device(kind, true));
  if (wrong.ok()) wrong = check_side(function, "src", src, says_device(kind, false));
  if (enforced) return wrong;
  if (!wrong.ok()) log_debug("accepted all the same: {}", wrong.message());
  return {};
}

Status check_copy(std::string_view function, const Copy& copy) {
  if (copy.count == 0) return {};
  MOEYARD_TRY(not_null(function, "dst", copy.dst));
  MOEYARD_TRY(not_null(function, "src", copy.src));
  MOEYARD_TRY(check_kind(function, copy.kind, ACL_MEMCPY_INTER_DEVICE_TO_DEVICE));
  MOEYARD_TRY(check_room(function, "destMax", copy.room, copy.count));
  if (copy.moves_nothing()) return {};
  MOEYARD_TRY(check_range(function, "dst", copy.dst, copy.count));
  MOEYARD_TRY(check_range(function, "src", copy.src, copy.count));
  return check_direction(function, copy.dst, copy.src, copy.kind);
}

void Copy::run() const {
  if (moves_nothing()) return;
  if (count == sizeof(std::uint32_t)) return copy_word<std::uint32_t>(dst, src);
  if (count == sizeof(std::uint64_t)) return copy_word<std::uint64_t>(dst, src);
  std::memmove(dst, src, count);
}

Status check_copy(std::string_view function, const Copy2d& copy) {
  MOEYARD_TRY(not_null(function, "dst", copy.dst));
  MOEYARD_TRY(not_null(function, "src", copy.src));
  MOEYARD_TRY(check_kind(function, copy.kind, ACL_MEMCPY_DEVICE_TO_DEVICE));
  if (copy.width == 0 || copy.height == 0 || copy.width > copy.dst_stride || copy.width > copy.src_stride)
    return fail(ACL_ERROR_INVALID_PARAM, TextCode::runtime_parameter,
                "{}: width {} and height {} must be above 0 and width at most dpitch {} and spitch {}",
                function, copy.width, copy.height, copy.dst_stride, copy.src_stride);
  const auto dst_bytes = reach(copy.dst_stride, copy.width, copy.height);
  const auto src_bytes = reach(copy.src_stride, copy.width, copy.height);
  if (!dst_bytes || !src_bytes)
    return fail(ACL_ERROR_INVALID_PARAM, TextCode::runtime_parameter,
                "{}: {} rows at dpitch {} or spitch {} are more than any address can reach", function,
                copy.height, copy.dst_stride, copy.src_stride);
  MOEYARD_TRY(check_range(function, "dst", copy.dst, *dst_bytes));
  MOEYARD_TRY(check_range(function, "src", copy.src, *src_bytes));
  return check_direction(function, copy.dst, copy.src, copy.kind);
}

void Copy2d::run() const {
  auto* to = static_cast<std::byte*>(dst);
  const auto* from = static_cast<const std::byte*>(src);
  for (std::uint64_t row = 0; row < height; ++row, to += dst_stride, from += src_stride)
    std::memmove(to, from, width);
}

}  // namespace moeyard::runtime
