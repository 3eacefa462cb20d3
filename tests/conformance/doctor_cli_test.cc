// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// The programs about the machine, `moeyard doctor` on made-up machines and `moeyard bench` with made-up programs: what
// they say must not depend on the machine that runs the tests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/model_files.h"
#include "support/program.h"

namespace {

using moeyard::test::Outcome;
using moeyard::test::run_moeyard;
using moeyard::test::TemporaryFolder;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

class Machine : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    const fs::path file = folder_.path() / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::string root() const { return folder_.path().string(); }
  Outcome doctor(const std::string& environment = "") const {
    return run_moeyard({"doctor", "--root", root()}, environment);
  }
  const TemporaryFolder folder_;
};

TEST_F(Machine, ThisOneIsDescribed) {
  const Outcome outcome = run_moeyard({"doctor", "--json"});
  const json report = json::parse(outcome.text);
  std::vector<std::string> subjects;
  for (const auto& found : report["findings"]) {
    subjects.push_back(found["subject"]);
    EXPECT_EQ(found["level"] == "good", found["advice"] == "") << found;
    EXPECT_NE(found["value"], "");
  }
  EXPECT_THAT(subjects, testing::IsSupersetOf({"SIMD", "cores", "NUMA nodes", "memory", "huge pages",
                                               "shared memory", "between hosts", "threads"}));
}

TEST_F(Machine, WhatHasToChangeIsSaid) {
  write("proc/sys/vm/overcommit_memory", "2\n");
  const Outcome outcome = doctor();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("sysctl vm.overcommit_memory=0"), HasSubstr("1 to change")));
  write("proc/sys/vm/overcommit_memory", "0\n");
  EXPECT_EQ(doctor().code, 0);
}

TEST_F(Machine, WhatProcessesCannotShareIsSaid) {
  const std::string command =
      "ulimit -f 1048576 && '" + std::string(MOEYARD_CLI) + "' doctor --root " + root();
  const Outcome outcome = moeyard::test::run_program("/bin/sh", {"-c", command});
  EXPECT_THAT(outcome.text,
              AllOf(HasSubstr("shared memory at most "), HasSubstr("1 GiB each at least: ulimit -f")));
}

TEST_F(Machine, WhatCarriesDataBetweenHostsIsSaid) {
  write("sys/class/infiniband/mlx5_1/x", "");
  write("sys/class/infiniband/mlx5_0/x", "");
  const std::string text = doctor().text;
  EXPECT_THAT(text,
              testing::AnyOf(HasSubstr("TCP, RDMA by mlx5_0, RDMA by mlx5_1"), HasSubstr("install libucx0")));
}

TEST_F(Machine, WhatCostsSpeedIsSaid) {
  write("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  write("sys/fs/cgroup/pids.max", "300\n");
  write("sys/devices/system/node/node0/x", "");
  write("sys/devices/system/node/node1/x", "");
  write("proc/loadavg", "99.5 1 1 1/1 1\n");
  write("proc/meminfo", "MemTotal: 9000000 kB\nMemAvailable:  8000000 kB\n");
  write("sys/fs/cgroup/memory.max", "536870912\n");
  write("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some Processor\n");
  const Outcome outcome = doctor();
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  for (const char* part : {"Some Processor", "echo madvise", "set MOEYARD_THREADS=1", "some 100 ranks fit",
                           "numactl --cpunodebind=0", "times that are measured now say little",
                           "512 MiB by limit of the container", "need several GiB"})
    EXPECT_THAT(outcome.text, HasSubstr(part));
  EXPECT_THAT(
      doctor("MOEYARD_TARGET=EMU128").text,
      testing::AnyOf(HasSubstr("MOEYARD_TARGET asks for code that is slow"), HasSubstr("without vector")));
}

TEST_F(Machine, BenchShowsEachFigureBesideItsLimit) {
  const auto program = [&](const std::string& name, const json& runs) {
    write(name + ".result", json{{"benchmarks", runs}}.dump());
    write(name, "#!/bin/sh\necho noise\nfor a in \"$@\"; do case $a in --benchmark_out=*) cp " + root() +
                    "/" + name + ".result \"${a#*=}\";; esac; done\n");
    fs::permissions(folder_.path() / name, fs::perms::owner_all);
  };
  program("copy_bench", {{{"name", "memcpy"}, {"bytes_per_second", 10e9}},
                         {{"name", "copy/AVX2"}, {"bytes_per_second", 9e9}}});
  program("race_bench", {{{"name", "dispatch/against_the_limit/manual_time"},
                          {"GB/s", 7.0},
                          {"rival_GB/s", 10.0},
                          {"of_rival", 0.7}},
                         {{"name", "wrong"}, {"error_occurred", true}, {"error_message", "wrong rows"}}});
  program("two_bench", {{{"name", "two_phases/0"}, {"real_time", 1600.0}, {"time_unit", "ns"}}});
  const Outcome outcome = run_moeyard({"bench", "--programs", root()});
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(
      outcome.text,
      AllOf(HasSubstr("9 GB/s        10 GB/s     0.90"), HasSubstr("7 GB/s        10 GB/s     0.70     0.80"),
            HasSubstr("wrong rows"), HasSubstr("1.6 us           2 us     1.25     1.00")));
  const Outcome one = run_moeyard({"bench", "two", "--quick", "--json", "--programs", root()});
  const json figures = json::parse(one.text.substr(one.text.find('{')))["figures"];
  ASSERT_EQ(figures.size(), 1U);
  EXPECT_EQ(figures[0]["reached"], 1.25);
  EXPECT_EQ(run_moeyard({"bench", "none", "--programs", root()}).code, 2);
  write("bad_bench", "#!/bin/sh\nexit 1\n");
  fs::permissions(folder_.path() / "bad_bench", fs::perms::owner_all);
  EXPECT_EQ(run_moeyard({"bench", "bad", "--programs", root()}).code, 3);
}

}  // namespace
