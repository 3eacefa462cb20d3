// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "base/settings.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>

#include "base/log.h"

namespace moeyard {
namespace {

constexpr Setting kSettings[] = {
    {"MOEYARD_DEVICES", "16", "number of devices, 1 to 1024"},
    {"MOEYARD_SOC", "host", "product to emulate: host, A2, A3, 950, 310P or Kirin"},
    {"MOEYARD_SOC_NAME", "", "what aclrtGetSocName answers, instead of the product's name"},
    {"MOEYARD_TIMEOUT_MS", "",
     "how long to wait for peers, in ms; 0 waits for ever; wins over HCCL_EXEC_TIMEOUT"},
    {"MOEYARD_STRICT_MEMORY", "1",
     "0 any pointer passes as device memory, 1 it is checked, 2 copies must match their kind"},
    {"MOEYARD_LENIENT", "0",
     "1 ignores bad expert ids and counts unordered masks as devices do, instead of failing"},
    {"MOEYARD_FILL", "", "byte (0 to 255) that fills new device memory"},
    {"MOEYARD_TARGET", "", "SIMD target to use instead of the best one, for example AVX2 or EMU128"},
    {"MOEYARD_THREADS", "", "threads for row loops; default: the cores of this machine"},
    {"MOEYARD_LOG", "",
     "debug, plan, info, warning, error or off; default: from ASCEND_GLOBAL_LOG_LEVEL, else error"},
    {"MOEYARD_TRACE", "",
     "file for a Chrome trace of operators, waits and copies; %p stands for the process"},
    {"MOEYARD_DUMP", "",
     "folder for the inputs and outputs of every operator call, for moeyard replay; %p stands for the "
     "process"},
    {"MOEYARD_SHARED_MEMORY", "0",
     "1 makes device memory shareable with other processes from the start, not from the first communicator "
     "of several "
     "processes on"},
    {"MOEYARD_SECRET", "", "secret that ranks of a rank table have to know to find each other"},
};

std::string text_of(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value != nullptr && *value != '\0') return value;
  for (const Setting& setting : kSettings)
    if (setting.name == name) return std::string(setting.default_value);
  return {};
}

std::string default_of(std::string_view name) {
  for (const Setting& setting : kSettings)
    if (setting.name == name) return std::string(setting.default_value);
  return {};
}

std::optional<std::int64_t> parse_integer(std::string_view text, std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high)
    return std::nullopt;
  return value;
}

// A value that cannot be used is an error in the log, which shows errors unless told otherwise: who misspells a
// product would believe that its limits are checked.

// The variable as an integer in [low, high]; none if it is not set and has no default.
std::optional<std::int64_t> integer(std::string_view name, std::int64_t low, std::int64_t high) {
  const std::string text = text_of(name);
  if (text.empty()) return std::nullopt;
  if (const auto value = parse_integer(text, low, high)) return value;
  log_error("{}={} is not an integer in [{}, {}]; the default is used", name, text, low, high);
  return parse_integer(default_of(name), low, high);
}

constexpr std::string_view kProductNames[] = {"host", "A2", "A3", "950", "310P", "Kirin"};

Product read_product() {
  const std::string text = text_of("MOEYARD_SOC");
  for (int i = 0; i < static_cast<int>(std::size(kProductNames)); ++i)
    if (text == kProductNames[i]) return static_cast<Product>(i);
  log_error("MOEYARD_SOC={} is not one of host, A2, A3, 950, 310P, Kirin; host is used", text);
  return Product::host;
}

Settings read_settings() {
  Settings read{};
  log_enabled(LogLevel::error);  // reads MOEYARD_LOG, and says so if that cannot be used
  read.devices = static_cast<int>(*integer("MOEYARD_DEVICES", 1, 1024));
  read.product = read_product();
  read.soc_name = text_of("MOEYARD_SOC_NAME");
  if (const auto ms = integer("MOEYARD_TIMEOUT_MS", 0, INT64_C(1) << 40))
    read.timeout = std::chrono::milliseconds(*ms);
  read.strict_memory = static_cast<int>(*integer("MOEYARD_STRICT_MEMORY", 0, 2));
  read.lenient = *integer("MOEYARD_LENIENT", 0, 1) == 1;
  if (const auto byte = integer("MOEYARD_FILL", 0, 255)) read.fill = static_cast<std::uint8_t>(*byte);
  read.target = text_of("MOEYARD_TARGET");
  const int cores = std::max(1u, std::thread::hardware_concurrency());
  read.threads = static_cast<int>(integer("MOEYARD_THREADS", 1, 4096).value_or(cores));
  read.log = text_of("MOEYARD_LOG");
  read.trace = text_of("MOEYARD_TRACE");
  read.dump = text_of("MOEYARD_DUMP");
  read.shared_memory = *integer("MOEYARD_SHARED_MEMORY", 0, 1) == 1;
  read.secret = text_of("MOEYARD_SECRET");
  return read;
}

Settings& storage() {
  static Settings settings = read_settings();
  return settings;
}

}  // namespace

std::span<const Setting> all_settings() { return kSettings; }

const Settings& settings() { return storage(); }

void reload_settings() { storage() = read_settings(); }

Product product() { return settings().product; }

std::string_view name_of(Product product) { return kProductNames[static_cast<int>(product)]; }

std::chrono::milliseconds peer_timeout(std::optional<std::chrono::milliseconds> of_communicator) {
  constexpr std::chrono::milliseconds kDefault{1836 * 1000};
  if (settings().timeout) return *settings().timeout;
  if (of_communicator) return *of_communicator;
  const char* text = std::getenv("HCCL_EXEC_TIMEOUT");
  if (text == nullptr || *text == '\0') return kDefault;
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);  // fractions are accepted
  if (*end != '\0' || !(seconds >= 0) || seconds > 2147483647.0) {
    log_error("HCCL_EXEC_TIMEOUT={} is not a number of seconds in [0, 2147483647]; 1836 is used", text);
    return kDefault;
  }
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(seconds * 1000)));
}

}  // namespace moeyard
