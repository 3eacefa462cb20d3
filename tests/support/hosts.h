// Moeyard. SPDX-License-Identifier: Apache-2.0
// Hosts of a test's own: network namespaces that are joined by cables to one switch. They belong to processes of the
// test and are gone with them. Needs root, and ip and nsenter, which scripts/setup installs.
#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace oracle {

class TestHosts {
 public:
  explicit TestHosts(int hosts) {
    for (int host = 0; host <= hosts; ++host) holders_.push_back(hold());  // the last is the switch
    const std::string at_switch = enter(hosts);
    ok_ = run(at_switch + "ip link add switch type bridge") && run(at_switch + "ip link set switch up");
    for (int host = 0; host < hosts && ok_; ++host) {
      const std::string cable = "cable" + std::to_string(host);
      ok_ = run(at_switch + "ip link add " + cable + " type veth peer name eth0 netns " +
                std::to_string(holders_[static_cast<std::size_t>(host)])) &&
            run(at_switch + "ip link set " + cable + " master switch up") &&
            run(enter(host) + "ip addr add " + address(host) + "/24 dev eth0") &&
            run(enter(host) + "ip link set lo up") && run(enter(host) + "ip link set eth0 up");
    }
    for (int host = 0; host < hosts && ok_;
         ++host)  // the system takes up to a second to see that cables are in
      while (!run(enter(host) + "ip link show eth0 | grep -q 'state UP'"))
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ~TestHosts() {
    for (const pid_t holder : holders_) {
      kill(holder, SIGKILL);
      waitpid(holder, nullptr, 0);
    }
  }
  TestHosts(const TestHosts&) = delete;

  bool ok() const { return ok_; }
  static std::string address(int host) { return "10.99.0." + std::to_string(host + 1); }

  // Moves the calling process, which has no other threads yet, to a host.
  void move_to(int host) const {
    const std::string path = "/proc/" + std::to_string(holders_[static_cast<std::size_t>(host)]) + "/ns/net";
    const int space = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(setns(space, CLONE_NEWNET), 0);
    close(space);
    // /sys shows the network of whoever has mounted it.
    ASSERT_EQ(unshare(CLONE_NEWNS), 0);
    ASSERT_EQ(mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr), 0);
    ASSERT_EQ(mount("sysfs", "/sys", "sysfs", 0, nullptr), 0);
  }

  void cut_cable(int host) const {
    EXPECT_TRUE(run(enter(static_cast<int>(holders_.size()) - 1) + "ip link set cable" +
                    std::to_string(host) + " down"));
  }
  // That have gone out of a host so far.
  std::int64_t bytes_sent(int host) const {
    const std::string command =
        enter(host) + "sh -c \"ip -s link show eth0 | tail -n 1\"";  // bytes packets errors ...
    FILE* out = popen(command.c_str(), "r");
    std::int64_t bytes = -1;
    EXPECT_EQ(std::fscanf(out, "%ld", &bytes), 1);
    pclose(out);
    return bytes;
  }

 private:
  static pid_t hold() {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      const char made = unshare(CLONE_NEWNET) == 0 ? 1 : 0;
      [[maybe_unused]] const ssize_t written = write(ready[1], &made, 1);
      for (;;) pause();
    }
    char made = 0;
    [[maybe_unused]] const ssize_t read_bytes = read(ready[0], &made, 1);
    close(ready[0]);
    close(ready[1]);
    return child;
  }
  std::string enter(int host) const {
    return "nsenter -t " + std::to_string(holders_[static_cast<std::size_t>(host)]) + " -n ";
  }
  static bool run(const std::string& command) { return std::system((command + " 2>/dev/null").c_str()) == 0; }

  std::vector<pid_t> holders_;
  bool ok_ = false;
};

#define MOEYARD_NEED_HOSTS(hosts) \
  if (!(hosts).ok()) GTEST_SKIP() << "making network namespaces needs root, ip and nsenter"

}  // namespace oracle
