// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>

#include "acl/acl_rt.h"
#include "base/status.h"

namespace moeyard::runtime {

// dst[i] = dst[i] op src[i]; fp16 and bf16 are combined in fp32 and rounded once, integers wrap. Any
// alignment.
struct Reduction {
  void* dst;
  const void* src;
  std::uint64_t bytes;
  aclrtReduceKind kind;
  aclDataType dtype;

  void run() const;
};
Status check_reduction(std::string_view function, const Reduction& reduction);  // 107000, 207000

}  // namespace moeyard::runtime
