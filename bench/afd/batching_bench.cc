// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnFfnWorkerBatching (both phases and synchronising) against the limit: the same rows copied from the same places
// with streaming stores on the same threads, where nothing is sorted or labelled. Lanes take turns; `of_limit` is the
// limit's median time over ours, `cpu_of_limit` the same of processor time, which a busy machine disturbs less.
#include <benchmark/benchmark.h>

#include <time.h>

#include <chrono>

#include "base/parallel.h"
#include "bench/afd/worker.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace bench::afd {
namespace {

constexpr Shape kShapes[] = {
    {"decode_a4_bs8_k9_h7168_bf16", 4, 8, 9, 32, 7168, 1},
    {"a16_bs16_k9_h7168_bf16", 16, 16, 9, 32, 7168, 1},
    {"a16_bs32_k9_h7168_int8", 16, 32, 9, 32, 7168, 2},
};

void stream_copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
#ifdef __SSE2__
  for (std::int64_t i = 0; i < bytes; i += 64)
    for (std::int64_t j = i; j < i + 64; j += 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + j),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + j)));
#else
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
#endif
}

// Where the rows lie in the order in which batching gives them.
std::vector<const std::byte*> rows_in_order(const FfnWorker& worker) {
  const Shape& s = worker.shape;
  const std::int64_t of_session = std::int64_t{s.tokens} * s.slots;
  std::vector<std::vector<const std::byte*>> by_expert(s.experts);
  for (std::uint32_t session = 0; session < s.sessions; ++session)
    for (std::int64_t i = 0; i < of_session; ++i)
      by_expert[(session + static_cast<std::uint64_t>(i) * 5) % s.experts].push_back(
          worker.data() + (session * of_session + i) * static_cast<std::int64_t>(worker.layout.slot_bytes));
  std::vector<const std::byte*> rows;
  for (const auto& of_expert : by_expert) rows.insert(rows.end(), of_expert.begin(), of_expert.end());
  return rows;
}

class Limit {
 public:
  explicit Limit(const FfnWorker& worker)
      : rows_(rows_in_order(worker)), row_bytes_(worker.shape.row_bytes()) {
    aclrtMalloc(&out_, rows_.size() * static_cast<std::size_t>(row_bytes_), ACL_MEM_MALLOC_HUGE_FIRST);
    std::memset(out_, 0, rows_.size() * static_cast<std::size_t>(row_bytes_));
  }
  ~Limit() { aclrtFree(out_); }
  void copy() {
    moeyard::parallel_for(static_cast<std::int64_t>(rows_.size()),
                          std::max<std::int64_t>(262144 / row_bytes_, 1), [this](moeyard::Range range) {
                            for (std::int64_t i = range.begin; i < range.end; ++i)
                              stream_copy(static_cast<std::byte*>(out_) + i * row_bytes_,
                                          rows_[static_cast<std::size_t>(i)], row_bytes_);
#ifdef __SSE2__
                            _mm_sfence();
#endif
                          });
  }
  bool equals(const void* y) const {
    return std::memcmp(out_, y, rows_.size() * static_cast<std::size_t>(row_bytes_)) == 0;
  }

 private:
  const std::vector<const std::byte*> rows_;
  const std::int64_t row_bytes_;
  void* out_ = nullptr;
};

struct Times {
  std::vector<double> wall, cpu;
};
template <class Part>
void add_time(Times& times, Part&& part) {
  const auto cpu_now = [] {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  };
  const double cpu_begin = cpu_now();
  const auto begin = std::chrono::steady_clock::now();
  part();
  times.wall.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  times.cpu.push_back(cpu_now() - cpu_begin);
}

void batching(benchmark::State& state, const Shape& shape) {
  FfnWorker worker(shape);
  for (std::uint32_t session = 0; session < shape.sessions; ++session) worker.send(session);
  if (!worker.ready_to_run || worker.schedule() != 0 || worker.batch() != 0 || worker.synchronize() != 0)
    return state.SkipWithError("the calls fail");
  Limit limit(worker);
  limit.copy();
  if (!limit.equals(worker.y_data)) return state.SkipWithError("wrong rows");
  Times own, other;
  for (auto _ : state) {
    add_time(other, [&] { limit.copy(); });
    add_time(own, [&] { worker.batch(), worker.synchronize(); });
    state.SetIterationTime(own.wall.back());
  }
  const auto bytes = static_cast<double>(shape.rows() * shape.row_bytes());
  state.counters["GB/s"] = bytes / median(own.wall) / 1e9;
  state.counters["limit_GB/s"] = bytes / median(other.wall) / 1e9;
  state.counters["of_limit"] = median(other.wall) / median(own.wall);
  state.counters["cpu_of_limit"] = median(other.cpu) / median(own.cpu);
}

[[maybe_unused]] const bool registered = [] {
  for (const Shape& shape : kShapes)
    benchmark::RegisterBenchmark((std::string("batching/") + shape.name).c_str(), batching, shape)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  return true;
}();

}  // namespace
}  // namespace bench::afd
