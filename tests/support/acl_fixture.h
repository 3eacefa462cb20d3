// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <semaphore>
#include <string>

#include "acl/acl.h"

namespace moeyard::support {

// The messages of this thread's failed calls, "" if there are none.
inline std::string recent_messages() {
  const char* messages = aclGetRecentErrMsg();
  return messages == nullptr ? "" : messages;
}

// Keeps a stream busy from block() until open(): what was queued behind it stays queued.
class Gate {
 public:
  void block(aclrtStream stream) {
    ASSERT_EQ(aclrtLaunchHostFunc(stream, &Gate::run, this), ACL_SUCCESS);
    entered_.acquire();
  }
  void open() { open_.release(); }

 private:
  static void run(void* gate) {
    static_cast<Gate*>(gate)->entered_.release();
    static_cast<Gate*>(gate)->open_.acquire();
  }
  std::binary_semaphore entered_{0}, open_{0};
};

// Device 0 is set in the test's thread, and `stream_` is a stream of its default context.
class AclTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    ASSERT_EQ(aclrtCreateStream(&stream_), ACL_SUCCESS);
    recent_messages();
  }
  void TearDown() override { EXPECT_EQ(aclrtResetDevice(0), ACL_SUCCESS); }

  aclrtStream stream_ = nullptr;
};

}  // namespace moeyard::support
