// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "executor/call.h"

namespace moeyard::executor {

// With MOEYARD_DUMP=folder every call of an operator is written there when its stream comes to it: inputs before it runs,
// outputs behind it, and a description (docs/dump.md). Without that variable a call costs one test of a flag.

namespace detail {
bool dump_is_wanted();
}
inline bool dumping() {
  static const bool wanted = detail::dump_is_wanted();
  return wanted;
}

// call.run(run), with files. What cannot be written is said in the log once, and ends the dump.
Status run_dumped(PlannedCall& call, const Run& run);

}  // namespace moeyard::executor
