// Moeyard. SPDX-License-Identifier: Apache-2.0
// Random parameter lists: each gets a documented code or runs, and nothing is written but outputs. MOEYARD_TEST_SEED chooses
// other calls, MOEYARD_TEST_CALLS how many of each operator.
#include "aclnnop/aclnn_distribute_barrier_v2.h"
#include "aclnnop/aclnn_elastic_receivable_info_collect.h"
#include "aclnnop/aclnn_elastic_receivable_test.h"
#include "aclnnop/aclnn_grouped_matmul_v5.h"
#include "aclnnop/aclnn_moe_distribute_buffer_reset.h"
#include "aclnnop/aclnn_moe_distribute_combine_add_rms_norm.h"
#include "aclnnop/aclnn_moe_gating_top_k_softmax_v2.h"
#include "aclnnop/aclnn_moe_gating_top_k_v2.h"
#include "aclnnop/aclnn_moe_update_expert.h"
#include "fuzz/random_call.h"
#include "oracle/ep_split.h"
#include "oracle/ep_versions.h"

namespace oracle {
namespace {

int calls() {
  const char* text = std::getenv("MOEYARD_TEST_CALLS");
  return text != nullptr ? std::atoi(text) : 1000;
}

struct Operator {
  const char* name;
  Call good;
  Attempt::PhaseOne phase_one;
  PhaseTwo phase_two;
};

TensorSpec in(aclDataType dtype, std::vector<std::int64_t> shape, std::int64_t most = 100,
              std::int64_t least = 0) {
  return {.dtype = dtype, .shape = std::move(shape), .most = most, .least = least};
}
TensorSpec out(aclDataType dtype, std::vector<std::int64_t> shape) {
  return {.dtype = dtype, .shape = std::move(shape), .output = true};
}
TensorSpec absent(TensorSpec tensor) {
  tensor.given = false;
  return tensor;
}
TensorSpec list(TensorSpec tensor) {
  tensor.listed = true;
  return tensor;
}

Operator update_expert() {
  return {"aclnnMoeUpdateExpert",
          {{in(ACL_INT32, {6, 2}, 3), in(ACL_INT32, {3, 4}, 4, 1), in(ACL_FLOAT, {6, 2}), in(ACL_FLOAT, {2}),
            absent(in(ACL_BOOL, {6}, 2)), out(ACL_INT32, {6, 2}), out(ACL_BOOL, {6, 2})},
           {1, 3, 0}},
          [](const Call& c, const Handles& h, std::uint64_t* size, aclOpExecutor** executor) {
            return aclnnMoeUpdateExpertGetWorkspaceSize(h[0], h[1], h[2], h[3], h[4], c.numbers[0],
                                                        c.numbers[1], c.numbers[2], h[5], h[6], size,
                                                        executor);
          },
          aclnnMoeUpdateExpert};
}

Operator gating_top_k() {
  return {"aclnnMoeGatingTopKV2",
          {{in(ACL_FLOAT, {5, 8}), in(ACL_FLOAT, {8}), absent(in(ACL_INT64, {5}, 10)),
            absent(in(ACL_INT32, {10, 2}, 8)), out(ACL_FLOAT, {5, 2}), out(ACL_INT32, {5, 2}),
            out(ACL_FLOAT, {5, 8})},
           {2, 1, 2, 0, 0, 1, 1}},
          [](const Call& c, const Handles& h, std::uint64_t* size, aclOpExecutor** executor) {
            const auto& n = c.numbers;
            return aclnnMoeGatingTopKV2GetWorkspaceSize(h[0], h[1], h[2], h[3], n[0], n[1], n[2], n[3], n[4],
                                                        n[5], n[6] != 0, 1.0, 1e-20, h[4], h[5], h[6], size,
                                                        executor);
          },
          aclnnMoeGatingTopKV2};
}

Operator gating_softmax() {
  return {"aclnnMoeGatingTopKSoftmaxV2",
          {{in(ACL_FLOAT, {5, 8}), in(ACL_BOOL, {5}, 2), out(ACL_FLOAT, {5, 2}), out(ACL_INT32, {5, 2}),
            out(ACL_FLOAT, {5, 8})},
           {2, 0, 1}},
          [](const Call& c, const Handles& h, std::uint64_t* size, aclOpExecutor** executor) {
            return aclnnMoeGatingTopKSoftmaxV2GetWorkspaceSize(
                h[0], h[1], c.numbers[0], c.numbers[1], c.numbers[2] != 0, h[2], h[3], h[4], size, executor);
          },
          aclnnMoeGatingTopKSoftmaxV2};
}

aclnnStatus plan_grouped_matmul(const Call& c, const Handles& h, std::uint64_t* size,
                                aclOpExecutor** executor) {
  return aclnnGroupedMatmulV5GetWorkspaceSize(h.list(0), h.list(1), h.list(2), h.list(3), nullptr, nullptr,
                                              nullptr, h.list(4), h[5], nullptr, nullptr, nullptr,
                                              c.numbers[0], c.numbers[1], c.numbers[2], c.numbers[3], nullptr,
                                              h.list(6), nullptr, nullptr, size, executor);
}

// Groups of rows of one matrix.
Operator grouped_matmul() {
  return {"aclnnGroupedMatmulV5",
          {{list(in(ACL_BF16, {5, 4})), list(in(ACL_BF16, {2, 4, 6})), list(absent(in(ACL_FLOAT, {2, 6}))),
            list(absent(in(ACL_FLOAT, {2, 6}))), list(absent(in(ACL_FLOAT, {5}))), in(ACL_INT64, {2}, 6),
            list(out(ACL_BF16, {5, 6}))},
           {3, 0, 1, 0}},
          plan_grouped_matmul,
          aclnnGroupedMatmulV5};
}

Operator grouped_matmul_int8() {
  return {"aclnnGroupedMatmulV5 of INT8",
          {{list(in(ACL_INT8, {5, 4})), list(in(ACL_INT8, {2, 4, 6})), list(absent(in(ACL_INT32, {2, 6}))),
            list(in(ACL_FLOAT, {2, 6})), list(in(ACL_FLOAT, {5})), in(ACL_INT64, {2, 2}, 4),
            list(out(ACL_BF16, {5, 6}))},
           {3, 0, 2, 1}},
          plan_grouped_matmul,
          aclnnGroupedMatmulV5};
}

// Products that have lists of one matrix each; `members` of a spoilt call makes them longer.
Operator separate_matmul() {
  return {"aclnnGroupedMatmulV5 of separate products",
          {{list(in(ACL_FLOAT, {5, 4})), list(in(ACL_FLOAT, {4, 6})), list(in(ACL_FLOAT, {6})),
            list(absent(in(ACL_FLOAT, {6}))), list(absent(in(ACL_FLOAT, {5}))), absent(in(ACL_INT64, {1}, 6)),
            list(out(ACL_FLOAT, {5, 6}))},
           {0, -1, 0, 0}},
          plan_grouped_matmul,
          aclnnGroupedMatmulV5};
}

constexpr std::int64_t kTokens = 3, kTopK = 2, kHidden = 8, kLocal = 2;

void set_numbers(EpParams& p, const std::vector<std::int64_t>& n) {
  p.ranks = n[0], p.rank = n[1], p.experts = n[2], p.tp_ranks = n[3], p.tp_rank = n[4], p.shard_type = n[5];
  p.shared = n[6], p.shared_ranks = n[7], p.global_bs = n[8], p.zero = n[9], p.copy = n[10],
  p.constant = n[11];
}
std::vector<std::int64_t> good_numbers(int ranks, int rank, std::vector<std::int64_t> more) {
  std::vector<std::int64_t> n = {ranks, rank, ranks * kLocal, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  n.insert(n.end(), more.begin(), more.end());
  return n;
}

// A way of quantMode: the dtypes of tokens and rows, and the scales that go in and come out.
struct Mode {
  std::int64_t number;
  aclDataType x, rows;
  TensorSpec scales, made;
};
std::vector<Mode> modes(std::int64_t rows, std::int64_t experts) {
  const TensorSpec factors = in(ACL_FLOAT, {experts, kHidden});
  return {{0, ACL_BF16, ACL_BF16, absent(factors), absent(out(ACL_FLOAT, {rows}))},
          {0, ACL_FLOAT16, ACL_HIFLOAT8, absent(factors), absent(out(ACL_FLOAT, {rows}))},
          {0, ACL_FLOAT8_E5M2, ACL_FLOAT8_E5M2, in(ACL_FLOAT, {kTokens, 2}), out(ACL_FLOAT, {rows, 2})},
          {0, ACL_FLOAT4_E2M1, ACL_FLOAT4_E2M1, in(ACL_FLOAT8_E8M0, {kTokens, 1}),
           out(ACL_FLOAT8_E8M0, {rows, 1})},
          {0, ACL_INT32, ACL_INT32, in(ACL_FLOAT, {kTokens}), out(ACL_FLOAT, {rows})},
          {1, ACL_BF16, ACL_INT8, in(ACL_FLOAT, {kHidden}), absent(out(ACL_FLOAT, {rows}))},
          {2, ACL_BF16, ACL_INT8, factors, out(ACL_FLOAT, {rows})},
          {3, ACL_BF16, ACL_FLOAT8_E4M3FN, factors, out(ACL_FLOAT, {rows, 1})},
          {4, ACL_BF16, ACL_FLOAT8_E4M3FN, absent(factors), out(ACL_FLOAT8_E8M0, {rows, 2})},
          {4, ACL_FLOAT16, ACL_FLOAT4_E1M2, absent(factors), out(ACL_FLOAT8_E8M0, {rows, 1, 2})},
          {5, ACL_BF16, ACL_FLOAT8_E5M2, absent(factors), out(ACL_FLOAT8_E8M0, {rows, 2})}};
}
constexpr std::size_t kModes = 11, kPerToken = 6;  // the one with a scale per token

Operator dispatch(const char* group, int ranks, int rank, int version = 4, std::size_t mode = kPerToken) {
  const std::int64_t rows = kTokens * ranks * kTopK, experts = ranks * kLocal;
  const Mode how = modes(rows, experts).at(mode);
  return {version == 2   ? "aclnnMoeDistributeDispatchV2"
          : version == 3 ? "aclnnMoeDistributeDispatchV3"
                         : "aclnnMoeDistributeDispatchV4",
          {{in(how.x, {kTokens, kHidden}), in(ACL_INT32, {kTokens, kTopK}, experts), how.scales,
            absent(in(ACL_BOOL, {kTokens}, 2)), in(ACL_FLOAT, {kTokens, kTopK}),
            absent(in(ACL_INT32, {4 + 2 * ranks})), out(how.rows, {rows, kHidden}), how.made,
            out(ACL_INT32, {rows * 128}), out(ACL_INT64, {kLocal}), out(ACL_INT32, {experts}),
            out(ACL_INT32, {1}), out(ACL_FLOAT, {rows}), absent(out(ACL_INT64, {ranks}))},
           good_numbers(ranks, rank, {how.number, 1})},
          [group, version](const Call& c, const Handles& h, std::uint64_t* size, aclOpExecutor** executor) {
            DispatchParams p;
            p.group = group;
            set_numbers(p, c.numbers);
            p.quant_mode = c.numbers[12], p.nums_type = c.numbers[13];
            p.x = h[0], p.ids = h[1], p.scales = h[2], p.mask = h[3], p.weights = h[4], p.elastic = h[5];
            p.expand_x = h[6], p.dynamic_scales = h[7], p.assist = h[8], p.nums = h[9], p.counts = h[10];
            p.tp_counts = h[11], p.expand_scales = h[12], p.performance = h[13];
            return plan_dispatch(version, p, size, executor);
          },
          kDispatch[version - 2]};
}

Operator dispatch_first(const char* group, int ranks, int rank) {
  const std::int64_t rows = kTokens * ranks * kTopK, experts = ranks * kLocal;
  return {"aclnnMoeDistributeDispatch",
          {{in(ACL_BF16, {kTokens, kHidden}), in(ACL_INT32, {kTokens, kTopK}, experts),
            in(ACL_FLOAT, {experts, kHidden}), absent(in(ACL_BOOL, {kTokens}, 2)),
            in(ACL_FLOAT, {kTokens, kTopK}), out(ACL_INT8, {rows, kHidden}), out(ACL_FLOAT, {rows}),
            out(ACL_INT32, {kTokens * kTopK}), out(ACL_INT64, {kLocal}), out(ACL_INT32, {experts}),
            out(ACL_INT32, {1}), out(ACL_FLOAT, {rows})},
           good_numbers(ranks, rank, {2, 1})},
          [group](const Call& c, const Handles& h, std::uint64_t* size, aclOpExecutor** executor) {
            DispatchParams p;
            p.group = group;
            set_numbers(p, c.numbers);
            p.quant_mode = c.numbers[12], p.nums_type = c.numbers[13];
            p.x = h[0], p.ids = h[1], p.scales = h[2], p.mask = h[3], p.weights = h[4];
            p.expand_x = h[5], p.dynamic_scales = h[6], p.assist = h[7], p.nums = h[8], p.counts = h[9];
            p.tp_counts = h[10], p.expand_scales = h[11];
            return plan_first(p, size, executor);
          },
          aclnnMoeDistributeDispatch};
}

// As below.
Operator combine_first(const char* group, int ranks, int rank) {
  const std::int64_t rows = kTokens * ranks * kTopK, experts = ranks * kLocal;
  return {
      "aclnnMoeDistributeCombine",
      {{in(ACL_BF16, {rows, kHidden}), in(ACL_INT32, {kTokens, kTopK}, experts),
        in(ACL_INT32, {kTokens * kTopK}, 3), in(ACL_INT32, {experts}, rows), in(ACL_FLOAT, {kTokens, kTopK}),
        absent(in(ACL_BOOL, {kTokens}, 2)), out(ACL_BF16, {kTokens, kHidden})},
       good_numbers(ranks, rank, {0})},
      [group](const Call& c, const Handles& h, std::uint64_t* size, aclOpExecutor** executor) {
        CombineParams p;
        p.group = group;
        set_numbers(p, c.numbers);
        p.quant_mode = c.numbers[12];
        p.expand_x = h[0], p.ids = h[1], p.assist = h[2], p.counts = h[3], p.weights = h[4];
        p.mask = h[5], p.out = h[6];
        return plan_first(p, size, executor);
      },
      aclnnMoeDistributeCombine};
}

Operator combine_add_rms_norm(const char* group, int ranks, int rank) {
  const std::int64_t rows = kTokens * ranks * kTopK, experts = ranks * kLocal;
  return {"aclnnMoeDistributeCombineAddRmsNorm",
          {{in(ACL_BF16, {rows, kHidden}), in(ACL_INT32, {kTokens, kTopK}, experts),
            in(ACL_INT32, {rows * 128}, 3), in(ACL_INT32, {experts}, rows), in(ACL_FLOAT, {kTokens, kTopK}),
            in(ACL_BF16, {kTokens, 1, kHidden}), in(ACL_BF16, {kHidden}), absent(in(ACL_BOOL, {kTokens}, 2)),
            absent(in(ACL_BF16, {kTokens, kHidden})), out(ACL_BF16, {kTokens, 1, kHidden}),
            out(ACL_FLOAT, {kTokens, 1, 1}), out(ACL_BF16, {kTokens, 1, kHidden})},
           good_numbers(ranks, rank, {0})},
          [group](const Call& c, const Handles& h, std::uint64_t* size, aclOpExecutor** executor) {
            EpParams p;
            set_numbers(p, c.numbers);
            return aclnnMoeDistributeCombineAddRmsNormGetWorkspaceSize(
                h[0], h[1], h[2], h[3], h[4], h[5], h[6], nullptr, h[7], nullptr, nullptr, nullptr, nullptr,
                h[8], group, p.ranks, p.rank, p.experts, "", p.tp_ranks, p.tp_rank, p.shard_type, p.shared,
                p.shared_ranks, p.global_bs, 0, c.numbers[12], 0, "", 1e-6f, h[9], h[10], h[11], size,
                executor);
          },
          aclnnMoeDistributeCombineAddRmsNorm};
}

// Of one rank, which never waits, whatever timeOut says.
Operator barrier(const char* group) {
  return {"aclnnDistributeBarrierV2",
          {{in(ACL_FLOAT, {2, 3}), in(ACL_INT32, {1}, 100, 1), absent(in(ACL_INT32, {6}, 2))}, {1}},
          [group](const Call& c, const Handles& h, std::uint64_t* size, aclOpExecutor** executor) {
            return aclnnDistributeBarrierV2GetWorkspaceSize(h[0], h[1], h[2], group, c.numbers[0], size,
                                                            executor);
          },
          aclnnDistributeBarrierV2};
}

// Counts and triples are random, hence wrong: good calls end with 507015.
Operator combine(const char* group, int ranks, int rank, int version = 4, int comm_mode = 0) {
  const std::int64_t rows = kTokens * ranks * kTopK, experts = ranks * kLocal;
  return {version == 2   ? "aclnnMoeDistributeCombineV2"
          : version == 3 ? "aclnnMoeDistributeCombineV3"
                         : "aclnnMoeDistributeCombineV4",
          {{in(ACL_BF16, {rows, kHidden}), in(ACL_INT32, {kTokens, kTopK}, experts),
            in(ACL_INT32, {rows * 128}, 3), in(ACL_INT32, {experts}, rows), in(ACL_FLOAT, {kTokens, kTopK}),
            absent(in(ACL_BOOL, {kTokens}, 2)), absent(in(ACL_BF16, {kTokens, kHidden})),
            absent(in(ACL_BF16, {kTokens, kHidden})), absent(in(ACL_BF16, {1, kHidden})),
            out(ACL_BF16, {kTokens, kHidden})},
           good_numbers(ranks, rank, {comm_mode})},
          [group, version](const Call& c, const Handles& h, std::uint64_t* size, aclOpExecutor** executor) {
            CombineParams p;
            p.group = group;
            set_numbers(p, c.numbers);
            p.quant_mode = c.numbers[12];
            p.expand_x = h[0], p.ids = h[1], p.assist = h[2], p.counts = h[3], p.weights = h[4],
            p.mask = h[5];
            p.shared_x = h[6], p.ori_x = h[7], p.alpha1 = p.alpha2 = p.v = h[8], p.out = h[9];
            return plan_combine(version, p, size, executor);
          },
          kCombine[version - 2]};
}

// --- Halves. What goes between them is random for Teardown, hence wrong, as counts and triples are for combine ---------------

constexpr std::int64_t kMessage = 512;  // a row of yOut with INT8 rows, and of quantExpandXOut

void set_split_numbers(EpParams& p, const std::vector<std::int64_t>& n) {
  p.ranks = n[0], p.rank = n[1], p.experts = n[2], p.shard_type = n[3], p.shared = n[4];
  p.shared_ranks = n[5], p.global_bs = n[6];
}
std::vector<std::int64_t> good_split_numbers(int ranks, int rank, std::vector<std::int64_t> more) {
  std::vector<std::int64_t> n = {ranks, rank, ranks * kLocal, 0, 0, 0, 0};
  n.insert(n.end(), more.begin(), more.end());
  return n;
}

Operator dispatch_half(const char* group, int ranks, int rank, bool setup) {
  const std::int64_t rows = kTokens * ranks * kTopK, experts = ranks * kLocal, slots = kTokens * kTopK;
  const std::int64_t words = 16 * (slots + experts);
  const TensorSpec x = in(ACL_BF16, {kTokens, kHidden}), ids = in(ACL_INT32, {kTokens, kTopK}, experts);
  std::vector<TensorSpec> tensors = {x,
                                     ids,
                                     in(ACL_FLOAT, {experts, kHidden}),
                                     absent(in(ACL_BOOL, {kTokens}, 2)),
                                     out(ACL_INT8, {slots, kMessage}),
                                     out(ACL_INT32, {slots}),
                                     out(ACL_INT32, {words})};
  if (!setup)
    tensors = {x,
               ids,
               in(ACL_INT8, {slots, kMessage}),
               in(ACL_INT32, {words}),
               out(ACL_INT8, {rows, kHidden}),
               out(ACL_FLOAT, {rows}),
               out(ACL_INT32, {rows * 128}),
               out(ACL_INT64, {kLocal})};
  return {setup ? "aclnnMoeDistributeDispatchSetup" : "aclnnMoeDistributeDispatchTeardown",
          {std::move(tensors), good_split_numbers(ranks, rank, {2, 1, kCommType})},
          [group, setup](const Call& c, const Handles& h, std::uint64_t* size, aclOpExecutor** executor) {
            DispatchParams p;
            p.group = group;
            set_split_numbers(p, c.numbers);
            p.quant_mode = c.numbers[7], p.nums_type = c.numbers[8], p.x = h[0], p.ids = h[1];
            if (setup) {
              p.scales = h[2], p.mask = h[3];
              DispatchSizes sizes;
              EXPECT_TRUE(is_documented(sizes_of(p, sizes, c.numbers[9])));
              return plan_setup(p, {h[4], h[5], h[6]}, size, executor, c.numbers[9]);
            }
            p.expand_x = h[4], p.dynamic_scales = h[5], p.assist = h[6], p.nums = h[7];
            return plan_teardown(p, {h[2], nullptr, h[3]}, size, executor, c.numbers[9]);
          },
          setup ? aclnnMoeDistributeDispatchSetup : aclnnMoeDistributeDispatchTeardown};
}

Operator combine_half(const char* group, int ranks, int rank, bool setup) {
  const std::int64_t rows = kTokens * ranks * kTopK, experts = ranks * kLocal;
  const std::int64_t words = 16 * (rows + ranks);
  const TensorSpec x = in(ACL_BF16, {rows, kHidden}), ids = in(ACL_INT32, {kTokens, kTopK}, experts);
  std::vector<TensorSpec> tensors = {x, ids, in(ACL_INT32, {rows * 128}, 3), out(ACL_INT8, {rows, kMessage}),
                                     out(ACL_INT32, {words})};
  if (!setup)
    tensors = {x,
               ids,
               in(ACL_INT8, {rows, kMessage}),
               in(ACL_INT32, {words}),
               in(ACL_INT32, {kTokens * kTopK}, 3),
               in(ACL_FLOAT, {kTokens, kTopK}),
               absent(in(ACL_BOOL, {kTokens}, 2)),
               absent(in(ACL_BF16, {kTokens, kHidden})),
               out(ACL_BF16, {kTokens, kHidden})};
  return {setup ? "aclnnMoeDistributeCombineSetup" : "aclnnMoeDistributeCombineTeardown",
          {std::move(tensors), good_split_numbers(ranks, rank, {0, kCommType})},
          [group, setup](const Call& c, const Handles& h, std::uint64_t* size, aclOpExecutor** executor) {
            CombineParams p;
            p.group = group;
            set_split_numbers(p, c.numbers);
            p.quant_mode = c.numbers[7], p.expand_x = h[0], p.ids = h[1];
            if (setup) {
              p.assist = h[2];
              CombineSizes sizes;
              EXPECT_TRUE(is_documented(sizes_of(p, sizes, c.numbers[8])));
              return plan_setup(p, {h[3], nullptr, h[4]}, size, executor, c.numbers[8]);
            }
            p.weights = h[5], p.mask = h[6], p.shared_x = h[7], p.out = h[8];
            return plan_teardown(p, {h[2], h[4], h[3]}, size, executor, c.numbers[8]);
          },
          setup ? aclnnMoeDistributeCombineSetup : aclnnMoeDistributeCombineTeardown};
}

// --- Of a group that may have shrunk -----------------------------------------------------------------------------------------

Operator buffer_reset(const char* group) {
  return {"aclnnMoeDistributeBufferReset",
          {{in(ACL_INT32, {1}, 2, 1)}, {1, 1}},
          [group](const Call& c, const Handles& h, std::uint64_t* size, aclOpExecutor** executor) {
            return aclnnMoeDistributeBufferResetGetWorkspaceSize(h[0], group, c.numbers[0], c.numbers[1],
                                                                 size, executor);
          },
          aclnnMoeDistributeBufferReset};
}

Operator receivable_test(const char* group) {
  return {"aclnnElasticReceivableTest",
          {{in(ACL_INT32, {3}, 1)}, {1, 3}},
          [group](const Call& c, const Handles& h, std::uint64_t* size, aclOpExecutor** executor) {
            return aclnnElasticReceivableTestGetWorkspaceSize(h[0], group, c.numbers[0], c.numbers[1], size,
                                                              executor);
          },
          aclnnElasticReceivableTest};
}

Operator receivable_info(const char* group) {
  return {"aclnnElasticReceivableInfoCollect",
          {{out(ACL_INT32, {1, 1})}, {1}},
          [group](const Call& c, const Handles& h, std::uint64_t* size, aclOpExecutor** executor) {
            return aclnnElasticReceivableInfoCollectGetWorkspaceSize(group, c.numbers[0], h[0], size,
                                                                     executor);
          },
          aclnnElasticReceivableInfoCollect};
}

// Spoils the first of these calls, which belong together, and makes them all.
void attempt(const std::vector<Operator>& ranks, const std::vector<const Device*>& devices,
             bool good_calls_succeed = true, int count = calls()) {
  std::vector<Attempt> sides(ranks.size());
  int accepted = 0;
  for (int n = 0; n < count && !testing::Test::HasFailure(); ++n) {
    SCOPED_TRACE(std::string(ranks[0].name) + " call " + std::to_string(n) + " of seed " +
                 std::to_string(seed()));
    Random random(seed() + static_cast<std::uint64_t>(n) * 1000003);
    std::vector<Call> made;
    for (const Operator& rank : ranks) made.push_back(rank.good);
    const std::int64_t spoils = below(random, 4);
    for (std::int64_t i = 0; i < spoils; ++i) spoil(made[0], random);

    std::vector<int> codes;
    bool run = true;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      expect_success(aclrtSetDevice(static_cast<int>(r)), "aclrtSetDevice");
      codes.push_back(sides[r].plan(made[r], ranks[r].phase_one, random));
      EXPECT_TRUE(is_documented(codes[r])) << codes[r] << " " << recent_message();
      run = run && codes[r] == 0 && sides[r].may_run();
    }
    // A phase two that is refused at once keeps the others from starting: they would wait for it.
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      if (codes[r] != 0) continue;
      if (!run) {
        sides[r].drop();
        continue;
      }
      codes[r] = sides[r].launch(ranks[r].phase_two, devices[r]->stream());
      EXPECT_TRUE(is_documented(codes[r])) << codes[r] << " " << recent_message();
      run = codes[r] == 0;
    }
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      if (codes[r] != 0) continue;
      codes[r] = devices[r]->synchronize();
      EXPECT_TRUE(is_documented(codes[r])) << codes[r] << " " << recent_message();
      EXPECT_TRUE(sides[r].inputs_untouched(made[r]));
    }
    for (const int code : codes)
      EXPECT_TRUE(code == 0 || spoils > 0 || !good_calls_succeed) << recent_message();
    accepted += codes[0] == 0 ? 1 : 0;
  }
  EXPECT_TRUE(accepted > count / 8 || !good_calls_succeed)
      << ranks[0].name << ": " << accepted << " calls ran";
}

TEST(OperatorParameters, OfLocalOperators) {
  const Device device;
  for (const Operator& tried : {update_expert(), gating_top_k(), gating_softmax(), grouped_matmul(),
                                grouped_matmul_int8(), separate_matmul()})
    attempt({tried}, {&device}, std::string(tried.name).find("INT8") == std::string::npos);
}

TEST(OperatorParameters, OfAGroupOfOne) {
  const EpGroup group(1);
  const Device device;
  attempt({dispatch(group.name(), 1, 0)}, {&device});
  attempt({combine(group.name(), 1, 0)}, {&device}, false);
  attempt({dispatch_first(group.name(), 1, 0)}, {&device});
  attempt({combine_first(group.name(), 1, 0)}, {&device}, false);
  attempt({combine_add_rms_norm(group.name(), 1, 0)}, {&device}, false);
  attempt({barrier(group.name())}, {&device});
  attempt({buffer_reset(group.name())}, {&device}, true, calls() / 4);
  attempt({receivable_test(group.name())}, {&device}, true, calls() / 4);
  attempt({receivable_info(group.name())}, {&device}, true, calls() / 4);
}

TEST(OperatorParameters, OfHalves) {
  const EpGroup group(2);
  const Device first(0), second(1);
  attempt({dispatch_half(group.name(), 2, 0, true)}, {&first}, true, calls() / 2);
  attempt({dispatch_half(group.name(), 2, 0, false), dispatch_half(group.name(), 2, 1, false)},
          {&first, &second}, false, calls() / 2);
  attempt({combine_half(group.name(), 2, 0, true)}, {&first}, true, calls() / 2);
  attempt({combine_half(group.name(), 2, 0, false), combine_half(group.name(), 2, 1, false)},
          {&first, &second}, false, calls() / 2);
}

// Every version and every mode, with fewer calls each.
TEST(OperatorParameters, OfVersionsAndModes) {
  const EpGroup group(2);
  const Device first(0), second(1);
  for (std::size_t mode = 0; mode < kModes; ++mode) {
    const int version = 2 + static_cast<int>(mode % 3);
    attempt({dispatch(group.name(), 2, 0, version, mode), dispatch(group.name(), 2, 1, version, mode)},
            {&first, &second}, true, calls() / 10);
  }
  for (const int mode : {2, 3, 4})
    attempt({combine(group.name(), 2, 0, mode, mode), combine(group.name(), 2, 1, mode, mode)},
            {&first, &second}, false, calls() / 10);
}

TEST(OperatorParameters, OfOneRankOfTwo) {
  const EpGroup group(2);
  const Device first(0), second(1);
  attempt({dispatch(group.name(), 2, 0), dispatch(group.name(), 2, 1)}, {&first, &second});
  attempt({combine(group.name(), 2, 0), combine(group.name(), 2, 1)}, {&first, &second}, false);
  attempt({dispatch_first(group.name(), 2, 0), dispatch_first(group.name(), 2, 1)}, {&first, &second});
  attempt({combine_first(group.name(), 2, 0), combine_first(group.name(), 2, 1)}, {&first, &second}, false);
  attempt({combine_add_rms_norm(group.name(), 2, 0), combine_add_rms_norm(group.name(), 2, 1)},
          {&first, &second}, false);
}

}  // namespace
}  // namespace oracle
