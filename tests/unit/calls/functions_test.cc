// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "calls/functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <vector>

#include "acl/acl_rt.h"
#include "calls/codes.h"
#include "calls/explain.h"
#include "contract/survey.h"

namespace moeyard::calls {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(Functions, EveryContractHasAFunctionAndEveryFunctionAContract) {
  std::set<const contract::Contract*> reached;
  for (const Function& function : functions()) {
    const contract::Contract& contract = contract_of(function);
    const std::string name(contract.about().name);
    EXPECT_THAT(std::string(function.name), HasSubstr("aclnn" + name.substr(0, name.find(' '))));
    reached.insert(&contract);
  }
  EXPECT_EQ(reached.size(), contract::all().size());
}

// An adapter of an older version must not speak in another's name.
TEST(Functions, RefusalsNameTheFunctionThatWasCalled) {
  for (const Function& function : functions()) {
    const std::vector<Argument> nothing(function.parameters.size());
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    EXPECT_NE(function.plan(nothing.data(), &size, &executor), 0) << function.name;
    EXPECT_THAT(aclGetRecentErrMsg(), StartsWith("[EZ1001] " + std::string(function.name) + ": "));
    EXPECT_NE(function.run(nullptr, 0, nullptr, nullptr), 0) << function.name;
    EXPECT_THAT(aclGetRecentErrMsg(), HasSubstr("] " + std::string(function.name) + ": "));
  }
}

// Dumps are recorded by the contract's parameters and replayed by the function's.
TEST(Functions, ParametersAreThoseOfTheContract) {
  for (const Function& function : functions())
    for (const Parameter& parameter : function.parameters) {
      const std::string_view name = name_in_contract(function, parameter.name);
      const auto& params = contract_of(function).about().params;
      const auto found = std::ranges::find(params, name, &contract::Param::name);
      ASSERT_NE(found, params.end()) << function.name << " " << parameter.name;
      EXPECT_EQ(parameter.kind == Kind::tensor, found->access.tensor != nullptr)
          << function.name << " " << name;
      EXPECT_EQ(parameter.kind == Kind::tensor_list, found->access.list != nullptr)
          << function.name << " " << name;
      EXPECT_EQ(parameter.kind == Kind::integers, found->access.integers != nullptr)
          << function.name << " " << name;
      EXPECT_EQ(parameter.kind == Kind::scalar, found->access.scalar != nullptr)
          << function.name << " " << name;
      EXPECT_EQ(parameter.kind == Kind::text, found->access.text != nullptr) << function.name << " " << name;
    }
}

TEST(Explain, EveryContractHasAPageOfItsOwn) {
  std::set<std::string> files;
  for (const contract::Contract* contract : contract::all())
    EXPECT_TRUE(files.insert(file_of(*contract)).second) << file_of(*contract);
  EXPECT_THAT(files, testing::IsSupersetOf({"mul.md", "muls.md", "swi_glu.md", "attention_to_ffn.md"}));
}

TEST(Functions, AreFoundByName) {
  const Function* function = find_function("aclnnMoeUpdateExpert");
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(function, find_function("MoeUpdateExpert"));
  EXPECT_EQ(function->header, "aclnnop/aclnn_moe_update_expert.h");
  EXPECT_THAT(std::string(function->comment), HasSubstr("eplbTable"));
  ASSERT_EQ(function->parameters.size(), 10u);
  EXPECT_EQ(function->parameters[5].name, "localRankId");
  EXPECT_EQ(function->parameters[5].kind, Kind::integer);
  EXPECT_EQ(find_function("aclnnNothing"), nullptr);
}

TEST(Functions, OfAContractAreInTheOrderOfTheirVersions) {
  const auto versions = functions_of(contract_of(*find_function("MoeDistributeDispatchV3")));
  ASSERT_GE(versions.size(), 3u);
  EXPECT_EQ(versions.back()->name, "aclnnMoeDistributeDispatchV4");
}

TEST(Explain, PagesHaveTheContractsRules) {
  const auto& contract = contract_of(*find_function("MoeUpdateExpert"));
  const std::string text = page_of(contract).as_text();
  EXPECT_THAT(text, HasSubstr("balanceMode"));
  EXPECT_THAT(text, HasSubstr("be in [2, 768] when balanceMode is 0"));
  EXPECT_THAT(text, HasSubstr("ACLNN_ERR_INNER_TILING_ERROR"));
  const std::string parameter = page_of_parameter(contract, "worldSize").as_text();
  EXPECT_THAT(parameter, HasSubstr("localRankId"));  // whose rule names it
  EXPECT_THAT(parameter, Not(HasSubstr("pruningThresholdOptional")));
  EXPECT_TRUE(page_of_parameter(contract, "nothing").title.empty());
}

// Halves of dispatch and combine have rules of the whole, but not those on what only the whole has.
TEST(Explain, PagesOfHalvesHaveNoRulesThatNobodyCanBreak) {
  for (const char* name : {"MoeDistributeDispatchSetup", "MoeDistributeDispatchTeardown",
                           "MoeDistributeCombineSetup", "MoeDistributeCombineTeardown"}) {
    const std::string page = page_of(contract_of(*find_function(name))).as_text();
    EXPECT_THAT(page, HasSubstr("be 2 or 8 in the split operators")) << name;
    EXPECT_THAT(page, HasSubstr("be a multiple of epWorldSize - sharedExpertRankNum")) << name;
    for (const char* foreign : {"tpWorldSize", "zeroExpertNum", "hierarchy", "fullmesh_v2", "[2, 1024]"})
      EXPECT_THAT(page, Not(HasSubstr(foreign))) << name;
  }
}

TEST(Explain, MarkdownTablesHaveOneCellPerColumn) {
  for (const contract::Contract* contract : contract::all()) {
    const std::string page = page_of(*contract).as_markdown();
    EXPECT_EQ(page.find("\n\n\n"), std::string::npos) << contract->about().name;
  }
}

TEST(Codes, AreFoundByNumberNameAndText) {
  const CodeAdvice* advice = find_advice("561003");
  ASSERT_NE(advice, nullptr);
  EXPECT_EQ(advice, find_advice("ACLNN_ERR_INNER_FIND_KERNEL_ERROR"));
  EXPECT_EQ(find_advice("HCCL_E_TIMEOUT"), find_advice("9"));
  EXPECT_NE(find_advice("EI0006"), nullptr);
  EXPECT_EQ(find_advice("1234567"), nullptr);
}

TEST(Codes, EveryCodeOfAContractHasAdvice) {
  for (const contract::Contract* contract : contract::all()) {
    const auto& about = contract->about();
    std::set<std::int32_t> codes = {about.codes.null,   about.codes.dtype, about.codes.same_dtype,
                                    about.codes.format, about.codes.shape, about.codes.rule};
    for (const contract::Rule& rule : about.rules)
      if (rule.code != 0) codes.insert(rule.code);
    for (const std::int32_t code : codes) EXPECT_NE(find_advice(std::to_string(code)), nullptr) << code;
  }
}

}  // namespace
}  // namespace moeyard::calls
