// Moeyard. SPDX-License-Identifier: Apache-2.0
// Tables of calls that phase one refuses, one row per row of a document's table of errors.
#pragma once
#include <gmock/gmock.h>

#include <functional>
#include <string>

#include "support/device.h"

namespace oracle {

// What makes a good call a bad one, the code that it gets and what the message has to say.
template <class Call>
struct Refusal {
  const char* name;
  int code;
  const char* message;
  std::function<void(Call&)> spoil;
};

// Call has phase_one(uint64_t* size, aclOpExecutor** executor).
template <class Call>
void expect_refusal(Call& call, int code, const std::string& message) {
  std::uint64_t size = 77;
  aclOpExecutor* executor = nullptr;
  EXPECT_EQ(call.phase_one(&size, &executor), code) << recent_message();
  // The first word after the text code is the C function.
  const std::string said = recent_message();
  EXPECT_THAT(said, testing::MatchesRegex("\\[E[A-Z][0-9]{4}\\] aclnn[A-Za-z0-9]+: .*"));
  EXPECT_THAT(said, testing::HasSubstr(message));
  EXPECT_EQ(size, 77u);
  EXPECT_EQ(executor, nullptr);
}

// Spoils good_call() in every way of the table.
template <class Call, std::size_t kCount, class GoodCall>
void expect_refusals(const Refusal<Call> (&table)[kCount], GoodCall&& good_call) {
  for (const Refusal<Call>& refusal : table) {
    SCOPED_TRACE(refusal.name);
    Call call = good_call();
    refusal.spoil(call);
    expect_refusal(call, refusal.code, refusal.message);
  }
}

// The last row of every table: nothing to return the results of phase one in.
template <class Call>
void expect_null_results_refused(Call& call) {
  std::uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  EXPECT_EQ(call.phase_one(nullptr, &executor), 161001);
  EXPECT_EQ(call.phase_one(&size, nullptr), 161001);
}

}  // namespace oracle
