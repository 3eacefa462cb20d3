// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "atb/types.h"

// libatb is compiled twice, for both C++ ABIs: its sources are few, and use no library but the standard one and the C
// functions of include/.
namespace moeyard::atb_layer {

// Leaves a message, one sentence without its full stop, for aclGetRecentErrMsg of this thread. Returns the code.
[[gnu::format(printf, 2, 3)]] atb::Status fail(atb::ErrorType code, const char* format, ...);

// A line for the log.
[[gnu::format(printf, 1, 2)]] void warn(const char* format, ...);

// What a function that must not throw returns in a catch (...) block; std::exception's text goes into the message.
atb::Status caught(atb::ErrorType code, const char* name, const char* function);

std::string text_of(const atb::TensorDesc& desc);  // "FP16[2,3]"
std::string text_of(const atb::Dims& shape);       // "[2,3]"

// Leaves the calling function with a status that is not 0.
#define MOEYARD_ATB_TRY(expression)                     \
  do {                                                  \
    const ::atb::Status moeyard_status = (expression);  \
    if (moeyard_status != ::atb::NO_ERROR) [[unlikely]] \
      return moeyard_status;                            \
  } while (false)

}  // namespace moeyard::atb_layer
