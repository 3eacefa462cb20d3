// Moeyard. SPDX-License-Identifier: Apache-2.0
// Dispatch and combine through the public functions: both phases and a synchronise on each rank's own stream.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "aclnnop/aclnn_moe_distribute_combine_v4.h"
#include "aclnnop/aclnn_moe_distribute_dispatch_v4.h"
#include "bench/dispatch/scenario.h"
#include "hccl/hccl.h"

namespace bench::dispatch {
namespace {

void must(int code, const char* what) {
  if (code == 0) return;
  const char* text = aclGetRecentErrMsg();
  std::fprintf(stderr, "%s: %d: %s\n", what, code, text == nullptr ? "" : text);
  std::exit(3);
}

struct Tensor {
  Tensor(aclDataType dtype, std::size_t element, std::vector<std::int64_t> shape,
         const void* from = nullptr) {
    std::size_t bytes = element;
    for (const std::int64_t size : shape) bytes *= static_cast<std::size_t>(size);
    must(aclrtMalloc(&data, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    if (from != nullptr)
      std::memcpy(data, from, bytes);
    else
      std::memset(data, 0, bytes);
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t axis = shape.size() - 1; axis > 0; --axis)
      strides[axis - 1] = strides[axis] * shape[axis];
    handle = aclCreateTensor(shape.data(), shape.size(), dtype, strides.data(), 0, ACL_FORMAT_ND,
                             shape.data(), shape.size(), data);
  }
  void* data = nullptr;
  aclTensor* handle = nullptr;
};

struct Rank {
  Rank(int rank, const Mode& mode)
      : x(ACL_BF16, 2, {kTokens, kHidden}, problem().tokens[rank].data()),
        ids(ACL_INT32, 4, {kTokens, kTopk}, problem().ids[rank].data()),
        weights(ACL_FLOAT, 4, {kTokens, kTopk}, problem().weights[rank].data()),
        rows(mode.rows,
             mode.row_bits / kHidden < 8 ? 1 : static_cast<std::size_t>(mode.row_bits / kHidden / 8),
             {kCapacity, kHidden}),
        scales(mode.scale_type, static_cast<std::size_t>(mode.scale_bytes), shape_of_scales(mode)),
        assist(ACL_INT32, 4, {kCapacity * 128}),
        nums(ACL_INT64, 8, {kExperts / kRanks}),
        counts(ACL_INT32, 4, {kExperts}),
        sums(ACL_BF16, 2, {kTokens, kHidden}) {}
  static constexpr std::int64_t kCapacity =
      std::int64_t{kTokens} * kRanks * (kExperts / kRanks < kTopk ? kExperts / kRanks : kTopk);
  static std::vector<std::int64_t> shape_of_scales(const Mode& mode) {
    if (mode.scales_per_row <= 1) return {kCapacity};
    return {kCapacity, mode.scales_per_row};
  }
  Tensor x, ids, weights, rows, scales, assist, nums, counts, sums;
  aclrtStream stream = nullptr;
  void* workspace = nullptr;
  std::uint64_t workspace_size = 0;
};

class MoeyardLane final : public Lane {
 public:
  explicit MoeyardLane(const Mode& mode) : mode_(mode) {
    std::int32_t devices[kRanks];
    for (int rank = 0; rank < kRanks; ++rank) devices[rank] = rank;
    must(HcclCommInitAll(kRanks, devices, comms_), "HcclCommInitAll");
    must(HcclGetCommName(comms_[0], name_), "HcclGetCommName");
    for (int rank = 0; rank < kRanks; ++rank) make_rank(rank);
  }
  MoeyardLane(int rank, const HcclRootInfo& info) : mode_({}) {
    must(aclrtSetDevice(rank), "aclrtSetDevice");
    must(HcclCommInitRootInfo(kRanks, &info, static_cast<std::uint32_t>(rank), &comms_[rank]),
         "HcclCommInitRootInfo");
    must(HcclGetCommName(comms_[rank], name_), "HcclGetCommName");
    make_rank(rank);
  }
  void dispatch(int rank) override {
    Rank& r = *ranks_[static_cast<std::size_t>(rank)];
    launch(
        r, rank,
        [&](std::uint64_t* size, aclOpExecutor** executor) {
          return aclnnMoeDistributeDispatchV4GetWorkspaceSize(
              r.x.handle, r.ids.handle, nullptr, nullptr, nullptr, nullptr, nullptr, name_, kRanks, rank,
              kExperts, "", 0, 0, 0, 0, 0, mode_.quant, 0, 1, "", 0, 0, 0, r.rows.handle,
              mode_.scales_per_row == 0 ? nullptr : r.scales.handle, r.assist.handle, r.nums.handle,
              r.counts.handle, nullptr, nullptr, size, executor);
        },
        aclnnMoeDistributeDispatchV4);
  }
  void combine(int rank) override {
    Rank& r = *ranks_[static_cast<std::size_t>(rank)];
    launch(
        r, rank,
        [&](std::uint64_t* size, aclOpExecutor** executor) {
          return aclnnMoeDistributeCombineV4GetWorkspaceSize(
              r.rows.handle, r.ids.handle, r.assist.handle, r.counts.handle, r.weights.handle, nullptr,
              nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
              nullptr, nullptr, name_, kRanks, rank, kExperts, "", 0, 0, 0, 0, 0, 0, 0, mode_.comm, 0, "", 0,
              0, 0, r.sums.handle, size, executor);
        },
        aclnnMoeDistributeCombineV4);
  }
  const std::byte* rows(int rank) const override {
    return static_cast<const std::byte*>(ranks_[static_cast<std::size_t>(rank)]->rows.data);
  }
  std::string wrong_rows() const override {
    return compare_rows([this](int rank, std::int64_t row) {
      return static_cast<const std::uint16_t*>(ranks_[static_cast<std::size_t>(rank)]->rows.data) +
             row * kHidden;
    });
  }
  std::string wrong_sums() const override {  // 8 times an eighth of the token
    for (int rank = 0; rank < kRanks; ++rank)
      if (std::memcmp(ranks_[static_cast<std::size_t>(rank)]->sums.data, problem().tokens[rank].data(),
                      problem().tokens[rank].size() * 2) != 0)
        return "rank " + std::to_string(rank);
    return {};
  }

 private:
  void make_rank(int rank) {
    must(aclrtSetDevice(rank), "aclrtSetDevice");
    auto& made = ranks_[static_cast<std::size_t>(rank)];
    made = std::make_unique<Rank>(rank, mode_);
    must(aclrtCreateStream(&made->stream), "aclrtCreateStream");
  }

  template <class PhaseOne, class PhaseTwo>
  void launch(Rank& r, int rank, PhaseOne&& phase_one, PhaseTwo phase_two) {
    must(aclrtSetDevice(rank), "aclrtSetDevice");
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    must(phase_one(&size, &executor), "first phase");
    if (size > r.workspace_size) {
      must(aclrtMalloc(&r.workspace, size, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
      r.workspace_size = size;
    }
    must(phase_two(r.workspace, size, executor, r.stream), "second phase");
    must(aclrtSynchronizeStream(r.stream), "aclrtSynchronizeStream");
  }

  const Mode mode_;
  HcclComm comms_[kRanks] = {};
  char name_[128] = {};
  std::vector<std::unique_ptr<Rank>> ranks_{kRanks};
};

}  // namespace

std::unique_ptr<Lane> moeyard_lane(const Mode& mode) { return std::make_unique<MoeyardLane>(mode); }
std::unique_ptr<Lane> moeyard_process_lane(int rank, const HcclRootInfo& info) {
  return std::make_unique<MoeyardLane>(rank, info);
}

}  // namespace bench::dispatch
