// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "moeyard/machine.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/parallel.h"
#include "kernels/targets_here.h"

namespace moeyard::tool {
namespace {

using Level = Finding::Level;
namespace fs = std::filesystem;

constexpr std::int64_t kThreadsOfManyRanks =
    4096;  // 768 ranks have a thread of the program and one or two streams each
constexpr std::int64_t kMegabyte = 1 << 20;
constexpr std::int64_t kLeastShared = 8192 * kMegabyte;  // what a few ranks take

class Machine {
 public:
  explicit Machine(fs::path root) : root_(std::move(root)) {}

  // Without the blanks around it; empty if there is no such file.
  std::string text(const char* path) const {
    std::ifstream file(root_ / path);
    std::ostringstream all;
    all << file.rdbuf();
    std::string text = all.str();
    text.erase(0, text.find_first_not_of(" \n\t"));
    text.erase(text.find_last_not_of(" \n\t") + 1);
    return text;
  }
  // The number at the beginning of a file; none for "max" and the like.
  std::optional<std::int64_t> number(const char* path) const {
    const std::string words = text(path);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), value);
    if (error != std::errc{} || end == words.data()) return std::nullopt;
    return value;
  }
  // "model name : X" in a file of such lines: X.
  std::string field(const char* path, std::string_view name) const {
    std::ifstream file(root_ / path);
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with(name)) continue;
      const std::size_t value = line.find_first_not_of(" \t", line.find(':') + 1);
      return value == std::string::npos ? "" : line.substr(value);
    }
    return {};
  }
  const fs::path& root() const { return root_; }

 private:
  fs::path root_;
};

std::string size_text(std::int64_t bytes) {
  return bytes >= 1024 * kMegabyte
             ? fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1024.0 * kMegabyte))
             : fmt::format("{} MiB", bytes / kMegabyte);
}

int cores_of_process() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

// What a container may use of the processors; none: all.
std::optional<double> quota_of_cores(const Machine& machine) {
  const std::string v2 = machine.text("sys/fs/cgroup/cpu.max");
  std::istringstream words(v2);
  double quota = 0, period = 0;
  if (words >> quota >> period && period > 0) return quota / period;
  const auto us = machine.number("sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
             of = machine.number("sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (us && of && *us > 0 && *of > 0) return static_cast<double>(*us) / static_cast<double>(*of);
  return std::nullopt;
}

Finding processor(const Machine& machine) {
  std::string name = machine.field("proc/cpuinfo", "model name");
  if (name.empty()) name = "unknown";
  return {"processor", name};
}

Finding simd() {
  const auto targets = kernels::targets_here();
  std::string all;
  for (const std::string_view target : targets) all += fmt::format("{}{}", all.empty() ? "" : ", ", target);
  Finding found{"SIMD", fmt::format("{} in use, of {}", targets.front(), all)};
  if (targets.size() > 1 && (targets.front() == "EMU128" || targets.front() == "SCALAR")) {
    found.level = Level::note;
    found.advice = "MOEYARD_TARGET asks for code that is slow and meant for tests; unset it";
  } else if (targets.size() == 1) {
    found.level = Level::note;
    found.advice = "kernels run without vector instructions: take a machine with AVX2 or SVE for speed";
  }
  return found;
}

Finding cores(const Machine& machine) {
  const int mine = cores_of_process();
  Finding found{"cores", fmt::format("{}, row loops on {} threads", mine, parallel_threads())};
  const auto quota = quota_of_cores(machine);
  if (quota && *quota < mine) {
    found.value += fmt::format(", {:.1f} of them by quota", *quota);
    found.level = Level::note;
    found.advice = fmt::format(
        "the container may use {:.1f} cores: more threads than that stop each other; set MOEYARD_THREADS={}",
        *quota, std::max(1, static_cast<int>(*quota)));
  } else if (parallel_threads() > mine) {
    found.level = Level::note;
    found.advice =
        fmt::format("there are fewer cores than threads; set MOEYARD_THREADS={}, or leave it out", mine);
  }
  return found;
}

Finding load(const Machine& machine) {
  const std::string text = machine.text("proc/loadavg");
  double average = 0;
  std::istringstream(text) >> average;
  Finding found{"load", fmt::format("{:.2f}", average)};
  if (average > 0.5 * cores_of_process()) {
    found.level = Level::note;
    found.advice = "other programs are running: times that are measured now say little";
  }
  return found;
}

Finding numa(const Machine& machine) {
  std::int64_t nodes = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(machine.root() / "sys/devices/system/node", error)) {
    const std::string name = entry.path().filename().string();
    nodes += name.starts_with("node") && name.find_first_not_of("0123456789", 4) == std::string::npos ? 1 : 0;
  }
  Finding found{"NUMA nodes", fmt::format("{}", std::max<std::int64_t>(1, nodes))};
  if (nodes > 1) {
    found.level = Level::note;
    found.advice =
        "memory lies on the node that touches it first; for steady times bind a process to one: numactl "
        "--cpunodebind=0 "
        "--membind=0 PROGRAM";
  }
  return found;
}

Finding memory(const Machine& machine) {
  std::int64_t available = 0;
  std::istringstream(machine.field("proc/meminfo", "MemAvailable")) >> available;
  available *= 1024;
  std::optional<std::int64_t> limit = machine.number("sys/fs/cgroup/memory.max");
  if (!limit) limit = machine.number("sys/fs/cgroup/memory/memory.limit_in_bytes");
  Finding found{"memory", size_text(available) + " available"};
  if (limit && *limit < available) {
    found.value += fmt::format(", {} by limit of the container", size_text(*limit));
    available = *limit;
  }
  if (available < 1024 * kMegabyte) {
    found.level = Level::note;
    found.advice = "device memory is memory of this machine: layers of real models need several GiB";
  }
  return found;
}

Finding overcommit(const Machine& machine) {
  const auto mode = machine.number("proc/sys/vm/overcommit_memory");
  Finding found{"overcommit", mode ? fmt::format("{}", *mode) : "unknown"};
  if (mode == 2) {
    found.level = Level::change;
    found.advice =
        "device memory and windows are reserved at once and used in parts, which this mode refuses: sysctl "
        "vm.overcommit_memory=0";
  }
  return found;
}

Finding huge_pages(const Machine& machine) {
  const std::string modes = machine.text("sys/kernel/mm/transparent_hugepage/enabled");
  const std::size_t open = modes.find('['), close = modes.find(']');
  const std::string mode =
      open < close && close != std::string::npos ? modes.substr(open + 1, close - open - 1) : "none";
  Finding found{"huge pages", mode};
  if (mode == "never" || mode == "none") {
    found.level = Level::note;
    found.advice =
        "large blocks are asked for in pages of 2 MiB, which are switched off; moving rows is slower: echo "
        "madvise > "
        "/sys/kernel/mm/transparent_hugepage/enabled";
  }
  return found;
}

// What processes on one host share is in files without a name (src/runtime/shared_memory.h), cut from units of 1 GiB.
Finding shared_memory() {
  const auto limit_of = [](auto resource) {
    rlimit limit{};
    return ::getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY
               ? static_cast<std::int64_t>(std::min<rlim_t>(limit.rlim_cur, INT64_MAX))
               : INT64_MAX;
  };
  const std::int64_t space = limit_of(RLIMIT_AS), file = limit_of(RLIMIT_FSIZE),
                     least = std::min(space, file);
  Finding found{"shared memory", least == INT64_MAX ? "any size" : "at most " + size_text(least)};
  const int descriptor = ::memfd_create("moeyard doctor", MFD_CLOEXEC);
  if (descriptor < 0) {
    found.value = "none";
    found.level = Level::change;
    found.advice =
        "memfd_create fails, so ranks cannot be processes: allow that system call in the container, or make "
        "ranks "
        "threads";
  } else if (::close(descriptor); least < kLeastShared) {
    found.level = Level::note;
    found.advice = fmt::format(
        "ranks that are processes map the memory of all of them, 1 GiB each at least: ulimit {} unlimited",
        space < file ? "-v" : "-f");
  }
  return found;
}

// Threads that the process may have.
Finding threads(const Machine& machine) {
  rlimit limit{};
  std::int64_t most = INT64_MAX;
  if (::getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    most = static_cast<std::int64_t>(limit.rlim_cur);
  for (const char* path :
       {"sys/fs/cgroup/pids.max", "sys/fs/cgroup/pids/pids.max", "proc/sys/kernel/threads-max"})
    if (const auto pids = machine.number(path)) most = std::min(most, *pids);
  Finding found{"threads", most == INT64_MAX ? "any number" : fmt::format("at most {}", most)};
  if (most < kThreadsOfManyRanks) {
    found.level = Level::note;
    found.advice = fmt::format(
        "ranks are threads, and each has a stream with one more: some {} ranks fit; raise ulimit -u, or the "
        "container's "
        "limit of processes, for more",
        most / 3);
  }
  return found;
}

// What UCX, which carries data between hosts, finds here.
Finding between_hosts(const Machine& machine) {
  Finding found{"between hosts", ""};
  void* const ucx = ::dlopen("libucp.so.0", RTLD_LAZY | RTLD_LOCAL);
  if (ucx == nullptr) {
    found.value = "no UCX";
    found.level = Level::note;
    found.advice = "ranks of several hosts speak over UCX: install libucx0";
    return found;
  }
  const auto version = reinterpret_cast<const char* (*)()>(::dlsym(ucx, "ucp_get_version_string"));
  found.value = fmt::format("UCX {}, TCP", version == nullptr ? "of an unknown version" : version());
  std::vector<std::string> adapters;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(machine.root() / "sys/class/infiniband", error))
    adapters.push_back(entry.path().filename().string());
  std::ranges::sort(adapters);
  for (const std::string& adapter : adapters) found.value += fmt::format(", RDMA by {}", adapter);
  return found;
}

Finding open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {"open files", "unknown"};
  Finding found{"open files",
                limit.rlim_cur == RLIM_INFINITY ? "any number" : fmt::format("at most {}", limit.rlim_cur)};
  if (limit.rlim_cur < 256) {
    found.level = Level::note;
    found.advice = "checkpoints of many shards are open at once: ulimit -n 1024";
  }
  return found;
}

Finding mappings(const Machine& machine) {
  const auto most = machine.number("proc/sys/vm/max_map_count");
  Finding found{"mappings", most ? fmt::format("at most {}", *most) : "unknown"};
  if (most && *most < 65530) {
    found.level = Level::note;
    found.advice = "large blocks of device memory are a mapping each: sysctl vm.max_map_count=65530";
  }
  return found;
}

}  // namespace

std::vector<Finding> examine_machine(const fs::path& root) {
  const Machine machine(root);
  return {processor(machine),  simd(),
          cores(machine),      load(machine),
          numa(machine),       memory(machine),
          overcommit(machine), huge_pages(machine),
          shared_memory(),     between_hosts(machine),
          threads(machine),    open_files(),
          mappings(machine)};
}

}  // namespace moeyard::tool
