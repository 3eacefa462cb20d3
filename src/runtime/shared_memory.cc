// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/boundary.h"
#include "base/errors.h"

namespace moeyard::runtime {
namespace {

constexpr std::uint64_t kLargeUnit = UINT64_C(2) << 20;
constexpr std::uint64_t kSmallUnit = 64;
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kReturnedBytes = 128 * 1024;  // freed blocks of this size give their pages back

// Address space for twice the memory of the machine, as blocks may be sparse and freed ones leave gaps. A process
// maps the file of each of its peers, and has 128 TiB for all of them.
constexpr std::uint64_t kLeastBytes = UINT64_C(1) << 30;
#ifdef __SANITIZE_THREAD__  // under which there are some hundred GiB in all
constexpr std::uint64_t kMostBytes = UINT64_C(8) << 30;
#else
constexpr std::uint64_t kMostBytes = UINT64_C(512) << 30;
#endif
std::uint64_t wanted_bytes() {
  const auto memory =
      static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return std::clamp(std::bit_ceil(2 * memory), kLeastBytes, kMostBytes);
}

constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

Status no_memory(const char* step, std::uint64_t bytes, int error) {
  const char* limit = error == EFBIG    ? "size of files (ulimit -f)"
                      : error == EMFILE ? "number of open files (ulimit -n)"
                                        : "address space (ulimit -v)";
  return fail(
      ACL_ERROR_RT_MEMORY_ALLOCATION, TextCode::runtime_resource,
      "{} {} bytes of memory to share with other processes failed ({}); raise the limit of {} if there is "
      "one",
      step, bytes, std::strerror(error), limit);
}

// A file that outgrows this limit is not only refused: the kernel sends SIGXFSZ, which ends the process.
bool over_limit_of_files(std::uint64_t bytes) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur;
}

}  // namespace

Result<MappedFile> MappedFile::map(int descriptor, std::uint64_t bytes) {
  const auto failed = [&] {
    const int error = errno;
    close(descriptor);
    return no_memory("mapping", bytes, error);
  };
  // Address space for one unit more, so that the file begins on one.
  void* space =
      mmap(nullptr, bytes + kLargeUnit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) return failed();
  auto* const first = static_cast<std::byte*>(space);
  const auto address = reinterpret_cast<std::uint64_t>(first);
  std::byte* const begin = first + (round_up(address, kLargeUnit) - address);
  if (begin != first) munmap(first, static_cast<std::size_t>(begin - first));
  munmap(begin + bytes, static_cast<std::size_t>(first + kLargeUnit - begin));
  if (mmap(begin, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, descriptor, 0) ==
      MAP_FAILED) {
    Status failure = failed();
    munmap(begin, bytes);
    return failure;
  }
  madvise(begin, bytes, MADV_DONTDUMP);  // hints, both
  madvise(begin, bytes, MADV_HUGEPAGE);
  return MappedFile(descriptor, begin, bytes);
}

Result<MappedFile> MappedFile::make(std::uint64_t bytes) {
  if (over_limit_of_files(bytes)) return no_memory("reserving", bytes, EFBIG);
  const int descriptor = memfd_create("moeyard", MFD_CLOEXEC);
  if (descriptor < 0) return no_memory("making", bytes, errno);
  if (ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) {
    const int error = errno;
    close(descriptor);
    return no_memory("reserving", bytes, error);
  }
  return map(descriptor, bytes);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), begin_(other.begin_), bytes_(other.bytes_) {}

MappedFile::~MappedFile() {
  if (descriptor_ < 0) return;
  munmap(begin_, bytes_);
  close(descriptor_);
}

std::optional<std::uint64_t> FreeRanges::take(std::uint64_t bytes) {
  const auto found = by_size_.lower_bound({bytes, 0});
  if (found == by_size_.end()) return std::nullopt;
  const auto [size, begin] = *found;
  by_size_.erase(found);
  bytes_at_.erase(begin);
  if (size > bytes) {
    bytes_at_[begin + bytes] = size - bytes;
    by_size_.emplace(size - bytes, begin + bytes);
  }
  return begin;
}

void FreeRanges::give(std::uint64_t begin, std::uint64_t bytes) {
  const auto after = bytes_at_.lower_bound(begin);
  const auto join = [&](auto range) {
    by_size_.erase({range->second, range->first});
    bytes += range->second;
    begin = std::min(begin, range->first);
    return bytes_at_.erase(range);
  };
  auto next = after;
  if (after != bytes_at_.end() && after->first == begin + bytes) next = join(after);
  if (next != bytes_at_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == begin) join(before);
  }
  bytes_at_[begin] = bytes;
  by_size_.emplace(bytes, begin);
}

SharedMemory::SharedMemory(MappedFile file)
    : file_(std::move(file)),
      small_(0, file_.bytes() / 8 / kLargeUnit * kLargeUnit),
      large_(file_.bytes() / 8 / kLargeUnit * kLargeUnit, file_.bytes() / kLargeUnit * kLargeUnit) {}

std::uint64_t SharedMemory::round(std::uint64_t bytes) const {
  return round_up(bytes, bytes < kLargeUnit ? kSmallUnit : kLargeUnit);
}

FreeRanges& SharedMemory::ranges_for(std::uint64_t bytes) { return bytes < kLargeUnit ? small_ : large_; }

void* SharedMemory::allocate(std::uint64_t bytes) {
  std::optional<std::uint64_t> offset;
  if (bytes <= file_.bytes()) {
    const std::lock_guard lock(mutex_);
    offset = ranges_for(bytes).take(round(bytes));
  }
  return offset ? file_.begin() + *offset : anonymous_allocator().allocate(bytes);
}

void SharedMemory::release(void* begin, std::uint64_t bytes) noexcept {
  if (!file_.holds(begin, bytes)) return anonymous_allocator().release(begin, bytes);
  const auto offset = static_cast<std::uint64_t>(static_cast<std::byte*>(begin) - file_.begin());
  if (bytes >= kReturnedBytes) {
    const std::uint64_t first = round_up(offset, kPage);
    const std::uint64_t last = bytes < kLargeUnit ? (offset + bytes) / kPage * kPage : offset + round(bytes);
    fallocate(file_.descriptor(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first),
              static_cast<off_t>(last - first));
  }
  const std::lock_guard lock(mutex_);
  try {
    ranges_for(bytes).give(offset, round(bytes));
  } catch (const std::bad_alloc&) {  // the place is lost, not its pages
  }
}

namespace {

std::mutex making;
std::atomic<SharedMemory*> made{nullptr};  // lives as long as the process

}  // namespace

SharedMemory* shared_memory() { return made.load(std::memory_order_acquire); }

Result<SharedMemory*> share_device_memory(std::string_view function) {
  if (SharedMemory* memory = shared_memory()) return memory;
  const std::lock_guard lock(making);
  if (SharedMemory* memory = shared_memory()) return memory;
  watch_for_fork();
  Status failure;
  for (std::uint64_t bytes = wanted_bytes(); bytes >= kLeastBytes; bytes /= 2) {
    auto file = MappedFile::make(bytes);
    if (!file) {
      failure = file.error();
      continue;
    }
    auto* memory = new SharedMemory(*std::move(file));
    made.store(memory, std::memory_order_release);
    set_device_allocator(*memory);
    return memory;
  }
  return Status(failure.code(), fmt::format("{}: {}", function, failure.message()));
}

}  // namespace moeyard::runtime
