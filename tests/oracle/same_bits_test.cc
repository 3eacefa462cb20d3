// Moeyard. SPDX-License-Identifier: Apache-2.0
// Results of gating and compute operators have the same bits for every number of threads and, but for floating-point
// products, every SIMD target.
#include <gtest/gtest.h>

#include "aclnnop/aclnn_cast.h"
#include "aclnnop/aclnn_grouped_matmul_v4.h"
#include "aclnnop/aclnn_moe_gating_top_k.h"
#include "aclnnop/aclnn_moe_gating_top_k_softmax_v2.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_sigmoid.h"
#include "aclnnop/aclnn_swi_glu.h"
#include "support/same_bits.h"

namespace oracle {
namespace {

constexpr std::int64_t kTokens = 700, kExperts = 77, kTopK = 6, kHidden = 333;

template <class T>
Tensor draw(std::vector<std::int64_t> shape, std::mt19937& random) {
  Tensor made = Tensor::empty<T>(shape);
  std::vector<T> values;
  for (std::int64_t i = 0; i < made.numel(); ++i) {
    const std::int32_t drawn = static_cast<std::int32_t>(random() % 20001) - 10000;
    if constexpr (std::is_same_v<T, std::int8_t>)
      values.push_back(static_cast<std::int8_t>(drawn));
    else
      values.push_back(T(static_cast<float>(drawn) * 0.001f));
  }
  made.set(values);
  return made;
}

void expect_run(const Device& device, PhaseTwo phase_two,
                const std::function<int(std::uint64_t*, aclOpExecutor**)>& phase_one) {
  EXPECT_EQ(run(phase_one, phase_two, device), 0) << recent_message();
}

std::string digest_of_gating(const Device& device) {
  std::mt19937 random(1);
  Digest digest;
  Tensor x = draw<B16>({kTokens, kExperts}, random), bias = draw<B16>({kExperts}, random);
  for (std::int64_t norm = 0; norm < 3; ++norm) {
    Tensor y = Tensor::empty<B16>({kTokens, kTopK}), ids = Tensor::empty<std::int32_t>({kTokens, kTopK}),
           scores = Tensor::empty<float>({kTokens, kExperts});
    expect_run(device, aclnnMoeGatingTopK, [&](auto* size, auto** executor) {
      return aclnnMoeGatingTopKGetWorkspaceSize(x, bias, kTopK, 3, 7, 1, 1, norm, true, 2.5, 1e-20, y, ids,
                                                scores, size, executor);
    });
    digest.add(y), digest.add(ids), digest.add(scores);
  }
  for (std::int64_t renorm = 0; renorm < 2; ++renorm) {
    Tensor y = Tensor::empty<B16>({kTokens, kTopK}), ids = Tensor::empty<std::int32_t>({kTokens, kTopK});
    expect_run(device, aclnnMoeGatingTopKSoftmaxV2, [&](auto* size, auto** executor) {
      return aclnnMoeGatingTopKSoftmaxV2GetWorkspaceSize(x, nullptr, kTopK, renorm, false, y, ids, nullptr,
                                                         size, executor);
    });
    digest.add(y), digest.add(ids);
  }
  return digest.text();
}

std::string digest_of_elements(const Device& device) {
  std::mt19937 random(2);
  Digest digest;
  Tensor x = draw<F16>({kTokens, 2 * kHidden}, random), gate = draw<float>({kTokens, 1}, random),
         half = Tensor::empty<F16>({kTokens, kHidden}), wide = Tensor::empty<float>({kTokens, 2 * kHidden}),
         narrow = Tensor::empty<B16>({kTokens, 2 * kHidden});
  expect_run(device, aclnnSwiGlu, [&](auto* size, auto** executor) {
    return aclnnSwiGluGetWorkspaceSize(x, -1, half, size, executor);
  });
  expect_run(device, aclnnSigmoid, [&](auto* size, auto** executor) {
    return aclnnSigmoidGetWorkspaceSize(x, wide, size, executor);
  });
  expect_run(device, aclnnMul, [&](auto* size, auto** executor) {
    return aclnnMulGetWorkspaceSize(wide, gate, wide, size, executor);
  });
  expect_run(device, aclnnCast, [&](auto* size, auto** executor) {
    return aclnnCastGetWorkspaceSize(wide, ACL_BF16, narrow, size, executor);
  });
  digest.add(half), digest.add(wide), digest.add(narrow);
  return digest.text();
}

template <class T, class Out>
std::string digest_of_products(const Device& device, std::int64_t act) {
  std::mt19937 random(3);
  TensorList x = list_of(draw<T>({kTokens, kHidden}, random)),
             weight = list_of(draw<T>({3, kHidden, 290}, random)), scale,
             out = list_of(Tensor::empty<Out>({kTokens, 290}));
  if (std::is_same_v<T, std::int8_t>) scale = list_of(draw<float>({3, 290}, random));
  Tensor list = Tensor::of<std::int64_t>({3}, {1, 500, 150});
  expect_run(device, aclnnGroupedMatmulV4, [&](auto* size, auto** executor) {
    return aclnnGroupedMatmulV4GetWorkspaceSize(x, weight, nullptr, scale, nullptr, nullptr, nullptr, nullptr,
                                                list, nullptr, nullptr, nullptr, 3, 0, 1, act, out, nullptr,
                                                nullptr, size, executor);
  });
  Digest digest;
  digest.add(out[0]);
  return digest.text();
}

TEST_P(SameBitsTest, OfGating) { compare(digest_of_gating); }
TEST_P(SameBitsTest, OfElements) { compare(digest_of_elements); }
TEST_P(SameBitsTest, OfIntegerProducts) {
  compare([](const Device& device) { return digest_of_products<std::int8_t, B16>(device, 5); });
}
class SameBitsOnOneTargetTest : public SameBitsTest {};

TEST_P(SameBitsOnOneTargetTest, OfFloatingPointProducts) {
  compare([](const Device& device) { return digest_of_products<B16, B16>(device, 0); });
}

INSTANTIATE_TEST_SUITE_P(Threads, SameBitsTest, testing::ValuesIn(kOtherThreads), name_of);
INSTANTIATE_TEST_SUITE_P(Targets, SameBitsTest, testing::ValuesIn(kOtherTargets), name_of);
INSTANTIATE_TEST_SUITE_P(Threads, SameBitsOnOneTargetTest, testing::ValuesIn(kOtherThreads), name_of);

}  // namespace
}  // namespace oracle
