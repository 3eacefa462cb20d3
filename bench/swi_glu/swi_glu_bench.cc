// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnSwiGlu against the limit of memory: reading both halves and writing one, with the same threads.
#include <cstring>

#include "aclnnop/aclnn_swi_glu.h"
#include "base/parallel.h"
#include "bench/operator_call.h"

namespace bench {
namespace {

struct Shape {
  const char* name;
  std::int64_t rows, columns;  // of the result
};

constexpr Shape kShapes[] = {{"cache_m64_n1536", 64, 1536}, {"memory_m8192_n2048", 8192, 2048}};

void swi_glu(benchmark::State& state, Shape s) {
  using moeyard::Bf16;
  Stream stream;
  DeviceTensor x({s.rows, 2 * s.columns}, ACL_BF16, 2), out({s.rows, s.columns}, ACL_BF16, 2);
  fill<Bf16>(x), fill<Bf16>(out);
  const auto ours = [&] {
    stream.run(
        [&](std::uint64_t* size, aclOpExecutor** executor) {
          return aclnnSwiGluGetWorkspaceSize(x, -1, out, size, executor);
        },
        aclnnSwiGlu);
  };
  const auto limit = [&] {
    moeyard::parallel_for(s.rows, std::max<std::int64_t>(1, 16384 / s.columns), [&](moeyard::Range rows) {
      for (std::int64_t r = rows.begin; r < rows.end; ++r) {
        const auto* first = reinterpret_cast<const std::uint64_t*>(x.data<Bf16>() + r * 2 * s.columns);
        const auto* second = first + s.columns / 4;
        auto* to = reinterpret_cast<std::uint64_t*>(out.data<Bf16>() + r * s.columns);
        for (std::int64_t i = 0; i < s.columns / 4; ++i) to[i] = first[i] ^ second[i];
      }
    });
  };
  race(state, static_cast<double>(3 * s.rows * s.columns * 2), "GB/s", ours, limit);
}

[[maybe_unused]] const bool registered = [] {
  for (const Shape& shape : kShapes)
    benchmark::RegisterBenchmark((std::string("swi_glu/bf16/") + shape.name).c_str(), swi_glu, shape)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  return true;
}();

}  // namespace
}  // namespace bench
