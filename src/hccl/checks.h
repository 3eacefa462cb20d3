// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "hccl/types.h"

namespace moeyard::hccl {

// What collectives check of their buffers. Errors: HCCL_E_PARA unless another is named.

// Bytes of `count` elements, times `ranks`. Error: no address space has as many.
Result<std::int64_t> bytes_of(std::string_view function, std::string_view parameter, std::uint64_t count,
                              const TypeInfo& type, std::int64_t ranks = 1);

// Bytes that may be read and written at an address. Errors: HCCL_E_PTR null though bytes > 0; not aligned;
// not inside a live block of device memory (unless MOEYARD_STRICT_MEMORY=0).
Status check_buffer(std::string_view function, std::string_view parameter, const void* buffer,
                    std::int64_t bytes, std::int64_t alignment = 1);

// Two buffers of one call: they may not overlap, unless the second is where `in_place` says (null: never).
Status check_apart(std::string_view function, const void* send, std::int64_t send_bytes, const void* recv,
                   std::int64_t recv_bytes, const void* in_place);

Status check_below(std::string_view function, std::string_view parameter, std::uint32_t rank, int size);

// sendCount = recvCount (functions that have both) and sendType = recvType.
Status check_equal_sides(std::string_view function, std::uint64_t send_count, std::uint64_t recv_count,
                         HcclDataType send_type, HcclDataType recv_type);

}  // namespace moeyard::hccl
