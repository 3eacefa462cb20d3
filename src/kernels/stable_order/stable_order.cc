// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/stable_order/stable_order.h"

#include <algorithm>
#include <bit>

#include "base/parallel.h"

namespace moeyard::kernels {
namespace {

// Items are counted and moved in blocks, one per task; each block has a counter per digit. 4096 counters stay in
// the nearest caches, and few models have more experts, so that one pass does it.
constexpr int kMostDigitBits = 12;
constexpr std::int64_t kItemsPerBlock = 32768;
constexpr std::int64_t kMostBlocks = 64;

std::int64_t blocks_of(std::int64_t n) {
  return std::clamp<std::int64_t>((n + kItemsPerBlock - 1) / kItemsPerBlock, 1, kMostBlocks);
}

// One digit of the keys: bits [shift, shift + bits).
struct Digit {
  int shift, bits;
  std::uint32_t of(std::uint32_t key) const { return (key >> shift) & ((1u << bits) - 1); }
  std::int64_t buckets() const { return INT64_C(1) << bits; }
};

class Pass {
 public:
  Pass(const StableOrder& p, Digit digit, const std::int32_t* from, std::int32_t* to,
       std::int32_t* row_of_item, std::int32_t* counters)
      : p_(p),
        digit_(digit),
        from_(from),
        to_(to),
        row_of_item_(row_of_item),
        counters_(counters),
        blocks_(blocks_of(p.n)) {}

  void run() const {
    for_each_block([this](std::int64_t block) { count(block); });
    number();
    for_each_block([this](std::int64_t block) { move(block); });
  }

 private:
  template <class Body>
  void for_each_block(Body&& body) const {
    parallel_for(blocks_, 1, [&](Range blocks) {
      for (std::int64_t block = blocks.begin; block < blocks.end; ++block) body(block);
    });
  }
  Range items_of(std::int64_t block) const { return {p_.n * block / blocks_, p_.n * (block + 1) / blocks_}; }
  std::int32_t* counters_of(std::int64_t block) const { return counters_ + block * digit_.buckets(); }
  std::int32_t item(std::int64_t place) const {
    return from_ == nullptr ? static_cast<std::int32_t>(place) : from_[place];
  }

  void count(std::int64_t block) const {
    std::int32_t* counter = counters_of(block);
    std::fill_n(counter, digit_.buckets(), 0);
    const Range places = items_of(block);
    for (std::int64_t i = places.begin; i < places.end; ++i) ++counter[digit_.of(p_.keys[item(i)])];
  }

  // Turns counts into the first place of each digit's items of each block.
  void number() const {
    std::int32_t next = 0;
    for (std::int64_t bucket = 0; bucket < digit_.buckets(); ++bucket)
      for (std::int64_t block = 0; block < blocks_; ++block) {
        std::int32_t& counter = counters_of(block)[bucket];
        next += counter;
        counter = next - counter;
      }
  }

  void move(std::int64_t block) const {
    std::int32_t* next = counters_of(block);
    const Range places = items_of(block);
    for (std::int64_t i = places.begin; i < places.end; ++i) {
      const std::int32_t moved = item(i);
      const std::int32_t row = next[digit_.of(p_.keys[moved])]++;
      to_[row] = moved;
      if (row_of_item_ != nullptr) row_of_item_[moved] = row;
    }
  }

  const StableOrder& p_;
  const Digit digit_;
  const std::int32_t* const from_;  // null: the items in their own order
  std::int32_t* const to_;
  std::int32_t* const row_of_item_;
  std::int32_t* const counters_;
  const std::int64_t blocks_;
};

}  // namespace

std::int64_t stable_order_scratch(std::int64_t n) { return n + (blocks_of(n) << kMostDigitBits); }

void stable_order(const StableOrder& p) {
  const auto largest_key = static_cast<std::uint64_t>(std::max<std::int64_t>(p.key_limit, 2) - 1);
  const int key_bits = static_cast<int>(std::bit_width(largest_key));
  const int passes = (key_bits + kMostDigitBits - 1) / kMostDigitBits;
  const int digit_bits = (key_bits + passes - 1) / passes;
  const std::int32_t* from = nullptr;
  for (int pass = 0; pass < passes; ++pass) {
    const bool last = pass + 1 == passes;
    std::int32_t* to = (passes - pass) % 2 == 1 ? p.item_of_row : p.scratch;
    Pass(p, {pass * digit_bits, digit_bits}, from, to, last ? p.row_of_item : nullptr, p.scratch + p.n).run();
    from = to;
  }
}

}  // namespace moeyard::kernels
