// Moeyard. SPDX-License-Identifier: Apache-2.0
// Dispatch and combine in their halves: what a program passes from Setup to Teardown, in sizes that the functions for the sizes
// say. Takes the parameters of the operators in one piece.
#pragma once
#include <optional>

#include "aclnnop/aclnn_moe_distribute_combine_setup.h"
#include "aclnnop/aclnn_moe_distribute_combine_teardown.h"
#include "aclnnop/aclnn_moe_distribute_dispatch_setup.h"
#include "aclnnop/aclnn_moe_distribute_dispatch_teardown.h"
#include "oracle/ep_calls.h"

namespace oracle {

inline constexpr std::int64_t kCommType = 2;

struct DispatchSizes {
  std::uint64_t message = 0, index = 0, assist = 0, commands = 0;
};
inline aclnnStatus sizes_of(const DispatchParams& p, DispatchSizes& sizes,
                            std::int64_t comm_type = kCommType) {
  return aclnnMoeDistributeDispatchSetupTeardownCalcOutputSize(
      p.x, p.ids, p.scales, p.mask, p.group, p.ranks, p.rank, p.experts, p.shard_type, p.shared,
      p.shared_ranks, p.quant_mode, p.global_bs, p.nums_type, comm_type, p.algorithm, sizes.message,
      sizes.index, sizes.assist, sizes.commands);
}

struct CombineSizes {
  std::uint64_t message = 0, commands = 0;
};
inline aclnnStatus sizes_of(const CombineParams& p, CombineSizes& sizes, std::int64_t comm_type = kCommType) {
  return aclnnMoeDistributeCombineSetupTeardownCalcOutputSize(
      p.expand_x, p.ids, p.assist, p.group, p.ranks, p.rank, p.experts, p.shard_type, p.shared,
      p.shared_ranks, p.global_bs, p.quant_mode, comm_type, p.algorithm, sizes.message, sizes.commands);
}

// Tensors between the halves.
struct Between {
  aclTensor *y = nullptr, *index = nullptr, *commands = nullptr;
};

inline aclnnStatus plan_setup(const DispatchParams& p, const Between& b, std::uint64_t* size,
                              aclOpExecutor** executor, std::int64_t comm_type = kCommType) {
  return aclnnMoeDistributeDispatchSetupGetWorkspaceSize(
      p.x, p.ids, p.scales, p.mask, p.group, p.ranks, p.rank, p.experts, p.shard_type, p.shared,
      p.shared_ranks, p.quant_mode, p.global_bs, comm_type, p.algorithm, b.y, b.index, b.commands, size,
      executor);
}
inline aclnnStatus plan_teardown(const DispatchParams& p, const Between& b, std::uint64_t* size,
                                 aclOpExecutor** executor, std::int64_t comm_type = kCommType) {
  return aclnnMoeDistributeDispatchTeardownGetWorkspaceSize(
      p.x, b.y, p.ids, b.commands, p.group, p.ranks, p.rank, p.experts, p.shard_type, p.shared,
      p.shared_ranks, p.quant_mode, p.global_bs, p.nums_type, comm_type, const_cast<char*>(p.algorithm),
      p.expand_x, p.dynamic_scales, p.assist, p.nums, size, executor);
}
inline aclnnStatus plan_setup(const CombineParams& p, const Between& b, std::uint64_t* size,
                              aclOpExecutor** executor, std::int64_t comm_type = kCommType) {
  return aclnnMoeDistributeCombineSetupGetWorkspaceSize(
      p.expand_x, p.ids, p.assist, p.group, p.ranks, p.rank, p.experts, p.shard_type, p.shared,
      p.shared_ranks, p.global_bs, p.quant_mode, comm_type, p.algorithm, b.y, b.commands, size, executor);
}
inline aclnnStatus plan_teardown(const CombineParams& p, const Between& b, std::uint64_t* size,
                                 aclOpExecutor** executor, std::int64_t comm_type = kCommType) {
  return aclnnMoeDistributeCombineTeardownGetWorkspaceSize(
      p.expand_x, b.y, p.ids, b.index, p.weights, b.commands, p.mask, p.shared_x, p.group, p.ranks, p.rank,
      p.experts, p.shard_type, p.shared, p.shared_ranks, p.global_bs, p.quant_mode, comm_type, p.algorithm,
      p.out, size, executor);
}
template <class Params>
int run_setup(const Params& p, const Between& b, const Device& device) {
  constexpr bool kDispatch = std::is_same_v<Params, DispatchParams>;
  return run([&](std::uint64_t* size, aclOpExecutor** executor) { return plan_setup(p, b, size, executor); },
             kDispatch ? aclnnMoeDistributeDispatchSetup : aclnnMoeDistributeCombineSetup, device);
}
template <class Params>
int run_teardown(const Params& p, const Between& b, const Device& device) {
  constexpr bool kDispatch = std::is_same_v<Params, DispatchParams>;
  return run(
      [&](std::uint64_t* size, aclOpExecutor** executor) { return plan_teardown(p, b, size, executor); },
      kDispatch ? aclnnMoeDistributeDispatchTeardown : aclnnMoeDistributeCombineTeardown, device);
}

// All of it for one rank of a layer; what dispatch leaves for combine is kept.
class SplitLayer {
 public:
  // `rows`: the dtype of expandXOut, `element_bytes` of it.
  int dispatch(const DispatchParams& p, aclDataType rows, std::size_t element_bytes, Layout layout,
               const Device& device) {
    DispatchSizes sizes;
    if (const aclnnStatus code = sizes_of(p, sizes); code != 0) return code;
    std::int64_t* ids_shape = nullptr;
    std::uint64_t dims = 0;
    aclGetViewShape(p.ids, &ids_shape, &dims);
    const std::int64_t slots = ids_shape[0] * (ids_shape[1] + (p.shared_ranks > 0 ? p.shared : 0));
    delete[] ids_shape;
    y_.emplace(rows, std::vector<std::int64_t>{slots, static_cast<std::int64_t>(sizes.message)},
               element_bytes, layout);
    index_.emplace(Tensor::empty<std::int32_t>({static_cast<std::int64_t>(sizes.index)}, layout));
    const Tensor commands = Tensor::empty<std::int32_t>({static_cast<std::int64_t>(sizes.commands)}, layout);
    const Between between{*y_, *index_, commands};
    if (const int code = run_setup(p, between, device); code != 0) return code;
    EXPECT_TRUE(y_->gaps_untouched() && index_->gaps_untouched() && commands.gaps_untouched());
    const int code = run_teardown(p, between, device);
    // No peer reads the messages any more.
    std::memset(y_->memory(), 0xFF, y_->bytes());
    return code;
  }

  int combine(const CombineParams& p, const Device& device) const {
    CombineSizes sizes;
    if (const aclnnStatus code = sizes_of(p, sizes); code != 0) return code;
    std::int64_t* shape = nullptr;
    std::uint64_t dims = 0;
    aclGetViewShape(p.expand_x, &shape, &dims);
    const Tensor message(ACL_INT8, {shape[0], static_cast<std::int64_t>(sizes.message)}, 1);
    delete[] shape;
    const Tensor commands = Tensor::empty<std::int32_t>({static_cast<std::int64_t>(sizes.commands)});
    const Between between{message, *index_, commands};
    if (const int code = run_setup(p, between, device); code != 0) return code;
    return run_teardown(p, between, device);
  }

  const Tensor& index() const { return *index_; }

 private:
  std::optional<Tensor> y_, index_;
};

}  // namespace oracle
