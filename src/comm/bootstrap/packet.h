// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace moeyard::comm {

// Numbers and texts one after the other, as ranks send them while they connect. All hosts of a communicator have
// the same order of bytes.
class PacketWriter {
 public:
  template <class T>
  PacketWriter& add(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  PacketWriter& text(std::string_view text) {
    add(static_cast<std::uint32_t>(text.size()));
    bytes_.append(text);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Whatever a stranger sends: what is not there reads as zeros, and ok() says so.
class PacketReader {
 public:
  explicit PacketReader(std::string_view bytes) : left_(bytes) {}
  template <class T>
  T take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (left_.size() < sizeof value) {
      ok_ = false;
      return value;
    }
    std::memcpy(static_cast<void*>(&value), left_.data(), sizeof value);
    left_.remove_prefix(sizeof value);
    return value;
  }
  std::string text() {
    const auto size = take<std::uint32_t>();
    if (left_.size() < size) {
      ok_ = false;
      return {};
    }
    std::string text(left_.substr(0, size));
    left_.remove_prefix(size);
    return text;
  }
  // A number of entries to come, each of at least `bytes`.
  std::size_t count(std::size_t bytes) {
    const auto count = take<std::uint32_t>();
    if (left_.size() / bytes < count) ok_ = false;
    return ok_ ? count : 0;
  }
  bool ok() const { return ok_; }
  std::string_view rest() const { return left_; }

 private:
  std::string_view left_;
  bool ok_ = true;
};

}  // namespace moeyard::comm
