// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <latch>
#include <memory>
#include <string>

#include "acl/acl.h"

namespace moeyard::support {

// The messages of this thread's failed calls, "" if there are none.
inline std::string recent_messages() {
  const char* messages = aclGetRecentErrMsg();
  return messages == nullptr ? "" : messages;
}

// Keeps a stream busy from block() until open(), once: what was queued behind it stays queued.
class Gate {
 public:
  void block(aclrtStream stream) {
    auto* shared =
        new std::shared_ptr<State>(state_);  // the stream may still be leaving when the gate is gone
    ASSERT_EQ(aclrtLaunchHostFunc(stream, &Gate::run, shared), ACL_SUCCESS);
    state_->entered.wait();
  }
  void open() { state_->open.count_down(); }

 private:
  struct State {
    std::latch entered{1}, open{1};
  };
  static void run(void* shared) {
    const std::unique_ptr<std::shared_ptr<State>> state(static_cast<std::shared_ptr<State>*>(shared));
    (*state)->entered.count_down();
    (*state)->open.wait();
  }
  std::shared_ptr<State> state_ = std::make_shared<State>();
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
