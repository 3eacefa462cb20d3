// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/placement.h"

#include <gmock/gmock.h>

#include "support/model_files.h"

namespace moeyard::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<Placement> read(const std::string& text, std::int64_t experts, std::int64_t layer = 0) {
  const test::TemporaryFolder folder;
  return read_placement(folder.write("placement.json", text), experts, layer);
}

TEST(Placement, BecomesTheTableOfUpdateExpert) {
  const auto placement = read(R"({"phy2log": [1, 2, 2, 1, 0, 2]})", 3);
  ASSERT_TRUE(placement) << placement.error().message();
  EXPECT_EQ(placement->instances(), 6);
  EXPECT_EQ(placement->columns, 4);
  EXPECT_THAT(placement->table, ElementsAre(1, 4, -1, -1, 2, 0, 3, -1, 3, 1, 2, 5));
}

TEST(Placement, ListsOfLayersAreTakenByLayer) {
  EXPECT_THAT(read(R"({"phy2log": [[0, 1], [1, 0]]})", 2, 1)->expert_of_instance, ElementsAre(1, 0));
  EXPECT_THAT(read(R"({"phy2log": [[1, 0]]})", 2, 7)->expert_of_instance, ElementsAre(1, 0));
}

TEST(Placement, OneInstanceOfEachIsATableOfTwoColumns) {
  const auto placement = read(R"({"phy2log": [1, 0]})", 2);
  EXPECT_EQ(placement->columns, 2);
  EXPECT_THAT(placement->table, ElementsAre(1, 1, 1, 0));
  EXPECT_TRUE(place_in_order(2).table.empty());
}

TEST(Placement, BadTablesAreRefused) {
  const std::pair<const char*, const char*> files[] = {
      {"{}", "has no list phy2log"},
      {R"({"phy2log": 3})", "has no list phy2log"},
      {R"({"phy2log": []})", "has no instance of expert 0"},
      {R"({"phy2log": [0, 0]})", "has no instance of expert 1"},
      {R"({"phy2log": [0, 1, 2]})", "gives instance 2 to expert 2, the layer has experts 0 to 1"},
      {R"({"phy2log": [0, -1]})", "has '-1' as entry 1 of phy2log"},
      {R"({"phy2log": [0, 1.0]})", "has '1.0' as entry 1"},
      {R"({"phy2log": [0, 4294967296]})", "as entry 1"},
      {R"({"phy2log": [0, "1"]})", "as entry 1"},
      {R"({"phy2log": [[0, 1], [1, 0]]})", "of 2 layers, layer 5 is not among them"},
      {R"({"phy2log": [[0, 1], 1, 1, 1, 1, 1]})", "an entry of phy2log that is not a list"},
  };
  for (const auto& [text, says] : files) {
    const auto placement = read(text, 2, 5);
    ASSERT_FALSE(placement) << text;
    EXPECT_EQ(placement.error().code(), 2);
    EXPECT_THAT(placement.error().message(), HasSubstr(says));
  }
}

TEST(Placement, FittingRanksAreTheDivisors) {
  EXPECT_EQ(fitting_ranks(1), "1");
  EXPECT_EQ(fitting_ranks(12), "1, 2, 3, 4, 6, 12");
}

}  // namespace
}  // namespace moeyard::model
