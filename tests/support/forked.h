// Moeyard. SPDX-License-Identifier: Apache-2.0
// Ranks as processes that a test forks itself, to stop or kill them. Such a test's program must not use the library
// in the process that forks, in none of its tests.
#pragma once
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <new>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "hccl/hccl.h"
#include "support/device.h"
#include "support/hccl_ranks.h"

namespace oracle {

// What a test's processes share: each T{} at first, all of them atomics or bytes.
template <class T>
class Shared {
 public:
  Shared()
      : data_(new (mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) T{}) {
  }
  ~Shared() { munmap(data_, sizeof(T)); }
  Shared(const Shared&) = delete;
  T* operator->() const { return data_; }
  T& operator*() const { return *data_; }

 private:
  T* data_;
};

// A process per rank. The body's failures, and anything else that ends it, fail the test that waits for it.
class Forked {
 public:
  Forked(int size, const std::function<void(int rank)>& body) {
    std::fflush(nullptr);
    for (int rank = 0; rank < size; ++rank) {
      const pid_t child = fork();
      EXPECT_GE(child, 0);
      if (child == 0) {
        body(rank);
        std::fflush(nullptr);
        _exit(testing::Test::HasFailure() ? 1 : 0);
      }
      children_.push_back(child);
    }
  }
  ~Forked() {
    for (const pid_t child : children_)
      if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
      }
  }
  Forked(const Forked&) = delete;

  void signal(int rank, int number) const { kill(children_[static_cast<std::size_t>(rank)], number); }
  // The rank's exit code, or minus the signal that has ended it.
  int wait(int rank) {
    int status = 0;
    pid_t& child = children_[static_cast<std::size_t>(rank)];
    EXPECT_EQ(waitpid(child, &status, 0), child);
    child = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  void expect_success() {
    for (int rank = 0; rank < static_cast<int>(children_.size()); ++rank)
      if (children_[static_cast<std::size_t>(rank)] > 0) {
        EXPECT_EQ(wait(rank), 0) << "rank " << rank;
      }
  }

 private:
  std::vector<pid_t> children_;
};

// Where the ranks of a test leave a root info: rank 0 makes it, the others wait for it.
struct RootInfoBox {
  std::atomic<int> made{0};
  HcclRootInfo info;

  const HcclRootInfo& get(int rank) {
    if (rank == 0) {
      expect_success(HcclGetRootInfo(&info), "HcclGetRootInfo");
      made = 1;
    }
    while (made == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return info;
  }
};

// Rank `rank` of a communicator of processes, on device 0 of its own.
class ProcessRank {
 public:
  ProcessRank(int size, int rank, RootInfoBox& box) : rank_{rank, size, nullptr, nullptr} {
    expect_success(aclrtSetDevice(0), "aclrtSetDevice");
    expect_success(aclrtCreateStream(&rank_.stream), "aclrtCreateStream");
    expect_success(HcclCommInitRootInfo(static_cast<std::uint32_t>(size), &box.get(rank),
                                        static_cast<std::uint32_t>(rank), &rank_.comm),
                   "HcclCommInitRootInfo");
  }
  ~ProcessRank() {
    if (rank_.comm != nullptr) expect_success(HcclCommDestroy(rank_.comm), "HcclCommDestroy");
    expect_success(aclrtDestroyStream(rank_.stream), "aclrtDestroyStream");
  }
  ProcessRank(const ProcessRank&) = delete;
  const Rank& operator*() const { return rank_; }
  const Rank* operator->() const { return &rank_; }

  // A sum over all ranks of numbers that every rank knows: the code that it ends with.
  aclError sum(int elements = 1000) const {
    const std::vector<float> mine(static_cast<std::size_t>(elements), static_cast<float>(rank_.rank + 1));
    const OnDevice<float> in(mine), out(mine);
    const HcclResult submitted =
        HcclAllReduce(in, out, static_cast<std::uint64_t>(elements), HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM,
                      rank_.comm, rank_.stream);
    if (submitted != HCCL_SUCCESS) return submitted;
    const aclError code = rank_.synchronize();
    if (code != ACL_SUCCESS) return code;
    const float all = static_cast<float>(rank_.size * (rank_.size + 1) / 2);
    EXPECT_EQ(out.values(), std::vector<float>(static_cast<std::size_t>(elements), all));
    return code;
  }

 private:
  Rank rank_;
};

}  // namespace oracle
