// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>

#include "acl/acl_rt.h"
#include "base/status.h"

namespace moeyard::runtime {

// Figures of a device by CANN's names. Errors: 100000 no such name, 207000 a figure that this library has
// not.
Result<std::int64_t> device_attribute(std::string_view function, int device, aclrtDevAttr attribute);
Result<std::int64_t> device_capability(std::string_view function, aclDeviceInfo info);

}  // namespace moeyard::runtime
