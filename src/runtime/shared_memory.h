// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "runtime/allocator.h"

namespace moeyard::runtime {

// A file in memory, mapped as a whole: of this process, or of another one that handed over its descriptor. It has
// no name, does not count against /dev/shm, and is gone with the last process that has it mapped, however that
// one ends. Sparse: pages appear, zeroed, when somebody touches them.
class MappedFile {
 public:
  // Maps a file of that size; takes the descriptor. 207001: no address space.
  static Result<MappedFile> map(int descriptor, std::uint64_t bytes);
  // Makes one of at most that size.
  static Result<MappedFile> make(std::uint64_t bytes);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  int descriptor() const { return descriptor_; }
  std::byte* begin() const { return begin_; }
  std::uint64_t bytes() const { return bytes_; }
  bool holds(const void* begin, std::uint64_t bytes) const {
    const auto offset = reinterpret_cast<std::uint64_t>(begin) - reinterpret_cast<std::uint64_t>(begin_);
    return offset < bytes_ && bytes <= bytes_ - offset;
  }

 private:
  MappedFile(int descriptor, std::byte* begin, std::uint64_t bytes)
      : descriptor_(descriptor), begin_(begin), bytes_(bytes) {}
  int descriptor_;
  std::byte* begin_;
  std::uint64_t bytes_;
};

// Free parts of [begin, end): the smallest that fits is taken, neighbours grow together again.
class FreeRanges {
 public:
  FreeRanges(std::uint64_t begin, std::uint64_t end) { give(begin, end - begin); }
  std::optional<std::uint64_t> take(std::uint64_t bytes);
  void give(std::uint64_t begin, std::uint64_t bytes);

 private:
  std::map<std::uint64_t, std::uint64_t> bytes_at_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;  // (bytes, begin)
};

// Device memory that processes of this host can address: blocks cut from one file, in which another process finds
// a block at the same offset. What finds no place in it is anonymous memory.
class SharedMemory final : public Allocator {
 public:
  explicit SharedMemory(MappedFile file);
  void* allocate(std::uint64_t bytes) override;
  void release(void* begin, std::uint64_t bytes) noexcept override;
  const MappedFile& file() const { return file_; }

 private:
  std::uint64_t round(std::uint64_t bytes) const;
  FreeRanges& ranges_for(std::uint64_t bytes);

  MappedFile file_;
  std::mutex mutex_;
  FreeRanges small_, large_;  // below 2 MiB, and in units of 2 MiB
};

// Device memory comes from shared memory from now on, for good. 207001: the system has none.
Result<SharedMemory*> share_device_memory(std::string_view function);
SharedMemory* shared_memory();  // null: not yet

}  // namespace moeyard::runtime
