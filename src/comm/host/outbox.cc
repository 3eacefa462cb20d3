// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/host/outbox.h"

#include <chrono>
#include <mutex>

namespace moeyard::comm {

bool Outbox::read_by_nobody(const Spaces& spaces) const {
  const std::int32_t reader = reader_.load(std::memory_order_acquire);
  return reader == kClosed || !spaces.alive(reader);
}

bool Outbox::push(const Spaces& spaces, const Note& note) {
  constexpr std::chrono::milliseconds kLookEvery{20};
  for (;;) {
    const std::uint32_t seen = room_.changes();
    {
      const std::lock_guard lock(mutex_);
      const std::uint64_t end = end_.load(std::memory_order_relaxed);
      if (end - begin_.load(std::memory_order_acquire) < kMost) {
        notes_[end % kMost] = note;
        end_.store(end + 1, std::memory_order_release);
        bell_.ring();
        return !read_by_nobody(spaces);
      }
    }
    if (read_by_nobody(spaces)) return false;
    room_.wait(seen, std::chrono::steady_clock::now() + kLookEvery);
  }
}

bool Outbox::await_close(const Spaces& spaces, Bell::TimePoint until) const {
  for (;;) {
    const std::uint32_t seen = room_.changes();
    if (read_by_nobody(spaces)) return true;
    if (!room_.wait(seen, until)) return false;
  }
}

std::optional<Note> Outbox::pop() {
  const std::uint64_t begin = begin_.load(std::memory_order_relaxed);
  if (begin == end_.load(std::memory_order_acquire)) return std::nullopt;
  const Note note = notes_[begin % kMost];
  begin_.store(begin + 1, std::memory_order_release);
  if (end_.load(std::memory_order_relaxed) - begin >= kMost) room_.ring();
  return note;
}

}  // namespace moeyard::comm
