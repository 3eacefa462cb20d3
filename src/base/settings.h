// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/product.h"

namespace moeyard {

// One setting of the library: an environment variable with its default.
struct Setting {
  std::string_view name;
  std::string_view default_value;  // as text; empty: not set
  std::string_view help;
};

// Every MOEYARD_* variable there is; `moeyard env` prints this table.
std::span<const Setting> all_settings();

// The values, read once per process. An unreadable value is reported on the log and the default holds.
struct Settings {
  int devices;
  Product product;
  std::string soc_name;                              // empty: the product's own
  std::optional<std::chrono::milliseconds> timeout;  // MOEYARD_TIMEOUT_MS; 0 = never
  int strict_memory;                                 // 0, 1 or 2
  bool lenient;
  std::optional<std::uint8_t> fill;  // byte that new device memory is filled with
  std::string target;                // SIMD target to force, empty: the best
  int threads;                       // slots of the arena
  std::string log;
  std::string trace;
  std::string dump;
  bool shared_memory;
  std::string secret;
};
const Settings& settings();

// For tests: reads the environment again. Nobody else may be using the settings meanwhile.
void reload_settings();

// The deadline for waiting on peers when a call does not bring its own: MOEYARD_TIMEOUT_MS, else the
// communicator's own value, else HCCL_EXEC_TIMEOUT, else 1836 s. 0 waits for ever.
std::chrono::milliseconds peer_timeout(std::optional<std::chrono::milliseconds> of_communicator);

}  // namespace moeyard
