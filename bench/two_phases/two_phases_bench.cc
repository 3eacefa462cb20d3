// Moeyard. SPDX-License-Identifier: Apache-2.0
// Host time of both phases of an operator on an idle stream, without synchronising: what a call costs before
// any work is done. Wanted: below 2 us for an empty problem and for a tiny local one, which runs on the
// calling thread.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_moe_update_expert.h"

namespace {

// Device tensors of one aclnnMoeUpdateExpert call that maps every expert to itself.
class UpdateExpertCall {
 public:
  UpdateExpertCall(std::int64_t tokens, std::int64_t topk) {
    aclrtSetDevice(0);
    aclrtCreateStream(&stream_);
    std::vector<std::int32_t> table;
    for (std::int32_t e = 0; e < kExperts; ++e) table.insert(table.end(), {1, e});
    const std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens * topk), 3);
    ids_ = tensor({tokens, topk}, ACL_INT32, ids.data(), ids.size() * 4);
    table_ = tensor({kExperts, 2}, ACL_INT32, table.data(), table.size() * 4);
    out_ = tensor({tokens, topk}, ACL_INT32, ids.data(), ids.size() * 4);
    mask_ = tensor({tokens, topk}, ACL_BOOL, nullptr, static_cast<std::size_t>(tokens * topk));
  }
  ~UpdateExpertCall() {
    for (aclTensor* tensor : {ids_, table_, out_, mask_}) aclDestroyTensor(tensor);
    for (void* block : blocks_) aclrtFree(block);
    aclrtDestroyStream(stream_);
  }
  int run() {
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    const int code = aclnnMoeUpdateExpertGetWorkspaceSize(ids_, table_, nullptr, nullptr, nullptr, 0, 8, 0,
                                                          out_, mask_, &size, &executor);
    return code != 0 ? code : aclnnMoeUpdateExpert(nullptr, size, executor, stream_);
  }
  bool right() { return run() == 0 && aclrtSynchronizeStream(stream_) == 0; }

 private:
  static constexpr std::int32_t kExperts = 16;
  aclTensor* tensor(std::vector<std::int64_t> dims, aclDataType dtype, const void* data, std::size_t bytes) {
    void* block = nullptr;
    aclrtMalloc(&block, bytes + 32, ACL_MEM_MALLOC_HUGE_FIRST);
    if (data != nullptr) aclrtMemcpy(block, bytes + 32, data, bytes, ACL_MEMCPY_HOST_TO_DEVICE);
    blocks_.push_back(block);
    return aclCreateTensor(dims.data(), dims.size(), dtype, nullptr, 0, ACL_FORMAT_ND, dims.data(),
                           dims.size(), block);
  }
  aclrtStream stream_ = nullptr;
  aclTensor *ids_, *table_, *out_, *mask_;
  std::vector<void*> blocks_;
};

void two_phases(benchmark::State& state) {
  UpdateExpertCall call(state.range(0), 8);
  if (!call.right()) return state.SkipWithError("the call fails");
  for (auto _ : state) call.run();
  state.SetLabel("tokens " + std::to_string(state.range(0)));
}
BENCHMARK(two_phases)->Arg(0)->Arg(1)->Arg(16);

}  // namespace
