// Moeyard. SPDX-License-Identifier: Apache-2.0
// The limit and the simplest rival: each thread copies its rank's rows to where dispatch puts them, or reads the rows of
// its tokens and writes as many bytes as combine does. Nothing is counted, exchanged or added up.
#include <cstdlib>
#include <cstring>

#include "bench/dispatch/scenario.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace bench::dispatch {
namespace {

void stream_copy(void* to, const void* from) {
#ifdef __SSE2__
  auto* out = static_cast<__m128i*>(to);
  const auto* in = static_cast<const __m128i*>(from);
  for (std::int64_t i = 0; i < kRowBytes / 16; i += 4) {
    const __m128i a = _mm_loadu_si128(in + i), b = _mm_loadu_si128(in + i + 1),
                  c = _mm_loadu_si128(in + i + 2), d = _mm_loadu_si128(in + i + 3);
    _mm_stream_si128(out + i, a);
    _mm_stream_si128(out + i + 1, b);
    _mm_stream_si128(out + i + 2, c);
    _mm_stream_si128(out + i + 3, d);
  }
#else
  std::memcpy(to, from, kRowBytes);
#endif
}
void end_of_streaming() {
#ifdef __SSE2__
  _mm_sfence();
#endif
}
void plain_copy(void* to, const void* from) { std::memcpy(to, from, kRowBytes); }

// Reads a row into a few registers.
std::uint64_t read_row(const void* row) {
  const auto* words = static_cast<const std::uint64_t*>(row);
  std::uint64_t lanes[8] = {};
  for (std::int64_t i = 0; i < kRowBytes / 8; i += 8)
    for (std::int64_t j = 0; j < 8; ++j) lanes[j] ^= words[i + j];
  std::uint64_t all = 0;
  for (const std::uint64_t lane : lanes) all ^= lane;
  return all;
}

class CopyLane final : public Lane {
 public:
  using Copy = void (*)(void* to, const void* from);
  explicit CopyLane(Copy copy) : copy_(copy) {
    for (int rank = 0; rank < kRanks; ++rank) {
      rows_[rank] = allocate(problem().rows[rank]);
      sums_[rank] = allocate(kTokens);
    }
  }
  ~CopyLane() override {
    for (int rank = 0; rank < kRanks; ++rank) std::free(rows_[rank]), std::free(sums_[rank]);
  }
  void dispatch(int rank) override {
    for (std::size_t slot = 0; slot < problem().places[rank].size(); ++slot) {
      const Place& place = problem().places[rank][slot];
      copy_(rows_[place.rank] + place.row * kHidden, &problem().tokens[rank][slot / kTopk * kHidden]);
    }
    end_of_streaming();
  }
  void combine(int rank) override {
    std::uint64_t all = 0;
    for (std::size_t t = 0; t < kTokens; ++t) {
      for (std::size_t k = 0; k < kTopk; ++k) {
        const Place& place = problem().places[rank][t * kTopk + k];
        all ^= read_row(rows_[place.rank] + place.row * kHidden);
      }
      copy_(sums_[rank] + t * kHidden, rows_[problem().places[rank][t * kTopk].rank]);
    }
    end_of_streaming();
    read_[rank] = all;
  }
  const std::byte* rows(int rank) const override { return reinterpret_cast<const std::byte*>(rows_[rank]); }
  std::string wrong_rows() const override {
    return compare_rows([this](int rank, std::int64_t row) { return rows_[rank] + row * kHidden; });
  }
  std::string wrong_sums() const override {  // every row occurs 8 times, so the words cancel
    return (read_[0] | read_[1]) == 0 ? std::string() : std::string("the rows were not all read");
  }

 private:
  static std::uint16_t* allocate(std::int64_t rows) {
    const auto bytes = static_cast<std::size_t>(rows * kRowBytes + 0x1FFFFF) / 0x200000 * 0x200000;
    auto* memory = static_cast<std::uint16_t*>(std::aligned_alloc(0x200000, bytes));
    std::memset(memory, 0, bytes);
    return memory;
  }
  const Copy copy_;
  std::uint16_t *rows_[kRanks], *sums_[kRanks];
  std::uint64_t read_[kRanks] = {};
};

}  // namespace

std::unique_ptr<Lane> streaming_copy_lane() { return std::make_unique<CopyLane>(stream_copy); }
std::unique_ptr<Lane> memcpy_lane() { return std::make_unique<CopyLane>(plain_copy); }

}  // namespace bench::dispatch
