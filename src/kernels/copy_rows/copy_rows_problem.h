// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstring>
#include <random>
#include <vector>

#include "kernels/copy_rows/copy_rows.h"

namespace moeyard::kernels {

// Rows and the places that a shuffle gives their slots; every fifth slot has none.
class CopyRowsProblem {
 public:
  struct Shape {
    const char* name;
    std::int64_t tokens, slots, row_bytes, gap;  // gap: bytes between places, to misalign them
    bool every_slot = false;
  };

  CopyRowsProblem(const Shape& shape, bool streaming) : shape_(shape), streaming_(streaming) {
    std::mt19937 random(1);
    const std::int64_t places = shape.tokens * shape.slots;
    rows_.resize(static_cast<std::size_t>(shape.tokens * row_stride()));
    for (std::byte& byte : rows_) byte = static_cast<std::byte>(random());
    out_.resize(static_cast<std::size_t>(places * place_stride() + 64), std::byte{0xAB});
    std::vector<std::int64_t> order(static_cast<std::size_t>(places));
    for (std::int64_t i = 0; i < places; ++i) order[static_cast<std::size_t>(i)] = i;
    std::shuffle(order.begin(), order.end(), random);
    for (std::int64_t s = 0; s < places; ++s) {
      const bool none = !shape.every_slot && s % 5 == 4;
      offset_.push_back(none ? -1 : order[static_cast<std::size_t>(s)] * place_stride());
      places_.push_back(none ? nullptr : out_.data() + offset_.back());
    }
  }

  CopyRows args() const {
    return {rows_.data(), row_stride(), shape_.row_bytes, places_.data(), shape_.slots, streaming_};
  }
  Range tokens() const { return {0, shape_.tokens}; }
  const std::vector<std::byte>& out() const { return out_; }
  std::vector<std::byte> expected() const {
    std::vector<std::byte> want(out_.size(), std::byte{0xAB});
    for (std::size_t s = 0; s < offset_.size(); ++s)
      for (std::int64_t i = 0; offset_[s] >= 0 && i < shape_.row_bytes; ++i)
        want[static_cast<std::size_t>(offset_[s] + i)] =
            rows_[s / static_cast<std::size_t>(shape_.slots) * static_cast<std::size_t>(row_stride()) +
                  static_cast<std::size_t>(i)];
    return want;
  }

 private:
  std::int64_t row_stride() const { return shape_.row_bytes + shape_.gap; }
  std::int64_t place_stride() const { return shape_.row_bytes + shape_.gap; }

  const Shape shape_;
  const bool streaming_;
  std::vector<std::byte> rows_, out_;
  std::vector<std::int64_t> offset_;
  std::vector<std::byte*> places_;
};

}  // namespace moeyard::kernels
