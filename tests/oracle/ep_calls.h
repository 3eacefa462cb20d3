// Moeyard. SPDX-License-Identifier: Apache-2.0
// Dispatch and combine as a program calls them: an expert-parallel group with a thread, a device and a stream per rank, and
// the parameters of both operators with defaults. Public headers only.
#pragma once
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "aclnnop/aclnn_moe_distribute_combine.h"
#include "aclnnop/aclnn_moe_distribute_combine_v4.h"
#include "aclnnop/aclnn_moe_distribute_dispatch.h"
#include "aclnnop/aclnn_moe_distribute_dispatch_v4.h"
#include "hccl/hccl.h"
#include "support/device.h"
#include "support/processes.h"

namespace oracle {

// Ranks of one communicator; rank i lives on devices[i].
class EpGroup {
 public:
  explicit EpGroup(int size) {
    for (int rank = 0; rank < size; ++rank) devices_.push_back(rank);
    make();
  }
  explicit EpGroup(std::vector<std::int32_t> devices) : devices_(std::move(devices)) { make(); }
  ~EpGroup() { destroy_communicator(comms_); }
  EpGroup(const EpGroup&) = delete;
  EpGroup& operator=(const EpGroup&) = delete;

  int size() const { return static_cast<int>(devices_.size()); }
  const char* name() const { return name_; }

  // Runs the body once per rank of this process, each on its own thread.
  void run(const std::function<void(int rank, const Device& device)>& body) const {
    std::vector<std::thread> threads;
    start(threads, body);
    for (std::thread& thread : threads) thread.join();
    meet_processes();
  }
  // Only starts the threads, for ranks of several groups that call together.
  void start(std::vector<std::thread>& threads,
             const std::function<void(int rank, const Device& device)>& body) const {
    for (int rank = 0; rank < size(); ++rank) {
      const std::int32_t number = devices_[static_cast<std::size_t>(rank)];
      if (!process_place().owns(number)) continue;
      threads.emplace_back([=] {
        const Device device(number);
        body(rank, device);
      });
    }
  }
  // What each rank makes, for all processes.
  template <class Result>
  std::vector<Result> results(const std::function<Result(int rank, const Device& device)>& body) const {
    std::vector<Result> all(devices_.size());
    run([&](int rank, const Device& device) { all[static_cast<std::size_t>(rank)] = body(rank, device); });
    share_results(devices_, all);
    return all;
  }

 private:
  void make() {
    comms_ = make_communicator(devices_);
    for (const HcclComm comm : comms_)
      if (comm != nullptr) {
        EXPECT_EQ(HcclGetCommName(comm, name_), HCCL_SUCCESS);
      }
  }

  std::vector<std::int32_t> devices_;
  std::vector<HcclComm> comms_;
  char name_[128] = {};
};

struct EpParams {
  const char* group = nullptr;
  std::int64_t ranks = 0, rank = 0, experts = 0;
  const char* group_tp = "";
  std::int64_t tp_ranks = 0, tp_rank = 0, shard_type = 0, shared = 0, shared_ranks = 0, global_bs = 0;
  const char* algorithm = "";
  std::int64_t zero = 0, copy = 0, constant = 0;
};

struct DispatchParams : EpParams {
  std::int64_t quant_mode = 0, nums_type = 1;
  aclTensor *x = nullptr, *ids = nullptr, *scales = nullptr, *mask = nullptr, *weights = nullptr,
            *elastic = nullptr, *performance = nullptr;
  aclTensor *expand_x = nullptr, *dynamic_scales = nullptr, *assist = nullptr, *nums = nullptr,
            *counts = nullptr, *tp_counts = nullptr, *expand_scales = nullptr;
};

inline aclnnStatus plan(const DispatchParams& p, std::uint64_t* size, aclOpExecutor** executor) {
  return aclnnMoeDistributeDispatchV4GetWorkspaceSize(
      p.x, p.ids, p.scales, p.mask, p.weights, p.elastic, p.performance, p.group, p.ranks, p.rank, p.experts,
      p.group_tp, p.tp_ranks, p.tp_rank, p.shard_type, p.shared, p.shared_ranks, p.quant_mode, p.global_bs,
      p.nums_type, p.algorithm, p.zero, p.copy, p.constant, p.expand_x, p.dynamic_scales, p.assist, p.nums,
      p.counts, p.tp_counts, p.expand_scales, size, executor);
}
inline int run(const DispatchParams& p, const Device& device) {
  return run([&](std::uint64_t* size, aclOpExecutor** executor) { return plan(p, size, executor); },
             aclnnMoeDistributeDispatchV4, device);
}

// The first version, which has fewer parameters.
inline aclnnStatus plan_first(const DispatchParams& p, std::uint64_t* size, aclOpExecutor** executor) {
  return aclnnMoeDistributeDispatchGetWorkspaceSize(
      p.x, p.ids, p.scales, p.mask, p.weights, p.group, p.ranks, p.rank, p.experts, p.group_tp, p.tp_ranks,
      p.tp_rank, p.shard_type, p.shared, p.shared_ranks, p.quant_mode, p.global_bs, p.nums_type, p.expand_x,
      p.dynamic_scales, p.assist, p.nums, p.counts, p.tp_counts, p.expand_scales, size, executor);
}
inline int run_first(const DispatchParams& p, const Device& device) {
  return run([&](std::uint64_t* size, aclOpExecutor** executor) { return plan_first(p, size, executor); },
             aclnnMoeDistributeDispatch, device);
}

struct CombineParams : EpParams {
  std::int64_t out_dtype = 0, quant_mode = 0, list_type = 0;
  aclTensor *expand_x = nullptr, *ids = nullptr, *assist = nullptr, *counts = nullptr, *weights = nullptr,
            *tp_counts = nullptr, *mask = nullptr, *activation_scale = nullptr, *weight_scale = nullptr,
            *group_list = nullptr, *expand_scales = nullptr, *shared_x = nullptr, *elastic = nullptr,
            *ori_x = nullptr, *alpha1 = nullptr, *alpha2 = nullptr, *v = nullptr, *performance = nullptr;
  aclTensor* out = nullptr;
};

inline aclnnStatus plan(const CombineParams& p, std::uint64_t* size, aclOpExecutor** executor) {
  return aclnnMoeDistributeCombineV4GetWorkspaceSize(
      p.expand_x, p.ids, p.assist, p.counts, p.weights, p.tp_counts, p.mask, p.activation_scale,
      p.weight_scale, p.group_list, p.expand_scales, p.shared_x, p.elastic, p.ori_x, p.alpha1, p.alpha2, p.v,
      p.performance, p.group, p.ranks, p.rank, p.experts, p.group_tp, p.tp_ranks, p.tp_rank, p.shard_type,
      p.shared, p.shared_ranks, p.global_bs, p.out_dtype, p.quant_mode, p.list_type, p.algorithm, p.zero,
      p.copy, p.constant, p.out, size, executor);
}
inline int run(const CombineParams& p, const Device& device) {
  return run([&](std::uint64_t* size, aclOpExecutor** executor) { return plan(p, size, executor); },
             aclnnMoeDistributeCombineV4, device);
}

inline aclnnStatus plan_first(const CombineParams& p, std::uint64_t* size, aclOpExecutor** executor) {
  return aclnnMoeDistributeCombineGetWorkspaceSize(
      p.expand_x, p.ids, p.assist, p.counts, p.weights, p.tp_counts, p.mask, p.activation_scale,
      p.weight_scale, p.group_list, p.expand_scales, p.group, p.ranks, p.rank, p.experts, p.group_tp,
      p.tp_ranks, p.tp_rank, p.shard_type, p.shared, p.shared_ranks, p.global_bs, p.out_dtype, p.quant_mode,
      p.list_type, p.out, size, executor);
}
inline int run_first(const CombineParams& p, const Device& device) {
  return run([&](std::uint64_t* size, aclOpExecutor** executor) { return plan_first(p, size, executor); },
             aclnnMoeDistributeCombine, device);
}

// The code of phase one; whatever it made is freed.
template <class Params>
aclnnStatus plan_only(const Params& p) {
  std::uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  const aclnnStatus code = plan(p, &size, &executor);
  if (executor != nullptr) aclDestroyAclOpExecutor(executor);
  return code;
}

}  // namespace oracle
