// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnn objects and executors as programs use them, with aclnnMoeUpdateExpert as the operator.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>
#include <vector>

#include "aclnnop/aclnn_moe_update_expert.h"
#include "support/device.h"

namespace oracle {
namespace {

using testing::HasSubstr;

TEST(Objects, ATensorTellsWhatItWasMadeFrom) {
  const int64_t view[] = {4, 2}, strides[] = {1, 4}, storage[] = {2, 4};
  float data[8] = {};
  aclTensor* tensor = aclCreateTensor(view, 2, ACL_FLOAT, strides, 3, ACL_FORMAT_ND, storage, 2, data);
  ASSERT_NE(tensor, nullptr);
  int64_t *dims = nullptr, *stored = nullptr, *steps = nullptr, offset = 0;
  uint64_t rank = 0, stored_rank = 0, steps_rank = 0;
  aclFormat format = ACL_FORMAT_UNDEFINED;
  aclDataType dtype = ACL_DT_UNDEFINED;
  void* address = nullptr;
  EXPECT_EQ(aclGetViewShape(tensor, &dims, &rank), 0);
  EXPECT_EQ(aclGetViewStrides(tensor, &steps, &steps_rank), 0);
  EXPECT_EQ(aclGetStorageShape(tensor, &stored, &stored_rank), 0);
  EXPECT_EQ(aclGetViewOffset(tensor, &offset), 0);
  EXPECT_EQ(aclGetFormat(tensor, &format), 0);
  EXPECT_EQ(aclGetDataType(tensor, &dtype), 0);
  EXPECT_EQ(aclGetRawTensorAddr(tensor, &address), 0);
  EXPECT_EQ(std::vector<int64_t>(dims, dims + rank), (std::vector<int64_t>{4, 2}));
  EXPECT_EQ(std::vector<int64_t>(steps, steps + steps_rank), (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(std::vector<int64_t>(stored, stored + stored_rank), (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(offset, 3);
  EXPECT_EQ(format, ACL_FORMAT_ND);
  EXPECT_EQ(dtype, ACL_FLOAT);
  EXPECT_EQ(address, data);
  delete[] dims;
  delete[] stored;
  delete[] steps;
  EXPECT_EQ(aclDestroyTensor(tensor), 0);
}

TEST(Objects, NullStridesMeanContiguous) {
  const int64_t view[] = {2, 3, 4};
  aclTensor* tensor = aclCreateTensor(view, 3, ACL_INT8, nullptr, 0, ACL_FORMAT_ND, view, 3, nullptr);
  int64_t* steps = nullptr;
  uint64_t rank = 0;
  ASSERT_EQ(aclGetViewStrides(tensor, &steps, &rank), 0);
  EXPECT_EQ(std::vector<int64_t>(steps, steps + rank), (std::vector<int64_t>{12, 4, 1}));
  delete[] steps;
  aclDestroyTensor(tensor);
}

TEST(Objects, AScalarTensorHasNoDimensions) {
  aclTensor* tensor = aclCreateTensor(nullptr, 0, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr);
  ASSERT_NE(tensor, nullptr);
  int64_t* dims = nullptr;
  uint64_t rank = 9;
  EXPECT_EQ(aclGetViewShape(tensor, &dims, &rank), 0);
  EXPECT_EQ(rank, 0u);
  EXPECT_NE(dims, nullptr);
  delete[] dims;
  aclDestroyTensor(tensor);
}

TEST(Objects, CannotBeMadeFromNullDimensionsOrTooMany) {
  const int64_t dims[26] = {};
  EXPECT_EQ(aclCreateTensor(nullptr, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr), nullptr);
  EXPECT_EQ(aclCreateTensor(dims, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 1, nullptr), nullptr);
  EXPECT_EQ(aclCreateTensor(dims, 26, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 1, nullptr), nullptr);
}

TEST(Objects, ArraysHoldCopies) {
  int64_t values[] = {1, 2, 3};
  aclIntArray* array = aclCreateIntArray(values, 3);
  uint64_t size = 0;
  EXPECT_EQ(aclGetIntArraySize(array, &size), 0);
  EXPECT_EQ(size, 3u);
  EXPECT_EQ(aclDestroyIntArray(array), 0);
  aclIntArray* empty = aclCreateIntArray(nullptr, 3);
  ASSERT_NE(empty, nullptr);
  EXPECT_EQ(aclGetIntArraySize(empty, &size), 0);
  EXPECT_EQ(size, 0u);
  aclDestroyIntArray(empty);
  EXPECT_EQ(aclCreateScalar(nullptr, ACL_FLOAT), nullptr);
}

TEST(Objects, AListOwnsItsTensorsAndASecondDestroyIsHarmless) {
  const int64_t dims[] = {1};
  aclTensor* tensors[] = {aclCreateTensor(dims, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 1, nullptr),
                          nullptr};
  aclTensorList* list = aclCreateTensorList(tensors, 2);
  uint64_t size = 0;
  EXPECT_EQ(aclGetTensorListSize(list, &size), 0);
  EXPECT_EQ(size, 2u);
  EXPECT_EQ(aclDestroyTensorList(list), 0);
  EXPECT_EQ(aclDestroyTensor(tensors[0]), 0);
  EXPECT_EQ(aclDestroyTensorList(list), 0);
  EXPECT_EQ(aclDestroyTensor(nullptr), 0);
}

TEST(Objects, GettersRefuseNulls) {
  int64_t* dims = nullptr;
  uint64_t rank = 0;
  EXPECT_EQ(aclGetViewShape(nullptr, &dims, &rank), 161001);
  const int64_t one[] = {1};
  aclTensor* tensor = aclCreateTensor(one, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, one, 1, nullptr);
  EXPECT_EQ(aclGetViewShape(tensor, &dims, nullptr), 161001);
  EXPECT_EQ(aclSetRawTensorAddr(nullptr, nullptr), 161001);
  EXPECT_EQ(aclInitTensor(nullptr, one, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, one, 1, nullptr), 161001);
  aclDestroyTensor(tensor);
}

// aclnnMoeUpdateExpert on a table that maps expert e to instance e + 10.
class ExecutorTest : public testing::Test {
 protected:
  aclOpExecutor* phase_one() {
    aclOpExecutor* executor = nullptr;
    EXPECT_EQ(aclnnMoeUpdateExpertGetWorkspaceSize(ids, table, nullptr, nullptr, nullptr, 0, 1, 0, out, mask,
                                                   &size, &executor),
              0)
        << recent_message();
    return executor;
  }
  int phase_two(aclOpExecutor* executor) {
    return aclnnMoeUpdateExpert(nullptr, size, executor, device.stream());
  }

  Device device;
  Tensor ids = Tensor::of<std::int32_t>({2, 1}, {0, 1});
  Tensor table = Tensor::of<std::int32_t>({2, 2}, {1, 10, 1, 11});
  Tensor out = Tensor::empty<std::int32_t>({2, 1});
  Tensor mask = Tensor::empty<std::uint8_t>({2, 1});
  uint64_t size = 0;
};

TEST_F(ExecutorTest, IsConsumedByItsSecondPhase) {
  aclOpExecutor* executor = phase_one();
  EXPECT_EQ(phase_two(executor), 0);
  EXPECT_EQ(phase_two(executor), 561103);
  EXPECT_THAT(recent_message(), HasSubstr("not a live executor"));
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 561000);
  EXPECT_EQ(device.synchronize(), 0);
  EXPECT_EQ(out.values<std::int32_t>(), (std::vector<std::int32_t>{10, 11}));
}

TEST_F(ExecutorTest, CanBeDestroyedUnused) {
  aclOpExecutor* executor = phase_one();
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
  EXPECT_EQ(phase_two(executor), 561103);
}

// Setup of a plugin, called again and again, makes executors that nobody runs.
TEST_F(ExecutorTest, IsFreedUnusedWhen1024NewerOnesExistInTheThread) {
  aclOpExecutor *kept = phase_one(), *first = phase_one(), *second = phase_one();
  ASSERT_EQ(aclSetAclOpExecutorRepeatable(kept), 0);
  for (int i = 0; i < 1023; ++i) phase_one();
  EXPECT_EQ(phase_two(second), 0);
  EXPECT_EQ(phase_two(first), 561103);
  aclOpExecutor *third = phase_one(), *fourth = phase_one();
  for (int i = 0; i < 1100; ++i) ASSERT_EQ(phase_two(phase_one()), 0);  // they make room as they are run
  EXPECT_EQ(phase_two(fourth), 0);
  for (int i = 0; i < 1024; ++i) phase_one();
  EXPECT_EQ(phase_two(third), 561103);
  EXPECT_EQ(phase_two(kept), 0);
  EXPECT_EQ(aclDestroyAclOpExecutor(kept), 0);
  std::thread([&] {
    const Device other;
    aclOpExecutor* foreign = phase_one();
    std::thread([&] {
      const Device another;
      for (int i = 0; i < 1100; ++i) phase_one();
    }).join();
    EXPECT_EQ(aclnnMoeUpdateExpert(nullptr, size, foreign, other.stream()), 0);
    EXPECT_EQ(other.synchronize(), 0);
  }).join();
  EXPECT_EQ(device.synchronize(), 0);
}

TEST_F(ExecutorTest, TensorsMayGoAfterPhaseOne) {
  const int64_t dims[] = {2, 1};
  aclTensor* early = aclCreateTensor(dims, 2, ACL_INT32, nullptr, 0, ACL_FORMAT_ND, dims, 2, ids.memory());
  aclOpExecutor* executor = nullptr;
  ASSERT_EQ(aclnnMoeUpdateExpertGetWorkspaceSize(early, table, nullptr, nullptr, nullptr, 0, 1, 0, out, mask,
                                                 &size, &executor),
            0);
  aclDestroyTensor(early);
  EXPECT_EQ(phase_two(executor), 0);
  EXPECT_EQ(device.synchronize(), 0);
  EXPECT_EQ(out.values<std::int32_t>(), (std::vector<std::int32_t>{10, 11}));
}

TEST_F(ExecutorTest, RepeatsWithNewAddresses) {
  aclOpExecutor* executor = phase_one();
  ASSERT_EQ(aclSetAclOpExecutorRepeatable(executor), 0);
  EXPECT_EQ(phase_two(executor), 0);
  Tensor others = Tensor::of<std::int32_t>({2, 1}, {1, 0});
  Tensor other_out = Tensor::empty<std::int32_t>({2, 1});
  EXPECT_EQ(aclSetInputTensorAddr(executor, 0, ids, others.memory()), 0);
  EXPECT_EQ(AclSetOutputTensorAddr(executor, 0, out, other_out.memory()), 0);
  EXPECT_EQ(phase_two(executor), 0);
  EXPECT_EQ(device.synchronize(), 0);
  EXPECT_EQ(out.values<std::int32_t>(), (std::vector<std::int32_t>{10, 11}));
  EXPECT_EQ(other_out.values<std::int32_t>(), (std::vector<std::int32_t>{11, 10}));
  void* address = nullptr;
  EXPECT_EQ(aclGetRawTensorAddr(ids, &address), 0);
  EXPECT_EQ(address, others.memory());  // the tensor object follows
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
}

TEST_F(ExecutorTest, CountsParametersInPrototypeOrder) {
  aclOpExecutor* executor = phase_one();
  ASSERT_EQ(aclSetAclOpExecutorRepeatable(executor), 0);
  Tensor other_out = Tensor::empty<std::int32_t>({2, 1});
  // expertIds 0, eplbTable 1, three absent ones 2 to 4, balancedExpertIds 5, balancedActiveMask 6.
  EXPECT_EQ(aclSetTensorAddr(executor, 5, out, other_out.memory()), 0);
  EXPECT_EQ(phase_two(executor), 0);
  EXPECT_EQ(device.synchronize(), 0);
  EXPECT_EQ(other_out.values<std::int32_t>(), (std::vector<std::int32_t>{10, 11}));
  EXPECT_EQ(aclSetTensorAddr(executor, 7, out, other_out.memory()), 161002);
  EXPECT_THAT(recent_message(), HasSubstr("index is 7 but must be below 7"));
  EXPECT_EQ(aclSetInputTensorAddr(executor, 5, out, other_out.memory()), 161002);
  EXPECT_EQ(aclSetInputTensorAddr(executor, 2, out, other_out.memory()), 161002);
  EXPECT_THAT(recent_message(), HasSubstr("expertScalesOptional was null in the first phase"));
  EXPECT_EQ(aclSetInputTensorAddr(nullptr, 0, out, other_out.memory()), 561103);
  EXPECT_EQ(aclSetInputTensorAddr(executor, 0, nullptr, other_out.memory()), 561103);
  aclTensorList* none = aclCreateTensorList(nullptr, 0);
  EXPECT_EQ(aclSetDynamicInputTensorAddr(executor, 0, 0, none, other_out.memory()), 161002);
  aclDestroyTensorList(none);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
  EXPECT_EQ(aclSetAclOpExecutorRepeatable(nullptr), 561103);
}

TEST_F(ExecutorTest, ChecksAddressesThatComeLate) {
  const int64_t dims[] = {2, 1};
  aclTensor* later = aclCreateTensor(dims, 2, ACL_INT32, nullptr, 0, ACL_FORMAT_ND, dims, 2, nullptr);
  aclOpExecutor* executor = nullptr;
  ASSERT_EQ(aclnnMoeUpdateExpertGetWorkspaceSize(later, table, nullptr, nullptr, nullptr, 0, 1, 0, out, mask,
                                                 &size, &executor),
            0);
  ASSERT_EQ(aclSetAclOpExecutorRepeatable(executor), 0);
  EXPECT_EQ(phase_two(executor), 161002);
  EXPECT_THAT(recent_message(),
              HasSubstr("the data of expertIds (INT32[2,1], at 0x0) must be device memory but is null"));
  std::int32_t on_the_host[] = {0, 1};
  EXPECT_EQ(aclSetInputTensorAddr(executor, 0, later, on_the_host), 0);
  EXPECT_EQ(phase_two(executor), 161002);
  EXPECT_EQ(aclSetInputTensorAddr(executor, 0, later, ids.memory()), 0);
  EXPECT_EQ(phase_two(executor), 0);
  EXPECT_EQ(device.synchronize(), 0);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
  aclDestroyTensor(later);
}

TEST_F(ExecutorTest, RefusesMemoryThatIsNotTheDevices) {
  const int64_t dims[] = {2, 1};
  std::int32_t on_the_host[2] = {};
  void *from_malloc_host = nullptr, *freed = nullptr;
  ASSERT_EQ(aclrtMallocHost(&from_malloc_host, 8), 0);
  ASSERT_EQ(aclrtMalloc(&freed, 1 << 22, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  ASSERT_EQ(aclrtFree(freed), 0);
  aclOpExecutor* executor = nullptr;
  for (void* address : {static_cast<void*>(on_the_host), from_malloc_host, freed}) {
    aclTensor* wrong = aclCreateTensor(dims, 2, ACL_INT32, nullptr, 0, ACL_FORMAT_ND, dims, 2, address);
    EXPECT_EQ(aclnnMoeUpdateExpertGetWorkspaceSize(wrong, table, nullptr, nullptr, nullptr, 0, 1, 0, out,
                                                   mask, &size, &executor),
              161002);
    EXPECT_THAT(recent_message(), HasSubstr("the data of expertIds"));
    aclDestroyTensor(wrong);
  }
  aclrtFreeHost(from_malloc_host);
}

TEST_F(ExecutorTest, RefusesMemoryThatWasFreedBetweenThePhases) {
  const int64_t dims[] = {2, 1};
  for (const bool repeatable : {false, true}) {
    void* freed = nullptr;
    ASSERT_EQ(aclrtMalloc(&freed, 1 << 22, ACL_MEM_MALLOC_HUGE_FIRST), 0);
    aclTensor* wrong = aclCreateTensor(dims, 2, ACL_INT32, nullptr, 0, ACL_FORMAT_ND, dims, 2, freed);
    aclOpExecutor* executor = nullptr;
    ASSERT_EQ(aclnnMoeUpdateExpertGetWorkspaceSize(wrong, table, nullptr, nullptr, nullptr, 0, 1, 0, out,
                                                   mask, &size, &executor),
              0);
    if (repeatable) {
      ASSERT_EQ(aclSetAclOpExecutorRepeatable(executor), 0);
    }
    ASSERT_EQ(aclrtFree(freed), 0);
    EXPECT_EQ(phase_two(executor), 161002);
    EXPECT_THAT(recent_message(), testing::AllOf(HasSubstr("the data of expertIds"), HasSubstr("was freed")));
    if (repeatable) {
      EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
    }
    aclDestroyTensor(wrong);
  }
}

TEST_F(ExecutorTest, RefusesElementsThatAreNotAligned) {
  const int64_t dims[] = {1, 1};
  void* between = static_cast<char*>(ids.memory()) + 2;
  aclTensor* wrong = aclCreateTensor(dims, 2, ACL_INT32, nullptr, 0, ACL_FORMAT_ND, dims, 2, between);
  Tensor one_out = Tensor::empty<std::int32_t>({1, 1});
  Tensor one_mask = Tensor::empty<std::uint8_t>({1, 1});
  aclOpExecutor* executor = nullptr;
  EXPECT_EQ(aclnnMoeUpdateExpertGetWorkspaceSize(wrong, table, nullptr, nullptr, nullptr, 0, 1, 0, one_out,
                                                 one_mask, &size, &executor),
            161002);
  EXPECT_THAT(recent_message(), HasSubstr("but is not aligned to its elements of 4 bytes"));
  aclDestroyTensor(wrong);
}

TEST_F(ExecutorTest, RefusesATensorPastTheEndOfItsBlock) {
  const int64_t dims[] = {1000, 1}, table_dims[] = {2, 2};
  aclTensor* wrong =
      aclCreateTensor(dims, 2, ACL_INT32, nullptr, 0, ACL_FORMAT_ND, table_dims, 2, ids.memory());
  aclOpExecutor* executor = nullptr;
  EXPECT_EQ(aclnnMoeUpdateExpertGetWorkspaceSize(wrong, table, nullptr, nullptr, nullptr, 0, 1, 0, out, mask,
                                                 &size, &executor),
            561002);
  Tensor long_out = Tensor::empty<std::int32_t>({1000, 1});
  Tensor long_mask = Tensor::empty<std::uint8_t>({1000, 1});
  EXPECT_EQ(aclnnMoeUpdateExpertGetWorkspaceSize(wrong, table, nullptr, nullptr, nullptr, 0, 1, 0, long_out,
                                                 long_mask, &size, &executor),
            161002);
  EXPECT_THAT(recent_message(), HasSubstr("past"));
  aclDestroyTensor(wrong);
}

// The table is checked, then used: ids written into it in between would lead anywhere.
TEST_F(ExecutorTest, RefusesAnOutputThatLiesOnAnInput) {
  const int64_t dims[] = {2, 1};
  aclTensor* on_table =
      aclCreateTensor(dims, 2, ACL_INT32, nullptr, 1, ACL_FORMAT_ND, dims, 2, table.memory());
  aclOpExecutor* executor = nullptr;
  EXPECT_EQ(aclnnMoeUpdateExpertGetWorkspaceSize(ids, table, nullptr, nullptr, nullptr, 0, 1, 0, on_table,
                                                 mask, &size, &executor),
            161002);
  const std::string message = recent_message();
  EXPECT_THAT(message, HasSubstr("balancedExpertIds (INT32[2,1], at "));
  EXPECT_THAT(message, HasSubstr("overlaps eplbTable"));
  aclDestroyTensor(on_table);
  executor = phase_one();
  ASSERT_EQ(aclSetAclOpExecutorRepeatable(executor), 0);
  EXPECT_EQ(aclSetOutputTensorAddr(executor, 0, out, table.memory()), 0);
  EXPECT_EQ(phase_two(executor), 161002);
  EXPECT_THAT(recent_message(), HasSubstr("overlaps eplbTable"));
  EXPECT_EQ(aclSetOutputTensorAddr(executor, 0, out, ids.memory()),
            0);  // where ids were, as a whole: in place
  EXPECT_EQ(phase_two(executor), 0);
  EXPECT_EQ(device.synchronize(), 0);
  EXPECT_EQ(ids.values<std::int32_t>(), (std::vector<std::int32_t>{10, 11}));
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
}

TEST_F(ExecutorTest, IsUsedUpByOneOfSeveralThreads) {
  for (int round = 0; round < 200; ++round) {
    aclOpExecutor* executor = phase_one();
    std::atomic<int> ran{0}, refused{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&, i] {
        const int code = i == 2 ? aclDestroyAclOpExecutor(executor)
                                : aclnnMoeUpdateExpert(nullptr, size, executor, device.stream());
        (code == 0 ? ran : refused) += 1;
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(ran, 1);
    EXPECT_EQ(refused, 2);
  }
  EXPECT_EQ(device.synchronize(), 0);
}

TEST_F(ExecutorTest, SecondPhaseNeedsAnExecutorAndAContext) {
  EXPECT_EQ(phase_two(nullptr), 161001);
  aclOpExecutor* executor = phase_one();
  int code = 0;
  std::string message;
  std::thread([&] {  // no device in this thread
    code = aclnnMoeUpdateExpert(nullptr, 0, executor, nullptr);
    message = recent_message();
  })
      .join();
  EXPECT_EQ(code, 361001);
  EXPECT_THAT(message, HasSubstr("no device is set in this thread"));
}

TEST_F(ExecutorTest, NullStreamIsTheDefaultOne) {
  aclOpExecutor* executor = phase_one();
  EXPECT_EQ(aclnnMoeUpdateExpert(nullptr, size, executor, nullptr), 0);
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), 0);
  EXPECT_EQ(out.values<std::int32_t>(), (std::vector<std::int32_t>{10, 11}));
}

TEST(Executor, InitAndFinalizeAreFree) {
  EXPECT_EQ(aclnnFinalize(), 0);
  EXPECT_EQ(aclnnInit(nullptr), 0);
  EXPECT_EQ(aclnnInit("any.json"), 0);
  EXPECT_EQ(aclnnFinalize(), 0);
}

}  // namespace
}  // namespace oracle
