// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/device.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/errors.h"
#include "base/settings.h"
#include "runtime/context.h"

namespace moeyard::runtime {
namespace {

struct Device {
  std::mutex mutex;  // what follows
  std::shared_ptr<Context> default_context;
  std::uint32_t uses = 0;
  std::atomic<std::uint32_t> core_limits[2]{};
};

struct Devices {
  std::vector<int> physical;
  std::vector<std::unique_ptr<Device>> devices;
};

// Never destroyed, as threads may use the runtime until the process is gone.
Devices& all_devices() {
  static auto* made = [] {
    auto* devices = new Devices;
    devices->physical = parse_visible_devices(std::getenv("ASCEND_RT_VISIBLE_DEVICES"), settings().devices);
    for (std::size_t i = 0; i < devices->physical.size(); ++i)
      devices->devices.push_back(std::make_unique<Device>());
    return devices;
  }();
  return *made;
}

Device& device_at(int device) { return *all_devices().devices[static_cast<std::size_t>(device)]; }

std::int64_t physical_memory() {
  return static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::int64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

std::vector<int> parse_visible_devices(const char* text, int devices) {
  std::vector<int> visible;
  if (text == nullptr) {
    for (int i = 0; i < devices; ++i) visible.push_back(i);
    return visible;
  }
  const char* const end = text + std::strlen(text);
  for (;;) {
    int id = -1;
    const auto [rest, error] = std::from_chars(text, end, id);
    if (error != std::errc{} || id < 0 || id >= devices) return visible;
    if (!visible.empty() && id <= visible.back()) return {};
    visible.push_back(id);
    if (rest == end || *rest != ',') return visible;
    text = rest + 1;
  }
}

int device_count() { return static_cast<int>(all_devices().devices.size()); }

int physical_device(int device) { return all_devices().physical[static_cast<std::size_t>(device)]; }

Status check_device(std::string_view function, std::string_view parameter, std::int64_t device) {
  if (0 <= device && device < device_count()) return {};
  if (device_count() == 0)
    return fail(ACL_ERROR_RT_INVALID_DEVICEID, TextCode::runtime_parameter,
                "{}: {} is {} but ASCEND_RT_VISIBLE_DEVICES leaves no device; list existing devices in "
                "ascending order",
                function, parameter, device);
  return fail(ACL_ERROR_RT_INVALID_DEVICEID, TextCode::runtime_parameter,
              "{}: {} is {} but must be in [0, {}]; MOEYARD_DEVICES and ASCEND_RT_VISIBLE_DEVICES say how "
              "many devices there "
              "are",
              function, parameter, device, device_count() - 1);
}

Result<std::shared_ptr<Context>> use_device(std::string_view function, int device, bool count) {
  MOEYARD_TRY(check_device(function, "deviceId", device));
  Device& at = device_at(device);
  const std::lock_guard lock(at.mutex);
  if (at.default_context == nullptr)
    at.default_context = MOEYARD_TRY(Context::create(function, device, true));
  if (count) ++at.uses;
  return at.default_context;
}

Status release_device(std::string_view function, int device, bool force) {
  MOEYARD_TRY(check_device(function, "deviceId", device));
  Device& at = device_at(device);
  std::shared_ptr<Context> ended;
  {
    const std::lock_guard lock(at.mutex);
    if (at.uses == 0)
      return fail(
          ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, TextCode::runtime_state,
          "{}: device {} is not in use, or was reset as often as it was set; call aclrtSetDevice before",
          function, device);
    at.uses = force ? 0 : at.uses - 1;
    if (at.uses == 0) ended = std::move(at.default_context);
  }
  // Outside the lock: it waits for the streams' work, which may set devices itself.
  return ended == nullptr ? Status() : ended->close(function);
}

bool has_default_context(int device) {
  Device& at = device_at(device);
  const std::lock_guard lock(at.mutex);
  return at.default_context != nullptr;
}

std::string_view soc_name() {
  if (!settings().soc_name.empty()) return settings().soc_name;
  switch (product()) {
    case Product::a2:
      return "Ascend910B1";
    case Product::a950:
      return "Ascend950PR_9599";
    case Product::p310:
      return "Ascend310P3";
    case Product::kirin:
      return "KirinX90";
    case Product::host:
    case Product::a3:
      break;
  }
  return "Ascend910_9391";
}

ChipFigures chip_figures() {
  constexpr ChipFigures kA2Figures{24, 48, 201326592, 68719476736, 196608, 2201};
  switch (product()) {
    case Product::a2:
    case Product::a3:
      return kA2Figures;
    case Product::a950:
      return {36, 72, 134217728, 137438953472, 253952, 3510};
    case Product::p310:   // no documented figures
    case Product::kirin:  // likewise
    case Product::host:
      break;
  }
  const std::int64_t threads = std::max(1u, std::thread::hardware_concurrency());
  const std::int64_t l2 = std::max<std::int64_t>(0, sysconf(_SC_LEVEL2_CACHE_SIZE));
  return {threads, threads, l2, physical_memory(), kA2Figures.ub_bytes, kA2Figures.npu_arch};
}

std::int64_t cores_of(aclrtDevResLimitType type) {
  switch (type) {
    case ACL_RT_DEV_RES_CUBE_CORE:
      return chip_figures().ai_cores;
    case ACL_RT_DEV_RES_VECTOR_CORE:
      return chip_figures().vector_cores;
  }
  return 0;
}

std::uint32_t core_limit(int device, aclrtDevResLimitType type) {
  const std::uint32_t limit = device_at(device).core_limits[type].load(std::memory_order_relaxed);
  return limit != 0 ? limit : static_cast<std::uint32_t>(cores_of(type));
}

void set_core_limit(int device, aclrtDevResLimitType type, std::uint32_t cores) {
  device_at(device).core_limits[type].store(cores, std::memory_order_relaxed);
}

}  // namespace moeyard::runtime
