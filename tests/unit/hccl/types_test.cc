// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "hccl/types.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "base/settings.h"

namespace moeyard::hccl {
namespace {

using Types = std::set<int>;
constexpr int kTypeNumbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, 17};
const Types kOld = {HCCL_DATA_TYPE_INT8, HCCL_DATA_TYPE_INT16, HCCL_DATA_TYPE_INT32, HCCL_DATA_TYPE_INT64,
                    HCCL_DATA_TYPE_FP16, HCCL_DATA_TYPE_FP32,  HCCL_DATA_TYPE_BFP16};

Types with(Types types, std::initializer_list<int> more) {
  types.insert(more);
  return types;
}
Types without(Types types, std::initializer_list<int> less) {
  for (const int type : less) types.erase(type);
  return types;
}

class TypesTest : public testing::Test {
 protected:
  void emulate(const char* product) {
    setenv("MOEYARD_SOC", product, 1);
    reload_settings();
  }
  void TearDown() override {
    unsetenv("MOEYARD_SOC");
    reload_settings();
  }

  // The types that pass; all others must be refused as not supported.
  template <class Check>
  static Types passing(const Check& check) {
    Types types;
    for (const int type : kTypeNumbers) {
      const auto row = check(static_cast<HcclDataType>(type));
      if (row) {
        types.insert(type);
      } else {
        EXPECT_EQ(row.error().code(), HCCL_E_NOT_SUPPORT) << type;
      }
    }
    return types;
  }
  static Types moved() {
    return passing([](HcclDataType type) { return check_move("f", type); });
  }
  static Types reduced(HcclReduceOp op, Reduction reduction = Reduction::ordinary) {
    return passing([=](HcclDataType type) { return check_reduction("f", type, op, reduction); });
  }
};

TEST_F(TypesTest, OlderProductsMoveAllButTheEightBitFloats) {
  for (const char* product : {"A2", "A3"}) {
    emulate(product);
    EXPECT_EQ(moved(), (Types{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})) << product;
  }
  for (const char* product : {"950", "host"}) {
    emulate(product);
    EXPECT_EQ(moved(), (Types{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 15, 16, 17})) << product;
  }
}

TEST_F(TypesTest, ReductionsOfEachProduct) {
  for (const char* product : {"A2", "A3", "950", "host"}) {
    emulate(product);
    const bool old = product[0] == 'A';
    const Types types = old ? kOld : with(kOld, {HCCL_DATA_TYPE_UINT64, HCCL_DATA_TYPE_FP64});
    for (const HcclReduceOp op : {HCCL_REDUCE_SUM, HCCL_REDUCE_MAX, HCCL_REDUCE_MIN})
      EXPECT_EQ(reduced(op), types) << product;
    EXPECT_EQ(reduced(HCCL_REDUCE_PROD), without(types, {HCCL_DATA_TYPE_INT16, HCCL_DATA_TYPE_BFP16}))
        << product;
  }
}

TEST_F(TypesTest, ReduceScatterVIsNarrowerOnOlderProducts) {
  const auto of = [](HcclReduceOp op) { return reduced(op, Reduction::reduce_scatter_v); };
  emulate("A2");
  EXPECT_EQ(of(HCCL_REDUCE_SUM), without(kOld, {HCCL_DATA_TYPE_INT64}));
  EXPECT_EQ(of(HCCL_REDUCE_PROD), Types{});
  emulate("A3");
  EXPECT_EQ(of(HCCL_REDUCE_MAX), kOld);
  EXPECT_EQ(of(HCCL_REDUCE_PROD), Types{});
  for (const char* product : {"950", "host"}) {
    emulate(product);
    EXPECT_EQ(of(HCCL_REDUCE_MIN), reduced(HCCL_REDUCE_MIN));
    EXPECT_EQ(of(HCCL_REDUCE_PROD), reduced(HCCL_REDUCE_PROD));
  }
}

TEST_F(TypesTest, NumbersThatAreNoTypesOrOperationsAreParameterErrors) {
  for (const int type : {13, 18, 200, 255})
    EXPECT_EQ(check_move("f", static_cast<HcclDataType>(type)).error().code(), HCCL_E_PARA) << type;
  for (const int op : {4, 200, 255})
    EXPECT_EQ(check_reduction("f", HCCL_DATA_TYPE_FP32, static_cast<HcclReduceOp>(op)).error().code(),
              HCCL_E_PARA)
        << op;
}

}  // namespace
}  // namespace moeyard::hccl
