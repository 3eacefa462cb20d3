// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnGroupedMatmulV4 against oneDNN's fp32 sgemm of the same shapes, one call per expert: with all its threads in each
// call, or calls in parallel with one thread each, whichever is faster. Weights lie as models store them, [N, K] per expert,
// seen as transposed. oneDNN is given fp32 weights and rows, ours FP32 or BF16.
#include <dnnl.h>
#include <omp.h>

#include <cmath>

#include "aclnnop/aclnn_grouped_matmul_v4.h"
#include "base/parallel.h"
#include "bench/operator_call.h"

namespace bench {
namespace {

struct Shape {
  const char* name;
  std::int64_t experts, rows, depth, columns;  // rows of each expert
};

constexpr Shape kShapes[] = {
    {"prefill_e8_m512_k2048_n1536", 8, 512, 2048, 1536}, {"batch_e8_m64_k2048_n1536", 8, 64, 2048, 1536},
    {"decode_e32_m8_k2048_n1536", 32, 8, 2048, 1536},    {"decode_e32_m2_k2048_n1536", 32, 2, 2048, 1536},
    {"decode_e32_m1_k2048_n1536", 32, 1, 2048, 1536},    {"batch_e2_m64_k7168_n4096", 2, 64, 7168, 4096},
};

template <class T>
class GroupedMatmul {
 public:
  explicit GroupedMatmul(const Shape& s)
      : x_({s.experts * s.rows, s.depth}, kType, sizeof(T)),
        w_({s.experts, s.depth, s.columns}, kType, sizeof(T), {s.depth * s.columns, 1, s.depth}),
        out_({s.experts * s.rows, s.columns}, kType, sizeof(T)),
        sizes_({s.experts}, ACL_INT64, 8) {
    fill<T>(x_), fill<T>(w_);
    std::fill_n(sizes_.data<std::int64_t>(), s.experts, s.rows);
    x_list_ = x_.as_list(), w_list_ = w_.as_list(), out_list_ = out_.as_list();
  }
  ~GroupedMatmul() {
    for (aclTensorList* list : {x_list_, w_list_, out_list_}) aclDestroyTensorList(list);
  }
  void run(Stream& stream) {
    stream.run(
        [&](std::uint64_t* size, aclOpExecutor** executor) {
          return aclnnGroupedMatmulV4GetWorkspaceSize(x_list_, w_list_, nullptr, nullptr, nullptr, nullptr,
                                                      nullptr, nullptr, sizes_, nullptr, nullptr, nullptr, 3,
                                                      0, 1, 0, out_list_, nullptr, nullptr, size, executor);
        },
        aclnnGroupedMatmulV4);
  }
  const DeviceTensor& x() const { return x_; }
  const DeviceTensor& w() const { return w_; }
  float result(std::int64_t i) const { return moeyard::to_float(out_.data<T>()[i]); }

 private:
  static constexpr aclDataType kType = std::is_same_v<T, float> ? ACL_FLOAT : ACL_BF16;
  DeviceTensor x_, w_, out_, sizes_;
  aclTensorList *x_list_ = nullptr, *w_list_ = nullptr, *out_list_ = nullptr;
};

std::vector<float> widened(const DeviceTensor& tensor, float) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.elements()};
}
std::vector<float> widened(const DeviceTensor& tensor, moeyard::Bf16) {
  std::vector<float> all(tensor.elements());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = moeyard::to_float(tensor.data<moeyard::Bf16>()[i]);
  return all;
}

template <class T>
void grouped_matmul(benchmark::State& state, Shape s) {
  Stream stream;
  GroupedMatmul<T> ours(s);
  const std::vector<float> x = widened(ours.x(), T{}), w = widened(ours.w(), T{});
  std::vector<float> out(static_cast<std::size_t>(s.experts * s.rows * s.columns));
  const auto sgemm = [&](std::int64_t e) {
    dnnl_sgemm('N', 'T', s.rows, s.columns, s.depth, 1, x.data() + e * s.rows * s.depth, s.depth,
               w.data() + e * s.depth * s.columns, s.depth, 0, out.data() + e * s.rows * s.columns,
               s.columns);
  };
  const std::function<void()> threads_inside = [&] {
    for (std::int64_t e = 0; e < s.experts; ++e) sgemm(e);
  };
  const std::function<void()> threads_outside = [&] {
    moeyard::parallel_for(s.experts, 1, [&](moeyard::Range experts) {
      const int threads = omp_get_max_threads();
      omp_set_num_threads(1);  // of this thread's calls
      for (std::int64_t e = experts.begin; e < experts.end; ++e) sgemm(e);
      omp_set_num_threads(threads);
    });
  };
  double fastest[2] = {1e9, 1e9};
  for (int i = 0; i < 3; ++i) {
    fastest[0] = std::min(fastest[0], seconds_of(threads_inside));
    fastest[1] = std::min(fastest[1], seconds_of(threads_outside));
  }
  const auto& run_onednn = fastest[0] < fastest[1] ? threads_inside : threads_outside;
  run_onednn();
  ours.run(stream);
  for (std::size_t i = 0; i < out.size(); i += 997)
    if (std::fabs(ours.result(static_cast<std::int64_t>(i)) - out[i]) > 0.01f * std::fabs(out[i]) + 0.01f)
      return state.SkipWithError("the results differ");
  const double flops =
      2.0 * static_cast<double>(s.experts * s.rows) * static_cast<double>(s.depth * s.columns);
  race(
      state, flops, "GFlop/s", [&] { ours.run(stream); }, run_onednn);
}

[[maybe_unused]] const bool registered = [] {
  for (const Shape& shape : kShapes) {
    benchmark::RegisterBenchmark((std::string("grouped_matmul/bf16/") + shape.name).c_str(),
                                 grouped_matmul<moeyard::Bf16>, shape)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark((std::string("grouped_matmul/fp32/") + shape.name).c_str(),
                                 grouped_matmul<float>, shape)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace bench
