// Moeyard. SPDX-License-Identifier: Apache-2.0
// Tests over ranks that are processes. tests/support/run_processes starts one program several times; each of them
// runs all tests, and where a test makes a communicator, the rank on device d lives in process d modulo their number. So
// the same tests see ranks as threads, as processes, and as threads of several processes.
#pragma once
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <vector>

#include "acl/acl.h"
#include "hccl/hccl.h"
#include "support/device.h"

namespace oracle {

// Which of the processes this is. One of one: ranks are threads.
struct ProcessPlace {
  int process = 0, processes = 1;
  std::string folder;  // where they leave each other files
  bool alone() const { return processes == 1; }
  bool owns(int device) const { return device % processes == process; }
};
inline const ProcessPlace& process_place() {
  static const ProcessPlace place = [] {
    ProcessPlace read;
    const char* text = std::getenv("MOEYARD_TEST_PROCESS");  // "1/4:/tmp/folder"
    char folder[512] = {};
    if (text != nullptr && std::sscanf(text, "%d/%d:%511s", &read.process, &read.processes, folder) == 3)
      read.folder = folder;
    return read;
  }();
  return place;
}

// For tests that need all ranks in one process.
#define MOEYARD_SKIP_IN_PROCESSES() \
  if (!::oracle::process_place().alone()) GTEST_SKIP() << "needs all ranks in this process"

// Waits until the first `processes` of them have come to a meeting of that name.
inline void meet_at(const std::string& meeting, int processes) {
  const ProcessPlace& place = process_place();
  const std::string name = place.folder + "/" + meeting + "_";
  std::ofstream(name + std::to_string(place.process)).put('x');
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  for (int other = 0; other < processes; ++other)
    while (!std::ifstream(name + std::to_string(other))) {
      if (std::chrono::steady_clock::now() > end) {
        ADD_FAILURE() << "process " << other << " does not come to " << name;
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}
// Waits until all processes have come here, as the end of all its threads does for one.
inline void meet_processes() {
  if (process_place().alone()) return;
  static int count = 0;
  meet_at("meeting_" + std::to_string(count++), process_place().processes);
}

// What tests make in the same order in all processes has the same number in all of them.
inline std::string next_shared_name(const char* kind) {
  static int count = 0;
  return kind + std::to_string(count++);
}

// std::barrier for ranks on devices 0 .. ranks - 1. Made before the threads.
class RankBarrier {
 public:
  explicit RankBarrier(int ranks)
      : name_(next_shared_name("barrier_")),
        processes_(std::min(ranks, process_place().processes)),
        here_(ranks_here(ranks), Others{this}) {}
  void arrive_and_wait() { here_.arrive_and_wait(); }

 private:
  struct Others {
    RankBarrier* barrier;
    void operator()() const noexcept {
      if (barrier->processes_ > 1)
        meet_at(barrier->name_ + "_" + std::to_string(barrier->phase_++), barrier->processes_);
    }
  };
  static int ranks_here(int ranks) {
    int here = 0;
    for (int rank = 0; rank < ranks; ++rank) here += process_place().owns(rank) ? 1 : 0;
    return here;
  }
  const std::string name_;
  const int processes_;
  int phase_ = 0;
  std::barrier<Others> here_;
};

// A number that the ranks of all processes count up. Made before the threads; it begins at 0.
class RankCounter {
 public:
  RankCounter() {
    const ProcessPlace& place = process_place();
    if (place.alone()) return;
    const std::string path = place.folder + "/" + next_shared_name("counter_");
    const int file = open(path.c_str(), O_RDWR | O_CREAT, 0600);
    EXPECT_EQ(ftruncate(file, sizeof(std::atomic<int>)), 0) << path;
    void* memory = mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    EXPECT_NE(memory, MAP_FAILED) << path;
    if (memory != MAP_FAILED) count_ = static_cast<std::atomic<int>*>(memory);
  }
  RankCounter(const RankCounter&) = delete;
  ~RankCounter() {
    if (count_ != &own_) munmap(count_, sizeof(std::atomic<int>));
  }
  void add_one() { count_->fetch_add(1); }
  int value() const { return count_->load(); }

 private:
  std::atomic<int> own_{0};
  std::atomic<int>* count_ = &own_;
};

// What a rank's result is made of: numbers and vectors of numbers, by its fields() if it is a struct.
template <class T>
auto fields_of(std::vector<T>& result) {
  return std::tie(result);
}
template <class T>
requires std::is_arithmetic_v<T>
auto fields_of(T& result) { return std::tie(result); }
template <class Result>
auto fields_of(Result& result) -> decltype(result.fields()) {
  return result.fields();
}

// Gives all processes the results of all ranks, of which each has those of its own: results[i] is of devices[i].
template <class Result>
void share_results(const std::vector<std::int32_t>& devices, std::vector<Result>& results) {
  const ProcessPlace& place = process_place();
  if (place.alone()) return;
  const std::string name = place.folder + "/" + next_shared_name("results_") + "_";
  const auto each_result = [&](bool own, const auto& visit) {
    for (std::size_t i = 0; i < results.size(); ++i)
      if (place.owns(devices[i]) == own) {
        std::fstream file(name + std::to_string(i), std::ios::binary | (own ? std::ios::out : std::ios::in));
        std::apply([&](auto&... field) { (visit(file, field), ...); }, fields_of(results[i]));
        EXPECT_TRUE(file.flush().good()) << name << i;
      }
  };
  const auto bytes_of = [](auto& number) { return reinterpret_cast<char*>(&number); };
  each_result(true, [&](std::fstream& file, auto& field) {
    if constexpr (std::is_arithmetic_v<std::remove_reference_t<decltype(field)>>) {
      file.write(bytes_of(field), sizeof field);
    } else {
      std::uint64_t count = field.size();
      file.write(bytes_of(count), sizeof count);
      for (auto& value : field) file.write(bytes_of(value), sizeof value);
    }
  });
  meet_processes();
  each_result(false, [&](std::fstream& file, auto& field) {
    if constexpr (std::is_arithmetic_v<std::remove_reference_t<decltype(field)>>) {
      file.read(bytes_of(field), sizeof field);
    } else {
      std::uint64_t count = 0;
      file.read(bytes_of(count), sizeof count);
      field.resize(count);
      for (auto& value : field) file.read(bytes_of(value), sizeof value);
    }
  });
}

// The root info of the next communicator, which the first process makes.
inline HcclRootInfo next_root_info() {
  static int count = 0;
  const std::string path = process_place().folder + "/root_info_" + std::to_string(count++);
  HcclRootInfo info{};
  if (process_place().process == 0) {
    EXPECT_EQ(HcclGetRootInfo(&info), HCCL_SUCCESS) << recent_message();
    std::ofstream(path + ".new", std::ios::binary).write(info.internal, sizeof info.internal);
    EXPECT_EQ(std::rename((path + ".new").c_str(), path.c_str()), 0);
    return info;
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (std::chrono::steady_clock::now() < end) {
    std::ifstream file(path, std::ios::binary);
    if (file.read(info.internal, sizeof info.internal)) return info;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  ADD_FAILURE() << path << " does not come";
  return info;
}

// A communicator whose rank r belongs to devices[r]; null where the rank is in another process.
inline std::vector<HcclComm> make_communicator(std::vector<std::int32_t> devices) {
  std::vector<HcclComm> comms(devices.size());
  if (process_place().alone()) {
    EXPECT_EQ(HcclCommInitAll(static_cast<std::uint32_t>(devices.size()), devices.data(), comms.data()),
              HCCL_SUCCESS)
        << recent_message();
    return comms;
  }
  const HcclRootInfo info = next_root_info();
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < comms.size(); ++rank) {
    if (!process_place().owns(devices[rank])) continue;
    threads.emplace_back([&, rank] {
      EXPECT_EQ(aclrtSetDevice(devices[rank]), ACL_SUCCESS);
      EXPECT_EQ(HcclCommInitRootInfo(static_cast<std::uint32_t>(comms.size()), &info,
                                     static_cast<std::uint32_t>(rank), &comms[rank]),
                HCCL_SUCCESS)
          << recent_message();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return comms;
}
inline void destroy_communicator(const std::vector<HcclComm>& comms) {
  for (const HcclComm comm : comms)
    if (comm != nullptr) {
      EXPECT_EQ(HcclCommDestroy(comm), HCCL_SUCCESS) << recent_message();
    }
}

}  // namespace oracle
