// Moeyard. SPDX-License-Identifier: Apache-2.0
// What benchmarks of single operators share: device tensors, both phases and a synchronise, and turns against a rival.
#pragma once
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"
#include "base/numbers.h"

namespace bench {

// Device memory and the aclTensor over it.
class DeviceTensor {
 public:
  DeviceTensor(std::vector<std::int64_t> shape, aclDataType dtype, std::size_t element_bytes,
               std::vector<std::int64_t> strides = {})
      : elements_(1) {
    for (const std::int64_t size : shape) elements_ *= static_cast<std::size_t>(size);
    aclrtMalloc(&memory_, std::max<std::size_t>(elements_ * element_bytes, 1), ACL_MEM_MALLOC_HUGE_FIRST);
    tensor_ = aclCreateTensor(shape.data(), shape.size(), dtype, strides.empty() ? nullptr : strides.data(),
                              0, ACL_FORMAT_ND, shape.data(), shape.size(), memory_);
  }
  DeviceTensor(DeviceTensor&& other) noexcept
      : elements_(other.elements_),
        memory_(std::exchange(other.memory_, nullptr)),
        tensor_(std::exchange(other.tensor_, nullptr)) {}
  ~DeviceTensor() {
    aclDestroyTensor(tensor_);
    if (memory_ != nullptr) aclrtFree(memory_);
  }
  operator aclTensor*() const { return tensor_; }
  // A list of this tensor alone, which it then belongs to.
  aclTensorList* as_list() {
    const aclTensor* one = std::exchange(tensor_, nullptr);
    return aclCreateTensorList(&one, 1);
  }
  std::size_t elements() const { return elements_; }
  template <class T>
  T* data() const {
    return static_cast<T*>(memory_);
  }

 private:
  std::size_t elements_;
  void* memory_ = nullptr;
  aclTensor* tensor_ = nullptr;
};

template <class T>
T number_of(float value) {
  if constexpr (std::is_same_v<T, moeyard::Bf16>)
    return moeyard::to_bf16(value);
  else
    return value;
}

// Normally distributed numbers; a few thousand of them, repeated.
template <class T>
void fill(const DeviceTensor& tensor) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<T> some;
  for (int i = 0; i < 4099; ++i) some.push_back(number_of<T>(normal(random)));
  for (std::size_t i = 0; i < tensor.elements(); ++i) tensor.data<T>()[i] = some[i % some.size()];
}

class Stream {
 public:
  Stream() {
    aclrtSetDevice(0);
    aclrtCreateStream(&stream_);
  }
  ~Stream() {
    aclrtDestroyStream(stream_);
    if (workspace_ != nullptr) aclrtFree(workspace_);
  }
  using PhaseTwo = aclnnStatus (*)(void*, std::uint64_t, aclOpExecutor*, aclrtStream);
  // Both phases and a synchronise; throws if one fails.
  template <class PhaseOne>
  void run(PhaseOne&& phase_one, PhaseTwo phase_two) {
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    if (phase_one(&size, &executor) != 0) fail();
    if (size > workspace_bytes_) {
      if (workspace_ != nullptr) aclrtFree(workspace_);
      aclrtMalloc(&workspace_, size, ACL_MEM_MALLOC_HUGE_FIRST);
      workspace_bytes_ = size;
    }
    if (phase_two(workspace_, size, executor, stream_) != 0 || aclrtSynchronizeStream(stream_) != 0) fail();
  }

 private:
  [[noreturn]] static void fail() { throw std::runtime_error(aclGetRecentErrMsg()); }
  aclrtStream stream_ = nullptr;
  void* workspace_ = nullptr;
  std::uint64_t workspace_bytes_ = 0;
};

inline double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// Both take turns, so that whatever else the machine does meets both. `of_rival`: the rival's median time over ours.
inline void race(benchmark::State& state, double work, const char* unit, const std::function<void()>& ours,
                 const std::function<void()>& rival) {
  std::vector<double> own, other;
  ours(), rival();
  for (auto _ : state) {
    other.push_back(seconds_of(rival));
    own.push_back(seconds_of(ours));
    state.SetIterationTime(own.back());
  }
  state.counters[unit] = work / median(own) * 1e-9;
  state.counters[std::string("rival_") + unit] = work / median(other) * 1e-9;
  state.counters["of_rival"] = median(other) / median(own);
}

}  // namespace bench
