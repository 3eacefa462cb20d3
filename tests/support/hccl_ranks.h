// Moeyard. SPDX-License-Identifier: Apache-2.0
// Programs of ranks as CANN's examples write them: a thread per rank, each with its device and stream. Public
// headers only.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "hccl/hccl.h"
#include "support/device.h"
#include "support/processes.h"

namespace oracle {

struct Rank {
  int rank;
  int size;
  HcclComm comm;
  aclrtStream stream;

  aclError synchronize() const { return aclrtSynchronizeStream(stream); }
};

// Runs the body once per rank of this process, on a thread with a stream on the rank's device.
inline void run_threads(const std::vector<HcclComm>& comms, const std::function<void(const Rank&)>& body) {
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < comms.size(); ++i) {
    if (!process_place().owns(static_cast<int>(i))) continue;
    threads.emplace_back([&, i] {
      Rank rank{static_cast<int>(i), static_cast<int>(comms.size()), comms[i], nullptr};
      ASSERT_EQ(aclrtSetDevice(rank.rank), ACL_SUCCESS);
      ASSERT_EQ(aclrtCreateStream(&rank.stream), ACL_SUCCESS);
      body(rank);
      EXPECT_EQ(aclrtDestroyStream(rank.stream), ACL_SUCCESS);
      EXPECT_EQ(aclrtResetDevice(rank.rank), ACL_SUCCESS);
    });
  }
  for (std::thread& thread : threads) thread.join();
  meet_processes();
}

// A communicator of devices 0 .. size - 1.
class Communicator {
 public:
  explicit Communicator(int size) {
    std::vector<std::int32_t> devices(size);
    std::iota(devices.begin(), devices.end(), 0);
    comms = make_communicator(devices);
  }
  ~Communicator() { destroy_communicator(comms); }
  void run(const std::function<void(const Rank&)>& body) const { run_threads(comms, body); }

  std::vector<HcclComm> comms;
};

// Device memory that holds the values.
template <class T>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& values) : size_(values.size()) {
    EXPECT_EQ(aclrtMalloc(&data_, bytes() + 1, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    EXPECT_EQ(aclrtMemcpy(data_, bytes(), values.data(), bytes(), ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
  }
  OnDevice(const OnDevice&) = delete;
  ~OnDevice() { aclrtFree(data_); }

  void* at(std::int64_t index) const { return static_cast<T*>(data_) + index; }
  operator void*() const { return data_; }
  std::vector<T> values() const {
    std::vector<T> out(size_);
    EXPECT_EQ(aclrtMemcpy(out.data(), bytes(), data_, bytes(), ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    return out;
  }

 private:
  std::size_t bytes() const { return size_ * sizeof(T); }
  std::size_t size_;
  void* data_ = nullptr;
};

}  // namespace oracle
