// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/host/peer_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <random>

#include "base/errors.h"

namespace moeyard::comm {
namespace {

// A process holds a lock on the first byte of its shared memory for as long as it lives: the system takes it away
// when the process ends, after its memory is gone. It is a lock of the process, so a forked child has none; and it
// would be lost with the first descriptor of the file that the process closes, so there must be one only.
struct flock first_byte(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  return lock;
}

struct Known {
  std::mutex mutex;
  std::shared_ptr<const PeerProcess> self;
  std::map<ProcessId, std::weak_ptr<const PeerProcess>> others;
};
Known& known() {
  static auto* made = new Known;
  return *made;
}

}  // namespace

ProcessId this_process() {
  static const ProcessId id = [] {
    std::random_device random;
    ProcessId made;
    for (std::uint64_t& word : made) word = static_cast<std::uint64_t>(random()) << 32 | random();
    return made;
  }();
  return id;
}

PeerProcess::PeerProcess(const ProcessId& id, std::optional<runtime::MappedFile> mapped,
                         const runtime::MappedFile* own)
    : id_(id), mapped_(std::move(mapped)), memory_(own != nullptr ? own : &*mapped_) {}

Result<std::shared_ptr<const PeerProcess>> PeerProcess::self(std::string_view function) {
  const runtime::SharedMemory* memory = MOEYARD_TRY(runtime::share_device_memory(function));
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  if (all.self != nullptr) return all.self;
  struct flock held = first_byte(F_WRLCK);
  if (fcntl(memory->file().descriptor(), F_SETLK, &held) != 0)
    return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, TextCode::runtime_resource,
                "{}: locking the memory to share with other processes failed ({})", function,
                std::strerror(errno));
  all.self = std::make_shared<const PeerProcess>(this_process(), std::nullopt, &memory->file());
  return all.self;
}

Result<std::shared_ptr<const PeerProcess>> PeerProcess::adopt(const ProcessId& id, int descriptor,
                                                              std::uint64_t bytes) {
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  std::weak_ptr<const PeerProcess>& entry = all.others[id];
  if (auto process = entry.lock()) {
    close(descriptor);
    return process;
  }
  std::erase_if(all.others, [&](const auto& other) { return other.first != id && other.second.expired(); });
  auto process = std::make_shared<const PeerProcess>(
      id, MOEYARD_TRY(runtime::MappedFile::map(descriptor, bytes)), nullptr);
  all.others[id] = process;
  return process;
}

bool PeerProcess::alive() const {
  if (!mapped_) return true;
  struct flock asked = first_byte(F_WRLCK);
  return fcntl(memory_->descriptor(), F_GETLK, &asked) != 0 || asked.l_type != F_UNLCK;
}

}  // namespace moeyard::comm
