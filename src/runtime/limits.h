// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>

#include "acl/acl_rt.h"
#include "base/status.h"
#include "runtime/stream.h"

namespace moeyard::runtime {

// Numbers of cores that programs set for a device or a stream. They are kept and read back; they limit
// nothing.
Status check_limit_type(std::string_view function, aclrtDevResLimitType type);                  // 107000
Status check_limit(std::string_view function, aclrtDevResLimitType type, std::uint32_t value);  // 107000
std::uint32_t stream_core_limit(const Stream& stream, aclrtDevResLimitType type);

// The stream whose limits count in this thread; null: those of the current device.
void use_stream_limits(std::shared_ptr<Stream> stream);
std::shared_ptr<Stream> stream_limits_in_use();

}  // namespace moeyard::runtime
