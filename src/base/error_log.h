// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace moeyard {

// What aclGetRecentErrMsg, aclrtPeekAtLastError and aclrtGetLastError of the calling thread answer.

// Remembers a failure that a C function is about to return.
void record_failure(const Status& failure);

// The messages recorded since the last call, newest first, one a line; null when there are none. Valid until
// the thread's next call.
const char* take_recent_messages();

// The code of the last failed runtime call (107000 and above), 0 if none; take also forgets it.
std::int32_t peek_last_code();
std::int32_t take_last_code();

}  // namespace moeyard
