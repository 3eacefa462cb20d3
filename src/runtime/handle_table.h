// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace moeyard::runtime {

// Handles of one kind of object. A handle is no address but a number: kind, generation and slot, so one that
// was destroyed, belongs to another kind or was never made is recognised in constant time.
//
// T has `static constexpr std::uint8_t kHandleKind` of its own. Threads: everything may be called at any
// time.
template <class T>
class HandleTable {
 public:
  // At most 4 Mi objects live at a time; null when they all do.
  void* add(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    if (free_.empty() && !grow()) return nullptr;
    const std::uint32_t index = free_.back();
    free_.pop_back();
    Slot& slot = slot_at(index);
    const SlotLock guard(slot);
    slot.object = std::move(object);
    return encode(index, slot.generation);
  }

  // Null if the handle is not alive.
  std::shared_ptr<T> find(const void* handle) const {
    Slot* slot = decode(handle);
    if (slot == nullptr) return nullptr;
    const SlotLock guard(*slot);
    return slot->generation == generation_of(handle) ? slot->object : nullptr;
  }

  // Takes the handle out of use; null if it was not alive, so of two threads only one gets the object.
  std::shared_ptr<T> remove(const void* handle) {
    Slot* slot = decode(handle);
    if (slot == nullptr) return nullptr;
    const std::lock_guard lock(mutex_);
    const SlotLock guard(*slot);
    if (slot->generation != generation_of(handle) || slot->object == nullptr) return nullptr;
    ++slot->generation;
    free_.push_back(index_of(handle));
    return std::move(slot->object);
  }

  // Takes every object for which the condition holds out of use.
  template <class Condition>
  std::vector<std::shared_ptr<T>> remove_if(const Condition& condition) {
    std::vector<std::shared_ptr<T>> removed;
    const std::lock_guard lock(mutex_);
    const std::uint32_t slots = slots_.load(std::memory_order_relaxed);
    for (std::uint32_t index = 0; index < slots; ++index) {
      Slot& slot = slot_at(index);
      const SlotLock guard(slot);
      if (slot.object == nullptr || !condition(*slot.object)) continue;
      ++slot.generation;
      free_.push_back(index);
      removed.push_back(std::move(slot.object));
      slot.object = nullptr;
    }
    return removed;
  }

  // The objects that are alive at some time during the call.
  std::vector<std::shared_ptr<T>> all() const {
    std::vector<std::shared_ptr<T>> found;
    const std::uint32_t slots = slots_.load(std::memory_order_acquire);
    for (std::uint32_t index = 0; index < slots; ++index) {
      Slot& slot = slot_at(index);
      const SlotLock guard(slot);
      if (slot.object != nullptr) found.push_back(slot.object);
    }
    return found;
  }

 private:
  static constexpr std::uint32_t kChunk = 1024;
  static constexpr std::uint32_t kChunks = 4096;

  struct Slot {
    std::atomic_flag locked;
    std::uint32_t generation = 1;
    std::shared_ptr<T> object;
  };
  // Held for a few instructions only: a mutex would double the cost of finding a stream.
  class SlotLock {
   public:
    explicit SlotLock(Slot& slot) : slot_(slot) {
      while (slot_.locked.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
    }
    ~SlotLock() { slot_.locked.clear(std::memory_order_release); }

   private:
    Slot& slot_;
  };

  // kind: 8 bits, generation: 32, index: 22. The low two bits stay clear, as in an address.
  static void* encode(std::uint32_t index, std::uint32_t generation) {
    const std::uint64_t bits =
        std::uint64_t{T::kHandleKind} << 56 | std::uint64_t{generation} << 24 | std::uint64_t{index} << 2;
    return reinterpret_cast<void*>(bits);  // generation is never 0, so neither is this
  }
  static std::uint32_t generation_of(const void* handle) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uint64_t>(handle) >> 24);
  }
  static std::uint32_t index_of(const void* handle) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uint64_t>(handle) & 0xFFFFFFu) >> 2;
  }
  Slot* decode(const void* handle) const {
    const auto bits = reinterpret_cast<std::uint64_t>(handle);
    if (bits >> 56 != T::kHandleKind || (bits & 3) != 0) return nullptr;
    const std::uint32_t index = index_of(handle);
    return index < slots_.load(std::memory_order_acquire) ? &slot_at(index) : nullptr;
  }
  Slot& slot_at(std::uint32_t index) const { return (*chunks_[index / kChunk])[index % kChunk]; }

  bool grow() {
    const std::uint32_t slots = slots_.load(std::memory_order_relaxed);
    if (slots == kChunk * kChunks) return false;
    chunks_[slots / kChunk] = std::make_unique<std::array<Slot, kChunk>>();
    free_.reserve(slots + kChunk);  // so that remove() never allocates
    for (std::uint32_t i = kChunk; i-- > 0;) free_.push_back(slots + i);
    slots_.store(slots + kChunk, std::memory_order_release);
    return true;
  }

  std::mutex mutex_;  // free_ and growth
  std::vector<std::uint32_t> free_;
  std::atomic<std::uint32_t> slots_{0};
  std::array<std::unique_ptr<std::array<Slot, kChunk>>, kChunks> chunks_;
};

}  // namespace moeyard::runtime
