// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "base/error_log.h"

#include <string>
#include <vector>

#include "base/log.h"

namespace moeyard {
namespace {

constexpr std::size_t kMostMessages = 64;  // a program that never reads them must not grow without bound
constexpr std::int32_t kFirstRuntimeCode = 107000;

struct ThreadErrors {
  std::vector<std::string> messages;  // oldest first
  std::string handed_out;
  std::int32_t last_code = 0;
};

ThreadErrors& mine() {
  thread_local ThreadErrors errors;
  return errors;
}

}  // namespace

void record_failure(const Status& failure) {
  ThreadErrors& errors = mine();
  if (errors.messages.size() == kMostMessages) errors.messages.erase(errors.messages.begin());
  errors.messages.push_back(failure.message());
  if (failure.code() >= kFirstRuntimeCode) errors.last_code = failure.code();
  log_debug("failed with {}: {}", failure.code(), failure.message());
}

const char* take_recent_messages() {
  ThreadErrors& errors = mine();
  if (errors.messages.empty()) return nullptr;
  errors.handed_out.clear();
  for (auto message = errors.messages.rbegin(); message != errors.messages.rend(); ++message) {
    if (!errors.handed_out.empty()) errors.handed_out += '\n';
    errors.handed_out += *message;
  }
  errors.messages.clear();
  return errors.handed_out.c_str();
}

std::int32_t peek_last_code() { return mine().last_code; }

std::int32_t take_last_code() { return std::exchange(mine().last_code, 0); }

}  // namespace moeyard
