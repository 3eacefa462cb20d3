// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// A sequence of at most 256 elements, of which 64 need no allocation.
#ifndef ATB_SVECTOR_H
#define ATB_SVECTOR_H

#include <cstddef>
#include <exception>
#include <initializer_list>
#include <memory>
#include <new>
#include <ostream>
#include <stdexcept>
#include <utility>

namespace atb {

constexpr std::size_t MAX_SVECTOR_SIZE = 256;
constexpr std::size_t DEFAULT_SVECTOR_SIZE = 64;
constexpr bool CHECK_BOUND = true;

struct MaxSizeExceeded : public std::exception {
  const char* what() const noexcept override { return "an SVector holds at most 256 elements"; }
};

// operator[] and at() throw std::out_of_range beyond the end; what would make more than 256 elements throws
// MaxSizeExceeded and changes nothing.
template <typename T>
class SVector {
 public:
  SVector() noexcept : begin_(in_place()), size_(0), capacity_(DEFAULT_SVECTOR_SIZE) {}
  SVector(std::initializer_list<T> list) : SVector() { assign(list.begin(), list.size()); }
  explicit SVector(std::size_t size, const T& value = T()) : SVector() {
    reserve(size);
    while (size_ < size) emplace(value);
  }
  SVector(const SVector& other) : SVector() { assign(other.begin_, other.size_); }
  SVector& operator=(const SVector& other) {
    if (this != &other) assign(other.begin_, other.size_);
    return *this;
  }
  SVector& operator=(std::initializer_list<T> list) {
    assign(list.begin(), list.size());
    return *this;
  }
  ~SVector() {
    clear();
    release();
  }

  void push_back(const T& value) {
    if (size_ < capacity_) {
      emplace(value);
    } else {
      T copy(value);  // value may be an element of this
      reserve(size_ < MAX_SVECTOR_SIZE ? MAX_SVECTOR_SIZE : size_ + 1);
      emplace(std::move(copy));
    }
  }

  T* begin() noexcept { return begin_; }
  const T* begin() const noexcept { return begin_; }
  T* end() noexcept { return begin_ + size_; }
  const T* end() const noexcept { return begin_ + size_; }
  T* data() noexcept { return begin_; }
  const T* data() const noexcept { return begin_; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

  T& operator[](std::size_t i) {
    check(i, size_);
    return begin_[i];
  }
  const T& operator[](std::size_t i) const {
    check(i, size_);
    return begin_[i];
  }
  T& at(std::size_t i) { return (*this)[i]; }
  const T& at(std::size_t i) const { return (*this)[i]; }

  // Puts value in front of element pos.
  void insert(std::size_t pos, const T& value) {
    check(pos, size_ + 1);
    push_back(value);
    for (std::size_t i = size_ - 1; i > pos; --i) std::swap(begin_[i], begin_[i - 1]);
  }

  // The storage is kept.
  void clear() noexcept {
    while (size_ > 0) begin_[--size_].~T();
  }
  // New elements are value-initialised.
  void resize(std::size_t size) {
    reserve(size);
    while (size_ > size) begin_[--size_].~T();
    for (; size_ < size; ++size_) new (static_cast<void*>(begin_ + size_)) T();
  }
  // Elements stay.
  void reserve(std::size_t capacity) {
    if (capacity > MAX_SVECTOR_SIZE) throw MaxSizeExceeded();
    if (capacity <= capacity_) return;
    T* moved = static_cast<T*>(::operator new(capacity * sizeof(T)));
    for (std::size_t i = 0; i < size_; ++i) {
      new (static_cast<void*>(moved + i)) T(std::move(begin_[i]));
      begin_[i].~T();
    }
    release();
    begin_ = moved;
    capacity_ = capacity;
  }

  bool operator==(const SVector& other) const {
    if (size_ != other.size_) return false;
    for (std::size_t i = 0; i < size_; ++i)
      if (!(begin_[i] == other.begin_[i])) return false;
    return true;
  }
  bool operator!=(const SVector& other) const { return !(*this == other); }
  // The first difference decides, else the length.
  bool operator<(const SVector& other) const {
    for (std::size_t i = 0; i < size_ && i < other.size_; ++i)
      if (begin_[i] < other.begin_[i] || other.begin_[i] < begin_[i]) return begin_[i] < other.begin_[i];
    return size_ < other.size_;
  }

 private:
  static void check(std::size_t i, std::size_t end) {
    if (CHECK_BOUND && i >= end) throw std::out_of_range("an index lies beyond the end of an SVector");
  }
  T* in_place() noexcept { return reinterpret_cast<T*>(&storage_); }
  template <typename Value>
  void emplace(Value&& value) {
    new (static_cast<void*>(begin_ + size_)) T(std::forward<Value>(value));
    ++size_;
  }
  void assign(const T* from, std::size_t size) {
    if (size > MAX_SVECTOR_SIZE) throw MaxSizeExceeded();
    clear();
    reserve(size);
    while (size_ < size) emplace(from[size_]);
  }
  void release() noexcept {
    if (begin_ != in_place()) ::operator delete(begin_);
  }

  T* begin_;
  std::size_t size_;
  std::size_t capacity_;
  alignas(T) unsigned char storage_[DEFAULT_SVECTOR_SIZE * sizeof(T)];
};

// The elements with "," in between.
template <typename T>
std::ostream& operator<<(std::ostream& stream, const SVector<T>& vector) {
  for (std::size_t i = 0; i < vector.size(); ++i) stream << (i == 0 ? "" : ",") << vector[i];
  return stream;
}

}  // namespace atb
#endif  // ATB_SVECTOR_H
