// Moeyard. SPDX-License-Identifier: Apache-2.0
// The types of atb/types.h, SVector and Utils.
#include <map>
#include <sstream>

#include "support/atb.h"

namespace oracle {
namespace {

using atb::SVector;

TEST(AtbTypes, AreLaidOutAsDocumented) {
  EXPECT_EQ(sizeof(atb::Dims), 72u);
  EXPECT_EQ(sizeof(atb::TensorDesc), 80u);
  EXPECT_EQ(sizeof(atb::Tensor), 104u);
  EXPECT_EQ(atb::ERROR_INVALID_TENSOR_SIZE, 9);
  EXPECT_EQ(atb::ERROR_INVALID_TENSOR_INI_MATCH, 13);
  EXPECT_EQ(atb::ERROR_INVALID_GRAPH_NODE_CHUNK, 19);
  EXPECT_EQ(atb::ERROR_COPY_HOST_MEMORY_FAIL, 29);
  EXPECT_EQ(atb::infer::ElewiseParam::ELEWISE_TANH, 20);
  EXPECT_EQ(atb::infer::ACTIVATION_FASTER_GELU_FORWARD, 9);
  EXPECT_EQ(atb::infer::LinearParallelParam::GMM_REDUCE_SCATTER_ALLTOALLVC, 6);
  EXPECT_TRUE(atb::infer::LinearParam().transposeB && atb::infer::LinearParam().hasBias);
}

template <class T>
SVector<T> filled(std::size_t size, const T& value) {
  SVector<T> vector;
  for (std::size_t i = 0; i < size; ++i) vector.push_back(value);
  return vector;
}

TEST(AtbSVector, HoldsUpTo256Elements) {
  SVector<int> vector = filled(256, 7);
  EXPECT_EQ(vector.size(), 256u);
  EXPECT_THROW(vector.push_back(1), atb::MaxSizeExceeded);
  EXPECT_THROW(vector.insert(0, 1), atb::MaxSizeExceeded);
  EXPECT_THROW(vector.resize(257), atb::MaxSizeExceeded);
  EXPECT_THROW(vector.reserve(257), atb::MaxSizeExceeded);
  EXPECT_THROW(SVector<int>(257), atb::MaxSizeExceeded);
  EXPECT_EQ(vector.size(), 256u);
  EXPECT_EQ(SVector<int>(65, 3), filled(65, 3));
  EXPECT_EQ(SVector<int>(2)[1], 0);
}

TEST(AtbSVector, KeepsLongLists) {
  const SVector<int> vector = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17,
                               18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34,
                               35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51,
                               52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66};
  EXPECT_EQ(vector.size(), 66u);
  EXPECT_EQ(vector[65], 66);
}

TEST(AtbSVector, ChecksIndices) {
  SVector<int> vector = {1, 2};
  const SVector<int>& constant = vector;
  EXPECT_THROW(vector[2], std::out_of_range);
  EXPECT_THROW(constant[2], std::out_of_range);
  EXPECT_THROW(vector.at(2), std::out_of_range);
  EXPECT_THROW(constant.at(2), std::out_of_range);
  EXPECT_THROW(vector.insert(3, 1), std::out_of_range);
  vector.insert(1, 9);
  vector.insert(0, 8);
  vector.insert(4, 7);
  EXPECT_EQ(vector, (SVector<int>{8, 1, 9, 2, 7}));
}

TEST(AtbSVector, HasValueSemantics) {
  SVector<std::string> a = filled(70, std::string("a long enough text for the heap"));
  SVector<std::string> b = a, c;
  c = a;
  a[69] = "other";
  EXPECT_EQ(b[69], c[69]);
  EXPECT_NE(a, b);
  b = {"x"};
  EXPECT_EQ(b.size(), 1u);
  b = *&b;
  EXPECT_EQ(b[0], "x");
  c.clear();
  EXPECT_TRUE(c.empty());
  c.resize(3);
  EXPECT_EQ(c[2], "");
  a.reserve(200);
  EXPECT_EQ(a[69], "other");
  a.push_back(a[0]);
  EXPECT_EQ(a[70], a[0]);
  SVector<std::string> grown = filled(64, std::string("text that needs memory of its own"));
  grown.push_back(grown[3]);
  EXPECT_EQ(grown[64], grown[3]);
}

TEST(AtbSVector, HoldsWhatPluginsKeepInIt) {
  SVector<std::shared_ptr<int>> pointers;
  pointers.resize(80);
  pointers[79] = std::make_shared<int>(5);
  const std::weak_ptr<int> watched = pointers[79];
  const SVector<std::shared_ptr<int>> copy = pointers;
  pointers.resize(2);
  EXPECT_FALSE(watched.expired());
  SVector<std::function<int()>> functions(65);
  functions[64] = [] { return 3; };
  functions.reserve(256);
  EXPECT_EQ(functions[64](), 3);
  SVector<atb::Tensor> tensors;
  tensors.resize(3);
  EXPECT_EQ(tensors[2].desc.dtype, ACL_DT_UNDEFINED);
  EXPECT_EQ(tensors[2].dataSize, 0u);
}

TEST(AtbSVector, ComparesAndPrints) {
  const SVector<int> a = {1, 2, 3}, b = {1, 3}, c = {1, 2};
  EXPECT_LT(a, b);
  EXPECT_FALSE(b < a);
  EXPECT_LT(c, a);
  EXPECT_TRUE(a != c);
  std::ostringstream text;
  text << a << "|" << SVector<int>();
  EXPECT_EQ(text.str(), "1,2,3|");
}

TEST(AtbUtils, CountElementsAndBytes) {
  const auto bytes = [](aclDataType dtype, const Shape& shape) {
    return atb::Utils::GetTensorSize(desc_of(dtype, shape));
  };
  EXPECT_EQ(bytes(ACL_FLOAT16, {2, 3}), 12u);
  EXPECT_EQ(bytes(ACL_INT64, {5}), 40u);
  EXPECT_EQ(bytes(ACL_DT_UNDEFINED, {2, 3}), 6u);
  EXPECT_EQ(bytes(ACL_FLOAT, {}), 0u);
  EXPECT_EQ(bytes(ACL_FLOAT, {2, 0}), 0u);
  EXPECT_EQ(bytes(ACL_FLOAT, {2, -1}), 0u);
  EXPECT_EQ(bytes(ACL_FLOAT, {INT64_C(1) << 62, 2, 2}), 0u);
  EXPECT_EQ(bytes(ACL_FLOAT, {INT64_C(1) << 62}), 0u);
  EXPECT_EQ(bytes(ACL_FLOAT, {1, 1, 1, 1, 1, 1, 1, 1, 1}), 0u);
  atb::Tensor tensor;
  tensor.desc = desc_of(ACL_BF16, {4, 2});
  EXPECT_EQ(atb::Utils::GetTensorNumel(tensor), 8u);
  EXPECT_EQ(atb::Utils::GetTensorNumel(tensor.desc), 8u);
  EXPECT_EQ(atb::Utils::GetTensorSize(tensor), 16u);
}

TEST(AtbUtils, ConvertScales) {
  const float scales[] = {1.0f, -2.5f};
  std::uint64_t converted[] = {7, 7};
  atb::Utils::QuantParamConvert(scales, converted, 2);
  EXPECT_EQ(converted[0], 0x000000003F800000u);
  EXPECT_EQ(converted[1], 0x00000000C0200000u);
  atb::Utils::QuantParamConvert(nullptr, converted, 2);
  atb::Utils::QuantParamConvert(scales, nullptr, 2);
  EXPECT_EQ(converted[0], 0x000000003F800000u);
}

TEST(AtbUtils, SetTheLogLevel) {
  EXPECT_EQ(atb::Utils::SetLogLevel(atb::LogLevel::NONE), 0);
  EXPECT_EQ(atb::Utils::SetLogLevel(static_cast<atb::LogLevel>(5)), atb::ERROR_INVALID_PARAM);
  EXPECT_EQ(atb::Utils::ResetLogLevel(), 0);
  EXPECT_EQ(atb::Utils::GetAtbVersion().find("moeyard-"), 0u);
}

}  // namespace
}  // namespace oracle
