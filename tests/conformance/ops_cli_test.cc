// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// The programs `moeyard ops` and `moeyard explain`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/program.h"

namespace {

using moeyard::test::Outcome;
using testing::HasSubstr;
using testing::Not;

Outcome moeyard_program(const std::vector<std::string>& arguments) {
  return moeyard::test::run_program(MOEYARD_CLI, arguments);
}

TEST(Ops, ListsOperatorsByFamily) {
  const Outcome outcome = moeyard_program({"ops"});
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("\nbalance "));
  EXPECT_THAT(outcome.text, HasSubstr("aclnnMoeDistributeDispatchV2, V3, V4"));
}

TEST(Ops, ListsAFamilyOrAWord) {
  const Outcome family = moeyard_program({"ops", "balance"});
  EXPECT_THAT(family.text, HasSubstr("aclnnMoeUpdateExpert"));
  EXPECT_THAT(family.text, Not(HasSubstr("Dispatch")));
  EXPECT_THAT(moeyard_program({"ops", "updateexp"}).text, HasSubstr("aclnnMoeUpdateExpert"));
  const Outcome none = moeyard_program({"ops", "nothing"});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.text, HasSubstr("has the word 'nothing'"));
}

TEST(Explain, TellsOfAnOperatorAParameterAndACode) {
  const Outcome all = moeyard_program({"explain", "aclnnMoeDistributeDispatchV4"});
  EXPECT_EQ(all.code, 0) << all.text;
  EXPECT_THAT(all.text, HasSubstr("epWorldSize"));
  EXPECT_THAT(moeyard_program({"explain", "MoeDistributeDispatchV4", "epWorldSize"}).text,
              HasSubstr("be in [2, 768], with commAlg hierarchy a multiple"));
  EXPECT_THAT(moeyard_program({"explain", "MoeDistributeDispatchV4", "161001"}).text,
              HasSubstr("name a communicator"));
}

TEST(Explain, SaysWhatToDoAboutPeersThatNeverConnect) {
  EXPECT_THAT(moeyard_program({"explain", "HCCL_E_TIMEOUT"}).text, HasSubstr("HCCL_CONNECT_TIMEOUT"));
  EXPECT_THAT(moeyard_program({"explain", "507048"}).text, HasSubstr("names the ranks that are missing"));
}

TEST(Explain, RefusesWhatItDoesNotKnow) {
  const Outcome outcome = moeyard_program({"explain", "nothing"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.text, HasSubstr("neither an operator nor a code"));
  const Outcome parameter = moeyard_program({"explain", "MoeUpdateExpert", "epWorldSize"});
  EXPECT_EQ(parameter.code, 2);
  EXPECT_THAT(parameter.text, HasSubstr("its parameters are expertIds, eplbTable"));
}

}  // namespace
