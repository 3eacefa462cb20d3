// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "contract/shape.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace moeyard::contract {
namespace {

const std::vector<std::string> kNames = {"BS", "W", "A'", "numExperts"};

std::optional<std::int64_t> value(std::string_view text, std::vector<std::optional<std::int64_t>> values) {
  const Shape shape = parse_shape(text, kNames);
  Values known;
  for (std::size_t name = 0; name < values.size(); ++name)
    if (values[name]) known.set(name, *values[name]);
  return evaluate(shape.alternatives.at(0).dims.at(0).terms, known);
}

TEST(Shape, EvaluatesExpressions) {
  EXPECT_EQ(value("BS", {3, 4, 5, 6}), 3);
  EXPECT_EQ(value("4 + 2*W", {3, 4, 5, 6}), 12);
  EXPECT_EQ(value("(BS + W) * A' - numExperts", {3, 4, 5, 6}), 29);
  EXPECT_EQ(value("numExperts / W / 1", {3, 4, 5, 9}), 2);
  EXPECT_EQ(value("10 - 3 - 2", {}), 5);
}

TEST(Shape, HasNoValueWithoutItsNamesOrPastTheIntegers) {
  EXPECT_EQ(value("2*W", {3, {}, 5, 6}), std::nullopt);
  EXPECT_EQ(value("BS / W", {3, 0, 5, 6}), std::nullopt);
  EXPECT_EQ(value("BS * BS", {INT64_C(1) << 40, 0, 0, 0}), std::nullopt);
}

TEST(Shape, ReadsAlternativesAndKinds) {
  const Shape shape = parse_shape("BS | BS, >= 128*W | ..., * | ()", kNames);
  ASSERT_EQ(shape.alternatives.size(), 4u);
  EXPECT_EQ(shape.alternatives[0].dims.size(), 1u);
  EXPECT_EQ(shape.alternatives[1].dims[1].kind, DimRule::Kind::at_least);
  EXPECT_TRUE(shape.alternatives[2].any_leading);
  EXPECT_EQ(shape.alternatives[2].dims[0].kind, DimRule::Kind::anything);
  EXPECT_TRUE(shape.alternatives[3].dims.empty());
  EXPECT_TRUE(parse_shape("", kNames).alternatives.empty());
}

TEST(Shape, RefusesWhatIsNotInTheLanguage) {
  for (const char* text : {"BS,", "XX", "2*", "(BS", "BS W", "BS, ..., W", ">=", "-1", "BS ** 2"})
    EXPECT_THROW((void)parse_shape(text, kNames), std::invalid_argument) << text;
}

TEST(Shape, BindsOnlySingleNames) {
  auto first = [](const char* text) {
    return single_name(parse_shape(text, kNames).alternatives[0].dims[0]);
  };
  EXPECT_EQ(first("W"), 1u);
  EXPECT_EQ(first(">= W"), std::nullopt);
  EXPECT_EQ(first("W + 0"), std::nullopt);
}

}  // namespace
}  // namespace moeyard::contract
