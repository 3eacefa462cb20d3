// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "runtime/device.h"

#include <gtest/gtest.h>

#include "runtime/init.h"

namespace moeyard::runtime {
namespace {

using Devices = std::vector<int>;

TEST(VisibleDevices, StopAtTheFirstThatIsNotValid) {
  EXPECT_EQ(parse_visible_devices(nullptr, 3), (Devices{0, 1, 2}));
  EXPECT_EQ(parse_visible_devices("1,3,8", 8), (Devices{1, 3}));
  EXPECT_EQ(parse_visible_devices("1, 2,3", 8), (Devices{1}));
  EXPECT_EQ(parse_visible_devices("0,2,7", 8), (Devices{0, 2, 7}));
  EXPECT_EQ(parse_visible_devices("0,2,x", 8), (Devices{0, 2}));
  EXPECT_EQ(parse_visible_devices("0,2,", 8), (Devices{0, 2}));
}

TEST(VisibleDevices, AreNoneIfTheListDoesNotAscend) {
  EXPECT_EQ(parse_visible_devices("3,1", 8), Devices{});
  EXPECT_EQ(parse_visible_devices("1,1", 8), Devices{});
  EXPECT_EQ(parse_visible_devices("", 8), Devices{});
  EXPECT_EQ(parse_visible_devices("9", 8), Devices{});
  EXPECT_EQ(parse_visible_devices("-1", 8), Devices{});
}

TEST(Configuration, NestingIsCountedOutsideOfStrings) {
  EXPECT_EQ(nesting_depth(R"({"a": {"b": {}}, "c": {}})", '{', '}'), 3);
  EXPECT_EQ(nesting_depth(R"({"a": "{{{{", "b\"": "{"})", '{', '}'), 1);
  EXPECT_EQ(nesting_depth("[[1], [2, [3]]]", '[', ']'), 3);
  EXPECT_EQ(nesting_depth("", '[', ']'), 0);
}

}  // namespace
}  // namespace moeyard::runtime
