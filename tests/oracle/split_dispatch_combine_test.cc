// Moeyard. SPDX-License-Identifier: Apache-2.0
// Setup and Teardown of dispatch and combine against the plain loops that the operators in one piece are compared with; the
// functions for the sizes; what all of them refuse.
#include <gmock/gmock.h>

#include <future>

#include "oracle/dispatch_error_calls.h"
#include "oracle/ep_round_trip.h"
#include "support/rerun.h"

namespace oracle {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kWrongData = 507015;

int below(std::mt19937& random, int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }

Quantisation draw_quantisation(std::mt19937& random) {
  constexpr aclDataType kFp8[] = {ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E5M2};
  const aclDataType fp8 = kFp8[below(random, 2)];
  const Quantisation all[] = {{},       {1, ACL_INT8}, {1, ACL_HIFLOAT8}, {2, ACL_INT8},
                              {2, fp8}, {3, fp8},      {4, fp8}};
  return all[below(random, 7)];
}

EpShape draw_shape(int ranks, std::mt19937& random) {
  EpShape shape;
  shape.ranks = ranks;
  if (ranks > 1 && below(random, 3) == 0) {
    shape.shared = 1 + below(random, std::min(2, ranks - 1));
    shape.shared_ranks = shape.shared * (1 + below(random, (ranks - 1) / shape.shared));
  }
  shape.experts = (ranks - shape.shared_ranks) * (1 + below(random, 4));
  shape.topk = 1 + below(random, std::min(6, shape.experts));
  constexpr int kWidths[] = {1, 31, 64, 129, 300};
  shape.hidden = kWidths[below(random, 5)];
  shape.quantised = draw_quantisation(random);
  const Quantisation& how = shape.quantised;
  if ((how.mode == 2 || how.mode == 3) && below(random, 2) == 0) shape.factors = Factors::of_experts;
  constexpr Factors kFixed[] = {Factors::of_all, Factors::of_experts, Factors::of_elements};
  if (how.mode == 1) shape.factors = kFixed[how.to == ACL_INT8 ? below(random, 3) : 0];
  shape.comm_mode = 2 * below(random, 2);
  return shape;
}

class InHalves : public testing::TestWithParam<int> {};

TEST_P(InHalves, MatchesThePlainLoops) {
  const EpGroup group(GetParam());
  for (int i = 0; i < 20 && !HasFailure(); ++i) {
    const std::uint32_t of = seed() + static_cast<std::uint32_t>(1000 * GetParam() + i);
    std::mt19937 random(of);
    EpShape shape = draw_shape(GetParam(), random);
    std::vector<int> bs(static_cast<std::size_t>(GetParam()), below(random, 9));
    int mask_dims = below(random, 3);
    if (below(random, 3) == 0) {
      for (int& tokens : bs) tokens = below(random, 9);
      shape.global_bs = std::max(1, *std::max_element(bs.begin(), bs.end())) * shape.ranks;
      mask_dims = 0;
    }
    EpOptions options;
    options.split = true;
    const auto check = [&](auto problem) {
      problem.weights_travel = false;
      problem.weighted = below(random, 4) != 0;
      if (shape.shared_ranks == 0 && below(random, 3) == 0) problem.add_shared_x();
      problem.check(group);
    };
    if (i % 2 == 0)
      check(EpRoundTrip<B16>(shape, bs, mask_dims, of, options));
    else
      check(EpRoundTrip<F16>(shape, bs, mask_dims, of, options));
  }
}
INSTANTIATE_TEST_SUITE_P(Ranks, InHalves, testing::Values(1, 2, 3, 5, 8, 16));

// What the documents give as limits.
TEST(InHalvesOn950, WorksWithTheSizesOfTheDocuments) {
  if (!run_again_with("MOEYARD_SOC", "950")) return;
  const EpGroup group(2);
  EpShape shape;
  shape.ranks = 2, shape.experts = 32, shape.topk = 6, shape.hidden = 4096;
  EpOptions options;
  options.split = true;
  for (const Quantisation& how : {Quantisation{}, Quantisation{4, ACL_FLOAT8_E4M3FN}}) {
    shape.quantised = how;
    EpRoundTrip<B16> problem(shape, {8, 8}, 0, 5, options);
    problem.weights_travel = false;
    problem.check(group);
  }
}

// --- Sizes ---------------------------------------------------------------------------------------------------------------

TEST(Sizes, AreThoseOfTheDocuments) {
  MOEYARD_SKIP_IN_PROCESSES();
  const Device device;
  const EpGroup group(2);
  const auto sizes_with = [&](std::int64_t mode, int hidden) {
    EpPart part(group, 0, {.tokens = 8, .topk = 6, .hidden = hidden, .experts_per_rank = 16});
    part.dispatch.quant_mode = mode;
    const Tensor factor = Tensor::of<float>({1}, {1.0f});
    if (mode == 1) part.dispatch.scales = factor;
    DispatchSizes sizes;
    EXPECT_EQ(sizes_of(part.dispatch, sizes), 0) << recent_message();
    EXPECT_EQ(sizes.index, 48u);
    EXPECT_EQ(sizes.assist, 8u * 2 * 6 * 128);
    EXPECT_EQ(sizes.commands, (8u * 6 + 2 * 16) * 16);
    return sizes.message;
  };
  EXPECT_EQ(sizes_with(0, 7168), 7168u);
  EXPECT_EQ(sizes_with(0, 300), 512u);
  EXPECT_EQ(sizes_with(1, 7168), 7168u);
  EXPECT_EQ(sizes_with(1, 300), 512u);
  EXPECT_EQ(sizes_with(2, 7168), 7680u);  // Align512(7168 + 4)
  EXPECT_EQ(sizes_with(2, 508), 1024u);   // Align512(512 + 4)
  EXPECT_EQ(sizes_with(3, 7168), 7680u);  // Align512(7168 + 56 * 4)
  EXPECT_EQ(sizes_with(4, 7168), 7680u);  // Align512(7168 + 224)
  EXPECT_EQ(sizes_with(4, 4096), 4608u);  // Align512(4096 + 128)
  const EpPart part(group, 1, {.tokens = 8, .topk = 6, .hidden = 7168, .experts_per_rank = 16});
  CombineSizes sizes;
  EXPECT_EQ(sizes_of(part.combine, sizes), 0) << recent_message();
  EXPECT_EQ(sizes.message, 10752u);  // Align512(7168 + 7168 / 8 * 4)
  EXPECT_EQ(sizes.commands, (8u * 2 * 6 + 2) * 16);
}

// --- Errors of phase one ---------------------------------------------------------------------------------------------------

// A good call of rank 0 of two, in halves.
struct SplitCall : Call {
  CombineParams combine;
  Between dispatch_between, combine_between;
  std::int64_t comm_type = kCommType;
};
struct DispatchSetupCall : SplitCall {
  aclnnStatus phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    return plan_setup(*this, dispatch_between, size, executor, comm_type);
  }
};
struct DispatchTeardownCall : SplitCall {
  aclnnStatus phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    return plan_teardown(*this, dispatch_between, size, executor, comm_type);
  }
};
struct CombineSetupCall : SplitCall {
  aclnnStatus phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    return plan_setup(combine, combine_between, size, executor, comm_type);
  }
};
struct CombineTeardownCall : SplitCall {
  aclnnStatus phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    return plan_teardown(combine, combine_between, size, executor, comm_type);
  }
};

class SplitCalls {
 public:
  explicit SplitCalls(PartSize size = {}) : group(2), size_(size) {}
  template <class OneCall>
  OneCall good() const {
    OneCall call;
    call.part = std::make_shared<EpPart>(group, 0, size_);
    static_cast<DispatchParams&>(call) = call.part->dispatch;
    call.combine = call.part->combine;
    if (!size_.quantized) call.dynamic_scales = nullptr;
    DispatchSizes sizes;
    EXPECT_EQ(sizes_of(static_cast<DispatchParams&>(call), sizes), 0) << recent_message();
    CombineSizes more;
    EXPECT_EQ(sizes_of(call.combine, more), 0) << recent_message();
    const std::int64_t slots = size_.tokens * size_.topk;
    call.dispatch_between = {
        call.make(size_.quantized ? ACL_INT8 : ACL_BF16, {slots, static_cast<std::int64_t>(sizes.message)}),
        call.make(ACL_INT32, {slots}), call.make(ACL_INT32, {static_cast<std::int64_t>(sizes.commands)})};
    call.combine_between = {
        call.make(ACL_INT8, {call.part->rows_fit, static_cast<std::int64_t>(more.message)}),
        call.dispatch_between.index, call.make(ACL_INT32, {static_cast<std::int64_t>(more.commands)})};
    return call;
  }
  template <class OneCall, std::size_t kCount>
  void expect(const Refusal<OneCall> (&table)[kCount]) const {
    OneCall call = good<OneCall>();
    std::uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    EXPECT_EQ(call.phase_one(&size, &executor), 0) << recent_message();
    if (executor != nullptr) aclDestroyAclOpExecutor(executor);
    expect_refusals(table, [this] { return good<OneCall>(); });
    expect_null_results_refused(call);
  }

  const Device device;
  const EpGroup group;

 private:
  const PartSize size_;
};

const std::string kLongName(128, 'g');

EpParams& group_of(DispatchSetupCall& c) { return c; }
EpParams& group_of(DispatchTeardownCall& c) { return c; }
EpParams& group_of(CombineSetupCall& c) { return c.combine; }
EpParams& group_of(CombineTeardownCall& c) { return c.combine; }

// What the group's parameters are refused for in all of them.
template <class OneCall>
std::vector<Refusal<OneCall>> of_group(int long_name, const char* shard_type) {
  const auto with = [](auto change) { return [change](OneCall& c) { change(group_of(c)); }; };
  return {
      {"groupEp", kNull, "groupEp", with([](EpParams& p) { p.group = nullptr; })},
      {"groupEp empty", kNull, "groupEp", with([](EpParams& p) { p.group = ""; })},
      {"groupEp too long", long_name, "groupEp", with([](EpParams& p) { p.group = kLongName.c_str(); })},
      {"no such group", kInvalid, "group not found", with([](EpParams& p) { p.group = "nobody"; })},
      {"ranks", kTiling, "epWorldSize is 0", with([](EpParams& p) { p.ranks = 0; })},
      {"other ranks", kTiling, "epWorldSize is 4", with([](EpParams& p) { p.ranks = 4; })},
      {"rank", kTiling, "epRankId is 2", with([](EpParams& p) { p.rank = 2; })},
      {"experts", kTiling, "moeExpertNum is 0", with([](EpParams& p) { p.experts = 0; })},
      {"uneven", kTiling, "moeExpertNum is 5", with([](EpParams& p) { p.experts = 5; })},
      {"shard type", kTiling, shard_type, with([](EpParams& p) { p.shard_type = 1; })},
      {"shared", kTiling, "sharedExpertNum is -1", with([](EpParams& p) { p.shared = -1; })},
      {"shared ranks", kTiling, "sharedExpertRankNum is 2", with([](EpParams& p) { p.shared_ranks = 2; })},
      {"globalBs", kTiling, "globalBs is 5", with([](EpParams& p) { p.global_bs = 5; })},
      {"commAlg", kTiling, "commAlg is \"fullmesh\"", with([](EpParams& p) { p.algorithm = "fullmesh"; })},
  };
}
template <class OneCall>
void expect_all(const SplitCalls& calls, const std::vector<Refusal<OneCall>>& refusals) {
  for (const Refusal<OneCall>& refusal : refusals) {
    const Refusal<OneCall> one[] = {refusal};
    expect_refusals(one, [&] { return calls.good<OneCall>(); });
  }
}
TEST(SplitErrors, OfDispatchSetup) {
  MOEYARD_SKIP_IN_PROCESSES();
  using C = DispatchSetupCall;
  const Refusal<C> table[] = {
      {"x", kNull, "x is null", [](C& c) { c.x = nullptr; }},
      {"expertIds", kNull, "expertIds is null", [](C& c) { c.ids = nullptr; }},
      {"yOut", kNull, "yOut is null", [](C& c) { c.dispatch_between.y = nullptr; }},
      {"expandIdxOut", kNull, "expandIdxOut is null", [](C& c) { c.dispatch_between.index = nullptr; }},
      {"commCmdInfoOut", kNull, "commCmdInfoOut is null",
       [](C& c) { c.dispatch_between.commands = nullptr; }},
      {"dtype of x", kInvalid, "x is",
       [](C& c) {
         c.x = c.make(ACL_FLOAT, {3, 8});
       }},
      {"dtype of ids", kInvalid, "expertIds is",
       [](C& c) {
         c.ids = c.make(ACL_INT64, {3, 2});
       }},
      {"dtype of scales", kInvalid, "scalesOptional is", [](C& c) { c.scales = c.make(ACL_BF16, {8}); }},
      {"dtype of mask", kInvalid, "xActiveMaskOptional is", [](C& c) { c.mask = c.make(ACL_INT32, {3}); }},
      {"dtype of y", kInvalid, "yOut is",
       [](C& c) {
         c.dispatch_between.y = c.make(ACL_FLOAT, {6, 256});
       }},
      {"y of other halves", kTiling, "yOut is",
       [](C& c) {
         c.dispatch_between.y = c.make(ACL_FLOAT16, {6, 256});
       }},
      {"quantMode", kTiling, "quantMode is 5", [](C& c) { c.quant_mode = 5; }},
      {"rows of the mode", kTiling, "yOut is",
       [](C& c) {
         c.quant_mode = 2, c.dispatch_between.y = c.make(ACL_HIFLOAT8, {6, 512});
       }},
      {"scales in mode 0", kTiling, "scalesOptional is",
       [](C& c) {
         c.scales = c.make(ACL_FLOAT, {4, 8});
       }},
      {"no scales in mode 1", kTiling, "scalesOptional is",
       [](C& c) {
         c.quant_mode = 1, c.dispatch_between.y = c.make(ACL_INT8, {6, 512});
       }},
      {"scales of too few experts", kTiling, "scalesOptional is",
       [](C& c) {
         c.quant_mode = 2, c.dispatch_between.y = c.make(ACL_INT8, {6, 512});
         c.scales = c.make(ACL_FLOAT, {3, 8});
       }},
      {"x of one dimension", kTiling, "x is", [](C& c) { c.x = c.make(ACL_BF16, {24}); }},
      {"mask of other tokens", kTiling, "xActiveMaskOptional is",
       [](C& c) { c.mask = c.make(ACL_BOOL, {4}); }},
      {"mask and other BS", kTiling, "xActiveMaskOptional is",
       [](C& c) { c.mask = c.make(ACL_BOOL, {3}), c.global_bs = 8; }},
      {"y of too few slots", kTiling, "yOut is",
       [](C& c) {
         c.dispatch_between.y = c.make(ACL_BF16, {5, 256});
       }},
      {"y of other messages", kTiling, "yOut is",
       [](C& c) {
         c.dispatch_between.y = c.make(ACL_BF16, {6, 512});
       }},
      {"expandIdxOut too short", kTiling, "expandIdxOut is",
       [](C& c) { c.dispatch_between.index = c.make(ACL_INT32, {5}); }},
      {"commCmdInfoOut too short", kTiling, "commCmdInfoOut is",
       [](C& c) { c.dispatch_between.commands = c.make(ACL_INT32, {159}); }},
  };
  const SplitCalls calls;
  calls.expect(table);
  expect_all(calls, of_group<C>(kNull, "expertShardType is 1"));
}

TEST(SplitErrors, OfDispatchTeardown) {
  MOEYARD_SKIP_IN_PROCESSES();
  using C = DispatchTeardownCall;
  const Refusal<C> table[] = {
      {"x", kNull, "x is null", [](C& c) { c.x = nullptr; }},
      {"y", kNull, "y is null", [](C& c) { c.dispatch_between.y = nullptr; }},
      {"expertIds", kNull, "expertIds is null", [](C& c) { c.ids = nullptr; }},
      {"commCmdInfo", kNull, "commCmdInfo is null", [](C& c) { c.dispatch_between.commands = nullptr; }},
      {"expandXOut", kNull, "expandXOut is null", [](C& c) { c.expand_x = nullptr; }},
      {"assistInfo", kNull, "assistInfoForCombineOut is null", [](C& c) { c.assist = nullptr; }},
      {"expertTokenNums", kNull, "expertTokenNumsOut is null", [](C& c) { c.nums = nullptr; }},
      {"no scales", kNull, "dynamicScalesOut", [](C& c) { c.quant_mode = 2; }},
      {"rows of another dtype", kInvalid, "expandXOut is",
       [](C& c) {
         c.expand_x = c.make(ACL_FLOAT16, {12, 8});
       }},
      {"dtype of scales", kInvalid, "dynamicScalesOut is",
       [](C& c) { c.dynamic_scales = c.make(ACL_BF16, {12}); }},
      {"quantMode", kTiling, "quantMode is -1", [](C& c) { c.quant_mode = -1; }},
      {"type of numbers", kTiling, "expertTokenNumsType is 2", [](C& c) { c.nums_type = 2; }},
      {"rows of the mode", kTiling, "y is",
       [](C& c) {
         c.quant_mode = 4, c.dynamic_scales = c.make(ACL_FLOAT8_E8M0, {12, 2});
       }},
      {"y of other messages", kTiling, "y is",
       [](C& c) {
         c.dispatch_between.y = c.make(ACL_BF16, {6, 512});
       }},
      {"commCmdInfo too short", kTiling, "commCmdInfo is",
       [](C& c) { c.dispatch_between.commands = c.make(ACL_INT32, {159}); }},
      {"too few rows", kTiling, "expandXOut is",
       [](C& c) {
         c.expand_x = c.make(ACL_BF16, {11, 8});
       }},
      {"rows of another width", kTiling, "expandXOut is",
       [](C& c) {
         c.expand_x = c.make(ACL_BF16, {12, 9});
       }},
      {"assistInfo too short", kTiling, "assistInfoForCombineOut is",
       [](C& c) { c.assist = c.make(ACL_INT32, {12 * 128 - 1}); }},
      {"too many numbers", kTiling, "expertTokenNumsOut is", [](C& c) { c.nums = c.make(ACL_INT64, {3}); }},
  };
  const SplitCalls calls;
  calls.expect(table);
  expect_all(calls, of_group<C>(kNull, "expertShardType is 1"));
  const Refusal<C> scales[] = {
      {"scales too short", kTiling, "dynamicScalesOut is",
       [](C& c) { c.dynamic_scales = c.make(ACL_FLOAT, {11}); }},
      {"scales of a wrong rank", kTiling, "dynamicScalesOut is",
       [](C& c) {
         c.dynamic_scales = c.make(ACL_FLOAT, {12, 1});
       }},
      {"scales of another dtype", kTiling, "dynamicScalesOut is",
       [](C& c) { c.dynamic_scales = c.make(ACL_FLOAT8_E8M0, {12}); }},
  };
  SplitCalls({.quantized = true}).expect(scales);
}

TEST(SplitErrors, OfCombineSetup) {
  MOEYARD_SKIP_IN_PROCESSES();
  using C = CombineSetupCall;
  const Refusal<C> table[] = {
      {"expandX", kNull, "expandX is null", [](C& c) { c.combine.expand_x = nullptr; }},
      {"expertIds", kNull, "expertIds is null", [](C& c) { c.combine.ids = nullptr; }},
      {"assistInfo", kNull, "assistInfoForCombine is null", [](C& c) { c.combine.assist = nullptr; }},
      {"quantExpandXOut", kNull, "quantExpandXOut is null", [](C& c) { c.combine_between.y = nullptr; }},
      {"commCmdInfoOut", kNull, "commCmdInfoOut is null", [](C& c) { c.combine_between.commands = nullptr; }},
      {"dtype of rows", kInvalid, "expandX is",
       [](C& c) {
         c.combine.expand_x = c.make(ACL_INT32, {12, 8});
       }},
      {"dtype of messages", kInvalid, "quantExpandXOut is",
       [](C& c) {
         c.combine_between.y = c.make(ACL_BF16, {12, 512});
       }},
      {"commQuantMode", kTiling, "commQuantMode is 3", [](C& c) { c.combine.quant_mode = 3; }},
      {"too few rows", kTiling, "expandX is",
       [](C& c) {
         c.combine.expand_x = c.make(ACL_BF16, {11, 8});
       }},
      {"rows of one dimension", kTiling, "expandX is",
       [](C& c) { c.combine.expand_x = c.make(ACL_BF16, {96}); }},
      {"assistInfo too short", kTiling, "assistInfoForCombine is",
       [](C& c) { c.combine.assist = c.make(ACL_INT32, {12 * 128 - 1}); }},
      {"messages of another size", kTiling, "quantExpandXOut is",
       [](C& c) {
         c.combine_between.y = c.make(ACL_INT8, {12, 256});
       }},
      {"commCmdInfoOut too short", kTiling, "commCmdInfoOut is",
       [](C& c) { c.combine_between.commands = c.make(ACL_INT32, {14 * 16 - 1}); }},
  };
  const SplitCalls calls;
  calls.expect(table);
  expect_all(calls, of_group<C>(kInvalid, "expertSharedType is 1"));
}

TEST(SplitErrors, OfCombineTeardown) {
  MOEYARD_SKIP_IN_PROCESSES();
  using C = CombineTeardownCall;
  const Refusal<C> table[] = {
      {"expandX", kNull, "expandX is null", [](C& c) { c.combine.expand_x = nullptr; }},
      {"quantExpandX", kNull, "quantExpandX is null", [](C& c) { c.combine_between.y = nullptr; }},
      {"expertIds", kNull, "expertIds is null", [](C& c) { c.combine.ids = nullptr; }},
      {"expandIdx", kNull, "expandIdx is null", [](C& c) { c.combine_between.index = nullptr; }},
      {"expertScales", kNull, "expertScales is null", [](C& c) { c.combine.weights = nullptr; }},
      {"commCmdInfo", kNull, "commCmdInfo is null", [](C& c) { c.combine_between.commands = nullptr; }},
      {"xOut", kNull, "xOut is null", [](C& c) { c.combine.out = nullptr; }},
      {"dtype of mask", kInvalid, "xActiveMaskOptional is",
       [](C& c) { c.combine.mask = c.make(ACL_INT32, {3}); }},
      {"dtype of sharedExpertX", kInvalid, "sharedExpertXOptional is",
       [](C& c) {
         c.combine.shared_x = c.make(ACL_FLOAT16, {3, 8});
       }},
      {"dtype of xOut", kInvalid, "xOut is",
       [](C& c) {
         c.combine.out = c.make(ACL_FLOAT16, {3, 8});
       }},
      {"expertScales", kTiling, "expertScales is",
       [](C& c) {
         c.combine.weights = c.make(ACL_FLOAT, {3, 3});
       }},
      {"expandIdx too short", kTiling, "expandIdx is",
       [](C& c) { c.combine_between.index = c.make(ACL_INT32, {5}); }},
      {"sharedExpertX of other tokens", kTiling, "sharedExpertXOptional is",
       [](C& c) {
         c.combine.shared_x = c.make(ACL_BF16, {2, 2, 8});
       }},
      {"xOut of other tokens", kTiling, "xOut is",
       [](C& c) {
         c.combine.out = c.make(ACL_BF16, {4, 8});
       }},
  };
  const SplitCalls calls;
  calls.expect(table);
  expect_all(calls, of_group<C>(kInvalid, "expertShardType is 1"));
}

TEST(SplitErrors, OfTheFunctionsForTheSizes) {
  MOEYARD_SKIP_IN_PROCESSES();
  const SplitCalls calls;
  const auto code_with = [&](const std::function<void(SplitCall&)>& spoil) {
    auto call = calls.good<DispatchSetupCall>();
    spoil(call);
    DispatchSizes sizes{1, 2, 3, 4};
    const aclnnStatus code = sizes_of(static_cast<DispatchParams&>(call), sizes, call.comm_type);
    EXPECT_TRUE(sizes.message == 1 && sizes.index == 2 && sizes.assist == 3 && sizes.commands == 4);
    return code;
  };
  EXPECT_EQ(code_with([](SplitCall& c) { c.x = nullptr; }), kNull);
  EXPECT_EQ(code_with([](SplitCall& c) { c.ids = nullptr; }), kNull);
  EXPECT_EQ(code_with([](SplitCall& c) { c.group = nullptr; }), kNull);
  EXPECT_EQ(code_with([](SplitCall& c) { c.x = c.make(ACL_FLOAT, {3, 8}); }), kInvalid);
  EXPECT_EQ(code_with([](SplitCall& c) { c.x = c.make(ACL_BF16, {24}); }), kTiling);
  EXPECT_EQ(code_with([](SplitCall& c) { c.ranks = 0; }), kTiling);
  EXPECT_EQ(code_with([](SplitCall& c) { c.ranks = INT64_MAX; }), kTiling);
  EXPECT_EQ(code_with([](SplitCall& c) { c.experts = INT64_MAX; }), kTiling);
  EXPECT_EQ(code_with([](SplitCall& c) { c.shared = INT64_MAX; }), kTiling);
  EXPECT_EQ(code_with([](SplitCall& c) { c.quant_mode = 7; }), kTiling);
  EXPECT_EQ(code_with([](SplitCall& c) { c.global_bs = 7; }), kTiling);
  EXPECT_THAT(recent_message(), HasSubstr("SetupTeardownCalcOutputSize: globalBs is 7"));
  auto call = calls.good<CombineSetupCall>();
  CombineSizes sizes{1, 2};
  call.combine.assist = nullptr;
  EXPECT_EQ(sizes_of(call.combine, sizes), kNull);
  call = calls.good<CombineSetupCall>();
  call.combine.quant_mode = 1;
  EXPECT_EQ(sizes_of(call.combine, sizes), kTiling);
  EXPECT_TRUE(sizes.message == 1 && sizes.commands == 2);
}

TEST(SplitErrors, LimitsOf950) {
  MOEYARD_SKIP_IN_PROCESSES();
  if (!run_again_with("MOEYARD_SOC", "950")) return;
  using C = DispatchSetupCall;
  const SplitCalls calls({.tokens = 8, .topk = 6, .hidden = 4096, .experts_per_rank = 16});
  const Refusal<C> table[] = {
      {"experts", kTiling, "moeExpertNum is 64", [](C& c) { c.experts = 64; }},
      {"shared", kTiling, "sharedExpertNum is 1", [](C& c) { c.shared = 1; }},
      {"commType", kTiling, "commType is 0", [](C& c) { c.comm_type = 0; }},
      {"quantMode", kTiling, "quantMode is 2", [](C& c) { c.quant_mode = 2; }},
      {"BS", kTiling, "BS is 9",
       [](C& c) {
         c.x = c.make(ACL_BF16, {9, 4096}), c.ids = c.make(ACL_INT32, {9, 6});
         c.dispatch_between = {c.make(ACL_BF16, {54, 4096}), c.make(ACL_INT32, {54}),
                               c.make(ACL_INT32, {16 * 100})};
       }},
      {"K", kTiling, "K is 7",
       [](C& c) {
         c.ids = c.make(ACL_INT32, {8, 7});
         c.dispatch_between = {c.make(ACL_BF16, {56, 4096}), c.make(ACL_INT32, {56}),
                               c.make(ACL_INT32, {16 * 100})};
       }},
      {"H", kTiling, "H is 2048",
       [](C& c) {
         c.x = c.make(ACL_BF16, {8, 2048}), c.dispatch_between.y = c.make(ACL_BF16, {48, 2048});
       }},
  };
  calls.expect(table);
  const Refusal<CombineSetupCall> combine[] = {{"commQuantMode", kTiling, "commQuantMode is 2",
                                                [](CombineSetupCall& c) { c.combine.quant_mode = 2; }}};
  calls.expect(combine);
}

TEST(SplitErrors, LimitsOfRanksOn950) {
  MOEYARD_SKIP_IN_PROCESSES();
  if (!run_again_with("MOEYARD_SOC", "950")) return;
  const Device device;
  const EpGroup group(4);
  const EpPart part(group, 0, {.tokens = 8, .topk = 6, .hidden = 4096, .experts_per_rank = 8});
  DispatchSizes sizes;
  EXPECT_EQ(sizes_of(part.dispatch, sizes), kTiling);
  EXPECT_THAT(recent_message(), HasSubstr("epWorldSize is 4 but must be 2 or 8"));
}

void expect_no_kernel() {
  MOEYARD_SKIP_IN_PROCESSES();
  const Device device;
  const EpGroup group(2);
  const EpPart part(group, 0);
  DispatchSizes sizes;
  EXPECT_EQ(sizes_of(part.dispatch, sizes), 561003);
  EXPECT_THAT(recent_message(), HasSubstr("no kernel on this product"));
}
TEST(SplitErrors, A2HasNoSuchOperators) {
  if (run_again_with("MOEYARD_SOC", "A2")) expect_no_kernel();
}
TEST(SplitErrors, A3HasNoSuchOperators) {
  if (run_again_with("MOEYARD_SOC", "A3")) expect_no_kernel();
}

// --- While they run ----------------------------------------------------------------------------------------------------------

// The parts of one rank with all that goes between.
struct Halves {
  Halves(const EpGroup& group, int rank, PartSize size = {}) : part(group, rank, size) {
    if (!size.quantized) part.dispatch.dynamic_scales = nullptr;
    DispatchSizes sizes;
    EXPECT_EQ(sizes_of(part.dispatch, sizes), 0) << recent_message();
    CombineSizes more;
    EXPECT_EQ(sizes_of(part.combine, more), 0) << recent_message();
    const std::int64_t slots = size.tokens * size.topk;
    y.emplace(size.quantized ? ACL_INT8 : ACL_BF16,
              std::vector<std::int64_t>{slots, static_cast<std::int64_t>(sizes.message)},
              size.quantized ? 1 : 2);
    index.emplace(Tensor::empty<std::int32_t>({slots}));
    commands.emplace(Tensor::empty<std::int32_t>({static_cast<std::int64_t>(sizes.commands)}));
    message.emplace(Tensor::empty<std::int8_t>({part.rows_fit, static_cast<std::int64_t>(more.message)}));
    back.emplace(Tensor::empty<std::int32_t>({static_cast<std::int64_t>(more.commands)}));
  }
  Between there() const { return {*y, *index, *commands}; }
  Between home() const { return {*message, *index, *back}; }
  std::int32_t* words() const { return static_cast<std::int32_t*>(commands->memory()); }

  EpPart part;
  std::optional<Tensor> y, index, commands, message, back;
};

TEST(InHalvesFailures, SetupWaitsForNobody) {
  const EpGroup group(2);
  group.run([&](int rank, const Device& device) {
    if (rank != 0) return;
    const Halves mine(group, rank);
    EXPECT_EQ(run_setup(mine.part.dispatch, mine.there(), device), 0) << recent_message();
  });
}

TEST(InHalvesFailures, WrongIdsOfSetupReachPeersInTeardown) {
  const EpGroup group(2);
  group.run([&](int rank, const Device& device) {
    const Halves mine(group, rank);
    if (rank == 1) static_cast<std::int32_t*>(mine.part.ids.memory())[3] = 99;
    const int code = run_setup(mine.part.dispatch, mine.there(), device);
    if (rank == 1) {
      EXPECT_EQ(code, kWrongData);
      EXPECT_THAT(recent_message(), HasSubstr("expertIds[1][1] is 99"));
      return;
    }
    EXPECT_EQ(code, 0) << recent_message();
    EXPECT_EQ(run_teardown(mine.part.dispatch, mine.there(), device), kWrongData);
    EXPECT_THAT(recent_message(), AllOf(HasSubstr("rank 1"), HasSubstr("expertIds[1][1] is 99")));
    EXPECT_TRUE(mine.part.outputs_untouched());
  });
}

TEST(InHalvesFailures, SetupThatIsRefusedReachesPeersInTeardown) {
  const EpGroup group(2);
  group.run([&](int rank, const Device& device) {
    const Halves mine(group, rank);
    if (rank == 1) {
      DispatchParams bad = mine.part.dispatch;
      bad.quant_mode = 6;
      EXPECT_EQ(run_setup(bad, mine.there(), device), kTiling);
      return;
    }
    EXPECT_EQ(run_setup(mine.part.dispatch, mine.there(), device), 0) << recent_message();
    EXPECT_EQ(run_teardown(mine.part.dispatch, mine.there(), device), kWrongData);
    EXPECT_THAT(recent_message(), AllOf(HasSubstr("rank 1"), HasSubstr("quantMode is 6")));
  });
}

TEST(InHalvesFailures, CommandsOfNobodyAreFound) {
  const EpGroup group(2);
  const auto run_with = [&](const std::function<void(const Halves&)>& spoil, const char* text) {
    group.run([&](int rank, const Device& device) {
      const Halves mine(group, rank);
      EXPECT_EQ(run_setup(mine.part.dispatch, mine.there(), device), 0) << recent_message();
      if (rank == 1) spoil(mine);
      EXPECT_EQ(run_teardown(mine.part.dispatch, mine.there(), device), kWrongData);
      EXPECT_THAT(recent_message(), HasSubstr(text));
      EXPECT_TRUE(mine.part.outputs_untouched());
    });
  };
  run_with([](const Halves& h) { std::memset(h.words(), 0, h.commands->bytes()); }, "commCmdInfo is not");
  run_with([](const Halves& h) { std::memset(h.words(), 0x5A, h.commands->bytes()); }, "commCmdInfo is not");
  // Commands whose words were changed, and expertIds that were.
  for (int word = 16; word < 16 + 6 * 16; word += 16)
    for (const int value : {-2, 77, INT32_MAX, INT32_MIN})
      for (const int of : {0, 1})
        run_with([&](const Halves& h) { h.words()[word + of] = value; }, "commCmdInfo sends");
  run_with([](const Halves& h) { static_cast<std::int32_t*>(h.part.ids.memory())[0] = 3; },
           "commCmdInfo sends");
  run_with([](const Halves& h) { static_cast<std::int32_t*>(h.part.ids.memory())[0] = -1; },
           "commCmdInfo sends");
}

TEST(InHalvesFailures, WrongCommandsOfCombineAreFound) {
  const EpGroup group(2);
  const auto run_with = [&](const std::function<void(const Halves&)>& spoil, const char* text) {
    group.run([&](int rank, const Device& device) {
      const Halves mine(group, rank);
      ASSERT_EQ(run_setup(mine.part.dispatch, mine.there(), device), 0) << recent_message();
      ASSERT_EQ(run_teardown(mine.part.dispatch, mine.there(), device), 0) << recent_message();
      ASSERT_EQ(run_setup(mine.part.combine, mine.home(), device), 0) << recent_message();
      if (rank == 1) spoil(mine);
      EXPECT_EQ(run_teardown(mine.part.combine, mine.home(), device), kWrongData);
      EXPECT_THAT(recent_message(), HasSubstr(text));
      EXPECT_THAT(mine.part.out.values<std::uint16_t>(), testing::Each(0x5A5A));
    });
  };
  const auto words = [](const Halves& h) { return static_cast<std::int32_t*>(h.back->memory()); };
  run_with([&](const Halves& h) { words(h)[0] = 0; }, "commCmdInfo is not");
  run_with([&](const Halves& h) { words(h)[16] = 1 - words(h)[16]; }, "commCmdInfo says that row 0");
  run_with([&](const Halves& h) { words(h)[17] = 1000; }, "commCmdInfo says that row 0");
  run_with([&](const Halves& h) { words(h)[18] = -1; }, "commCmdInfo says that row 0");
  run_with([&](const Halves& h) { static_cast<std::int32_t*>(h.index->memory())[2] += 1; },
           "expandIdx[2], of token 1, slot 0, is");
  run_with([&](const Halves& h) { static_cast<std::int32_t*>(h.part.ids.memory())[2] = 99; }, "is 99");
}

TEST(InHalvesFailures, RanksThatDisagreeAreFound) {
  const EpGroup group(2);
  group.run([&](int rank, const Device& device) {
    const Halves mine(group, rank, {.quantized = rank == 1});
    DispatchParams p = mine.part.dispatch;
    EXPECT_EQ(run_setup(p, mine.there(), device), 0) << recent_message();
    EXPECT_EQ(run_teardown(p, mine.there(), device), kWrongData);
    EXPECT_THAT(recent_message(), AllOf(HasSubstr("quantMode"), HasSubstr("rank 0"), HasSubstr("rank 1")));
  });
}

// A rank in one piece and the other in halves: both fail at once.
TEST(InHalvesFailures, TheyDoNotMeetOperatorsInOnePiece) {
  const EpGroup group(2);
  group.run([&](int rank, const Device& device) {
    const Halves mine(group, rank);
    if (rank == 0) {
      EXPECT_EQ(run(mine.part.dispatch, device), 507048);
      return;
    }
    EXPECT_EQ(run_setup(mine.part.dispatch, mine.there(), device), 0) << recent_message();
    EXPECT_EQ(run_teardown(mine.part.dispatch, mine.there(), device), 507048);
  });
}

}  // namespace
}  // namespace oracle
