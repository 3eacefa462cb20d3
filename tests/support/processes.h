// Moeyard. SPDX-License-Identifier: Apache-2.0
// Tests over ranks that are processes. tests/support/run_processes starts one program several times; each of them
// runs all tests, and where a test makes a communicator, rank r of it lives in process r modulo their number. So the
// same tests see ranks as threads, as processes, and as threads of several processes.
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
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
  bool owns(int rank) const { return rank % processes == process; }
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

// Waits until all processes have come here, as the end of all its threads does for one.
inline void meet_processes() {
  const ProcessPlace& place = process_place();
  if (place.alone()) return;
  static int count = 0;
  const std::string name = place.folder + "/meeting_" + std::to_string(count++) + "_";
  std::ofstream(name + std::to_string(place.process)).put('x');
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  for (int other = 0; other < place.processes; ++other)
    while (!std::ifstream(name + std::to_string(other))) {
      if (std::chrono::steady_clock::now() > end) {
        ADD_FAILURE() << "process " << other << " does not come to " << name;
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
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
    if (!process_place().owns(static_cast<int>(rank))) continue;
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
