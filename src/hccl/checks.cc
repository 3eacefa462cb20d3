// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "hccl/checks.h"

#include "base/errors.h"
#include "base/settings.h"
#include "hccl/handles.h"
#include "runtime/memory.h"

namespace moeyard::hccl {

Result<std::int64_t> bytes_of(std::string_view function, std::string_view parameter, std::uint64_t count,
                              const TypeInfo& type, std::int64_t ranks) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 56;  // beyond every address space
  if (count > kMostBytes / static_cast<std::uint64_t>(type.bytes * ranks))
    return fail(HCCL_E_PARA, TextCode::hccl_parameter, "{}: {} is {}, more {} elements than any memory holds",
                function, parameter, count, type.name);
  return static_cast<std::int64_t>(count) * type.bytes * ranks;
}

Status check_buffer(std::string_view function, std::string_view parameter, const void* buffer,
                    std::int64_t bytes, std::int64_t alignment) {
  if (bytes == 0) return {};
  if (buffer == nullptr) return null_pointer(function, parameter);
  if (reinterpret_cast<std::uintptr_t>(buffer) % static_cast<std::uintptr_t>(alignment) != 0)
    return fail(HCCL_E_PARA, TextCode::hccl_parameter,
                "{}: {} ({}) is not aligned to its elements of {} bytes", function, parameter, buffer,
                alignment);
  if (settings().strict_memory == 0) return {};
  const std::string why = runtime::why_not_device_memory(buffer, static_cast<std::uint64_t>(bytes));
  if (why.empty()) return {};
  return fail(HCCL_E_PARA, TextCode::hccl_parameter,
              "{}: {} ({}, {} bytes) {}; pass memory of aclrtMalloc (MOEYARD_STRICT_MEMORY=0 accepts any)",
              function, parameter, buffer, bytes, why);
}

Status check_apart(std::string_view function, const void* send, std::int64_t send_bytes, const void* recv,
                   std::int64_t recv_bytes, const void* in_place) {
  const auto* s = static_cast<const std::byte*>(send);
  const auto* r = static_cast<const std::byte*>(recv);
  if (send_bytes == 0 || recv_bytes == 0 || s + send_bytes <= r || r + recv_bytes <= s) return {};
  if (in_place != nullptr && recv == in_place) return {};
  return fail(HCCL_E_PARA, TextCode::hccl_parameter,
              "{}: sendBuf ({}, {} bytes) and recvBuf ({}, {} bytes) overlap{}; use separate buffers",
              function, send, send_bytes, recv, recv_bytes,
              in_place == nullptr ? "" : " other than in place");
}

Status check_below(std::string_view function, std::string_view parameter, std::uint32_t rank, int size) {
  if (rank < static_cast<std::uint32_t>(size)) return {};
  return fail(HCCL_E_PARA, TextCode::hccl_parameter,
              "{}: {} is {}, it must be below the {} ranks of the communicator", function, parameter, rank,
              size);
}

Status check_equal_sides(std::string_view function, std::uint64_t send_count, std::uint64_t recv_count,
                         HcclDataType send_type, HcclDataType recv_type) {
  if (send_count != recv_count)
    return fail(HCCL_E_PARA, TextCode::hccl_parameter,
                "{}: sendCount is {} but recvCount is {}; they must be equal", function, send_count,
                recv_count);
  if (send_type != recv_type)
    return fail(HCCL_E_PARA, TextCode::hccl_parameter,
                "{}: sendType is {} but recvType is {}; they must be equal", function,
                static_cast<int>(send_type), static_cast<int>(recv_type));
  return {};
}

}  // namespace moeyard::hccl
