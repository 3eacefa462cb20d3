// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "base/tensor_view.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace moeyard {
namespace {

TensorView make(std::vector<std::int64_t> shape, std::vector<std::int64_t> strides, std::int64_t offset = 0,
                aclDataType dtype = ACL_FLOAT) {
  TensorView view;
  view.dtype = dtype;
  view.rank = static_cast<std::int32_t>(shape.size());
  view.offset = offset;
  std::copy(shape.begin(), shape.end(), view.shape);
  std::copy(strides.begin(), strides.end(), view.strides);
  return view;
}

TEST(TensorView, KnowsContiguity) {
  EXPECT_TRUE(make({2, 3}, {3, 1}).contiguous());
  EXPECT_FALSE(make({2, 3}, {1, 2}).contiguous());
  EXPECT_FALSE(make({2, 3}, {4, 1}).contiguous());
  EXPECT_TRUE(make({2, 3}, {4, 1}).contiguous_from(1));
  EXPECT_TRUE(make({1, 3}, {99, 1}).contiguous());  // one row: its stride doesn't matter
  EXPECT_TRUE(make({}, {}).contiguous());
}

TEST(TensorView, ReachesFromItsLowestToItsHighestElement) {
  const auto all = make({2, 3}, {-3, 1}, 3).extent();
  EXPECT_EQ(all.low, 0);
  EXPECT_EQ(all.high, 5);
  const auto none = make({0, 3}, {3, 1}).extent();
  EXPECT_GT(none.low, none.high);
}

// Walks every index; exact, so it also shows where overlaps_itself() is on the safe side.
bool really_overlaps(const TensorView& view) {
  std::set<std::int64_t> seen;
  for (std::int64_t index = 0; index < view.numel(); ++index) {
    std::int64_t left = index, at = view.offset;
    for (int axis = view.rank - 1; axis >= 0; --axis) {
      at += left % view.shape[axis] * view.strides[axis];
      left /= view.shape[axis];
    }
    if (!seen.insert(at).second) return true;
  }
  return false;
}

TEST(TensorView, FindsEveryOverlap) {
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::int64_t> shape, strides;
    for (int axis = 0; axis < 3; ++axis) {
      shape.push_back(static_cast<std::int64_t>(random() % 4));
      strides.push_back(static_cast<std::int64_t>(random() % 14) - 3);
    }
    const TensorView view = make(shape, strides, 100);
    if (!really_overlaps(view)) continue;
    EXPECT_TRUE(view.overlaps_itself()) << view.describe();
  }
}

TEST(TensorView, CallsSlicesAndTransposesFreeOfOverlap) {
  EXPECT_FALSE(make({4, 6}, {6, 1}).overlaps_itself());
  EXPECT_FALSE(make({6, 4}, {1, 6}).overlaps_itself());
  EXPECT_FALSE(make({2, 3}, {12, 2}).overlaps_itself());
  EXPECT_FALSE(make({3, 2}, {-4, 1}, 8).overlaps_itself());
  EXPECT_TRUE(make({3, 2}, {0, 1}).overlaps_itself());
  EXPECT_FALSE(make({3, 0}, {0, 1}).overlaps_itself());
}

TEST(TensorView, DescribesItself) {
  EXPECT_EQ(make({2, 3}, {3, 1}, 0, ACL_BF16).describe(), "BF16[2,3]");
  EXPECT_EQ(make({2, 3}, {1, 2}, 0, ACL_INT8).describe(), "INT8[2,3] strides (1,2)");
  EXPECT_EQ(make({}, {}).describe(), "FP32[]");
  EXPECT_EQ(TensorView().describe(), "null");
}

TEST(Dtype, PacksSmallTypes) {
  EXPECT_EQ(bytes_of(ACL_INT4, 3), 2);
  EXPECT_EQ(bytes_of(ACL_FLOAT4_E2M1, 4), 2);
  EXPECT_EQ(bytes_of(ACL_UINT1, 9), 2);
  EXPECT_EQ(bytes_of(ACL_COMPLEX128, 2), 32);
  EXPECT_EQ(bytes_of(ACL_STRING, 2), 0);
}

TEST(Dtype, CountsBackwardsForNegativeOffsets) {
  EXPECT_EQ(bytes_of(ACL_FLOAT, -1), -4);
  EXPECT_EQ(bytes_of(ACL_BF16, -3), -6);
  EXPECT_EQ(bytes_of(ACL_INT8, -5), -5);
  EXPECT_EQ(bytes_of(ACL_INT4, -4), -2);
}

TEST(Dtype, HasNames) {
  EXPECT_EQ(name_of(ACL_FLOAT8_E4M3FN), "FLOAT8_E4M3FN");
  EXPECT_EQ(name_of(static_cast<aclDataType>(5)), "dtype 5");
  EXPECT_EQ(name_of(static_cast<aclDataType>(-7)), "dtype -7");
  EXPECT_EQ(names_of(kFP16 | kBF16), "FP16 or BF16");
  EXPECT_EQ(names_of(kINT32), "INT32");
}

}  // namespace
}  // namespace moeyard
