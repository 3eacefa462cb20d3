// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "acl/acl_rt.h"
#include "base/status.h"

namespace moeyard::runtime {

// Ranges and kinds of copies and sets. A range that begins in a block must end in it (107000); memory that
// the registry does not know is the program's own affair.
Status check_range(std::string_view function, std::string_view parameter, const void* begin,
                   std::uint64_t bytes);

// `count` bytes are wanted where `room` are: 107000 if they do not fit.
Status check_room(std::string_view function, std::string_view room_name, std::uint64_t room,
                  std::uint64_t count);

// 100000 for a kind above `last`; with MOEYARD_STRICT_MEMORY=2 also 107000 if the registry knows better.
Status check_kind(std::string_view function, aclrtMemcpyKind kind, aclrtMemcpyKind last);
Status check_direction(std::string_view function, const void* dst, const void* src, aclrtMemcpyKind kind);

// One copy, checked but for its context: everything of aclrtMemcpy.
struct Copy {
  void* dst;
  std::uint64_t room;  // at dst
  const void* src;
  std::uint64_t count;
  aclrtMemcpyKind kind;

  bool moves_nothing() const { return count == 0 || dst == src; }
  void run() const;
};
Status check_copy(std::string_view function, const Copy& copy);

// Rows of `width` bytes.
struct Copy2d {
  void* dst;
  std::uint64_t dst_stride;
  const void* src;
  std::uint64_t src_stride;
  std::uint64_t width, height;
  aclrtMemcpyKind kind;

  void run() const;
};
Status check_copy(std::string_view function, const Copy2d& copy);

}  // namespace moeyard::runtime
