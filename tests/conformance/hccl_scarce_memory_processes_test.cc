// Moeyard. SPDX-License-Identifier: Apache-2.0
// Ranks that are processes where memory, descriptors or files run short: an error with a reason, and no signal.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <fstream>

#include "support/forked.h"

namespace oracle {
namespace {

using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

void limit(__rlimit_resource resource, std::uint64_t to) {
  rlimit now{};
  ASSERT_EQ(getrlimit(resource, &now), 0);
  now.rlim_cur = to;
  ASSERT_EQ(setrlimit(resource, &now), 0);
}

// What threads of one process do needs none of what is short.
void expect_ranks_of_one_process_work() {
  HcclComm comm = nullptr;
  std::int32_t device = 0;
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(HcclCommInitAll(1, &device, &comm), HCCL_SUCCESS) << recent_message();
  EXPECT_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);
}

// --- Files --------------------------------------------------------------------------------------------------------------

// Full file systems of 4 KiB in the place of all that programs may write to, for this process and its children.
bool fill_file_systems() {
  if (unshare(CLONE_NEWNS) != 0) return false;
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  for (const std::string folder : {"/dev/shm", "/tmp", "/var/tmp"}) {
    if (mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=4k") != 0) return false;
    std::ofstream file(folder + "/all_of_it");
    file << std::string(1 << 16, 'x') << std::flush;
    EXPECT_FALSE(file.good()) << folder << " should be full";
  }
  return true;
}

TEST(FullFileSystems, DoNotMatter) {
  struct Seen {
    std::atomic<int> filled{0};
    RootInfoBox box;
  };
  const Shared<Seen> seen;
  Forked(1, [&](int) {
    if (!fill_file_systems()) return;
    seen->filled = 1;
    Forked(3, [&](int rank) {
      const ProcessRank me(3, rank, seen->box);
      EXPECT_EQ(me.sum(3 << 20), ACL_SUCCESS) << recent_message();
    }).expect_success();
  }).expect_success();
  if (seen->filled == 0) GTEST_SKIP() << "no right to mount file systems";
}

// A rank of two lacks something that processes need to meet: both are told, and at once.
void expect_no_meeting_of(int lacking, const std::function<void()>& take_away, const char* reason) {
  const Shared<RootInfoBox> box;
  Forked(2, [&](int rank) {
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    if (rank == lacking) take_away();
    HcclComm comm = nullptr;
    const HcclRootInfo& info = box->get(rank);
    const auto begin = Clock::now();
    const HcclResult code = HcclCommInitRootInfo(2, &info, static_cast<std::uint32_t>(rank), &comm);
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(20));
    EXPECT_EQ(comm, nullptr);
    const std::string message = recent_message();
    EXPECT_THAT(message, HasSubstr("HcclCommInitRootInfo"));
    if (rank != lacking) {
      EXPECT_NE(code, HCCL_SUCCESS);
      return;
    }
    EXPECT_EQ(code, HCCL_E_MEMORY);
    EXPECT_THAT(message, HasSubstr(reason));
    expect_ranks_of_one_process_work();
  }).expect_success();
}
void expect_no_meeting(const std::function<void()>& take_away, const char* reason) {
  for (const int lacking : {0, 1}) expect_no_meeting_of(lacking, take_away, reason);
}

TEST(SizeOfFiles, IsAnErrorAndNoSignal) {
  expect_no_meeting([] { limit(RLIMIT_FSIZE, 1 << 20); }, "(ulimit -f)");
}

TEST(SizeOfFiles, MayBeLessThanWhatIsWanted) {
  const Shared<RootInfoBox> box;
  Forked(2, [&](int rank) {
    if (rank == 1) limit(RLIMIT_FSIZE, kGiB);
    const ProcessRank me(2, rank, *box);
    EXPECT_EQ(me.sum(3 << 20), ACL_SUCCESS) << recent_message();
  }).expect_success();
}

// --- What sanitizers need for themselves: descriptors, to probe memory, and address space -------------------------------
#ifndef __SANITIZE_ADDRESS__

// Wherever they run out, ranks say so or meet.
TEST(OpenFiles, AreNamedWhereTheyRunOut) {
  int met = 0, refused = 0;
  for (std::uint64_t spare = 0; spare < 12 && met == 0; ++spare) {
    const Shared<RootInfoBox> box;
    Forked ranks(2, [&](int rank) {
      setenv("HCCL_CONNECT_TIMEOUT", "1", 1);
      ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
      const HcclRootInfo& info = box->get(rank);
      if (rank == 1) limit(RLIMIT_NOFILE, static_cast<std::uint64_t>(dup(0)) + spare);
      HcclComm comm = nullptr;
      const auto begin = Clock::now();
      const HcclResult code = HcclCommInitRootInfo(2, &info, static_cast<std::uint32_t>(rank), &comm);
      EXPECT_LT(Clock::now() - begin, std::chrono::seconds(20));
      EXPECT_EQ(comm == nullptr, code != HCCL_SUCCESS);
      if (code != HCCL_SUCCESS && rank == 1) {
        EXPECT_THAT(recent_message(), HasSubstr("Too many open files"));
      }
      std::fflush(nullptr);
      if (!testing::Test::HasFailure()) _exit(code == HCCL_SUCCESS ? 10 : 11);
    });
    const int first = ranks.wait(0), second = ranks.wait(1);
    EXPECT_EQ(first, second) << spare;
    met += second == 10 ? 1 : 0;
    refused += second == 11 ? 1 : 0;
  }
  EXPECT_EQ(met, 1);
  EXPECT_GE(refused, 3);
}

std::uint64_t address_space_in_use() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * 4096;
}

TEST(AddressSpace, ThatIsShortIsAnError) {
  expect_no_meeting([] { limit(RLIMIT_AS, address_space_in_use() + kGiB / 2); }, "(ulimit -v)");
}

// There is place for a process's own memory but not for that of its peer.
TEST(AddressSpace, MustSufficeForThePeersToo) {
  expect_no_meeting([] { limit(RLIMIT_AS, address_space_in_use() + 3 * kGiB / 2); }, "(ulimit -v)");
}

// Blocks that find no place in what is shared are memory of this process only; what the limit does not allow is refused.
TEST(AddressSpace, OfDeviceMemoryIsRefusedWithACode) {
  const Shared<RootInfoBox> box;
  Forked(2, [&](int rank) {
    const ProcessRank me(2, rank, *box);
    limit(RLIMIT_AS, address_space_in_use() + kGiB / 2);
    void* block = nullptr;
    EXPECT_NE(aclrtMalloc(&block, std::uint64_t{1} << 40, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    EXPECT_THAT(recent_message(), HasSubstr("1099511627776"));
    EXPECT_EQ(me.sum(1 << 20), ACL_SUCCESS) << recent_message();
  }).expect_success();
}

#endif
}  // namespace
}  // namespace oracle
