// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace moeyard::ops {

// A piece of a call's workspace: `count` elements of T.
template <class T>
struct Part {
  std::int64_t offset = 0, count = 0;
  T* in(std::byte* workspace) const { return reinterpret_cast<T*>(workspace + offset); }
  std::span<T> span_in(std::byte* workspace) const {
    return {in(workspace), static_cast<std::size_t>(count)};
  }
};

// Cuts a workspace into parts, each on a cache line of its own, in phase one.
class Scratch {
 public:
  template <class T>
  Part<T> add(std::int64_t count) {
    const Part<T> part{bytes_, count};
    bytes_ += (count * static_cast<std::int64_t>(sizeof(T)) + kLine - 1) / kLine * kLine;
    return part;
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  static constexpr std::int64_t kLine = 64;
  std::int64_t bytes_ = 0;
};

}  // namespace moeyard::ops
