// Moeyard. SPDX-License-Identifier: Apache-2.0
// aclnnMoeDistributeDispatchV4 and aclnnMoeDistributeCombineV4 against plain loops over random problems: every mode, dtype
// and edge, on 1 to 64 ranks. MOEYARD_TEST_SEED gives other problems.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <set>

#include "oracle/ep_round_trip.h"
#include "support/rerun.h"

namespace oracle {
namespace {

// Before anything asks for the number of devices.
[[maybe_unused]] const bool kDevices = setenv("MOEYARD_DEVICES", "64", 1) == 0;

int below(std::mt19937& random, int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }

// Every way of quantMode from tokens of T to rows, and every type of tokens that are quantised already.
std::vector<Quantisation> every_quantisation() {
  std::vector<Quantisation> all{{0, ACL_HIFLOAT8}, {1, ACL_INT8}, {1, ACL_HIFLOAT8}, {2, ACL_INT8}};
  for (const aclDataType fp8 : {ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E5M2}) {
    for (const int mode : {2, 3, 4, 5}) all.push_back({mode, fp8});
    for (const aclDataType scales : {ACL_FLOAT, ACL_FLOAT8_E8M0}) all.push_back({0, fp8, true, scales, 1});
  }
  for (const aclDataType fp4 : {ACL_FLOAT4_E2M1, ACL_FLOAT4_E1M2}) {
    all.push_back({4, fp4});
    all.push_back({0, fp4, true, ACL_FLOAT8_E8M0, 1});
  }
  all.push_back({0, ACL_HIFLOAT8, true, ACL_FLOAT, 1});
  all.push_back({0, ACL_INT32, true, ACL_FLOAT, 0});
  return all;
}

void draw_quantisation(EpShape& shape, std::mt19937& random) {
  static const std::vector<Quantisation> all = every_quantisation();
  if (below(random, 3) == 0) return;
  Quantisation& how = shape.quantised = all[random() % all.size()];
  if (how.travels && how.columns > 0) how.columns = 1 + below(random, shape.hidden);
  if (how.is_fp4()) shape.hidden += shape.hidden % 2;
  if ((how.mode == 2 || how.mode == 3) && below(random, 2) == 0) shape.factors = Factors::of_experts;
  constexpr Factors kFixed[] = {Factors::of_all, Factors::of_experts, Factors::of_elements};
  if (how.mode == 1) shape.factors = kFixed[how.to == ACL_INT8 ? below(random, 3) : 0];
}

// A shape with everything drawn: experts per rank, K, odd and even H, shared ranks, special experts, quantisation.
EpShape draw_shape(int ranks, std::mt19937& random) {
  EpShape shape;
  shape.ranks = ranks;
  if (ranks > 1 && below(random, 3) == 0) {
    shape.shared = 1 + below(random, std::min(2, ranks - 1));
    const int most = (ranks - 1) / shape.shared;
    shape.shared_ranks = shape.shared * (1 + below(random, most));
  } else {
    shape.shared = below(random, 2);  // without ranks of their own: the same as none
  }
  shape.experts = (ranks - shape.shared_ranks) * (1 + below(random, 4));
  if (below(random, 2) == 0) {
    shape.zero = below(random, 3);
    shape.copy = below(random, 3);
    shape.constant = below(random, 3);
  }
  shape.topk = 1 + below(random, std::min(8, shape.experts + shape.zero + shape.copy + shape.constant));
  constexpr int kWidths[] = {1, 3, 8, 31, 64, 129, 257};
  shape.hidden = kWidths[below(random, 7)];
  draw_quantisation(shape, random);
  constexpr int kCommModes[] = {0, 0, 0, 2, 3, 4};
  shape.comm_mode = kCommModes[below(random, 6)];
  return shape;
}

template <class T>
void check_random(const EpGroup& group, std::uint32_t seed) {
  std::mt19937 random(seed);
  EpShape shape = draw_shape(group.size(), random);
  std::vector<int> bs(static_cast<std::size_t>(group.size()), 1 + below(random, 9));
  int mask_dims = below(random, 3);
  if (below(random, 3) == 0) {  // tokens differ between ranks, some have none
    for (int& tokens : bs) tokens = below(random, 3) == 0 ? 0 : below(random, 12);
    shape.global_bs = (*std::max_element(bs.begin(), bs.end()) + below(random, 2)) * shape.ranks;
    if (shape.global_bs == 0) shape.global_bs = shape.ranks;
    mask_dims = 0;
  }
  EpOptions options;
  options.repeats = below(random, 8) == 0;
  EpRoundTrip<T> problem(shape, bs, mask_dims, seed, options);
  problem.weighted = below(random, 5) != 0;
  problem.weights_travel = below(random, 4) != 0;
  if (shape.shared_ranks == 0 && below(random, 3) == 0) problem.add_shared_x();
  problem.check(group);
}

// Random problems for each number of ranks; a sanitizer makes every one some twenty times slower.
#ifdef MOEYARD_SANITIZED
constexpr int kProblems = 6;
#else
constexpr int kProblems = 24;
#endif

// Before this program has made a communicator: processes cannot share memory that is as old, and work on copies of the blocks,
// which have to be as long as the tensors with their gaps are. Comes first for that reason.
TEST(MemoryOfBefore, HoldsRowsWithGaps) {
  constexpr int kRanks = 3, kTokens = 5, kWidth = 40, kRows = kRanks * kTokens;
  struct Rank {
    Device device;
    Tensor x, ids, weights, rows, assist, nums, counts, expand_scales, out;
  };
  std::vector<B16> tokens;
  for (int i = 0; i < kTokens * kWidth; ++i) tokens.emplace_back(static_cast<float>(i % 100));
  const std::vector<float> ones(kTokens, 1.0f);
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::vector<std::int32_t> ids(kTokens, 0);  // the first rank gets as many rows as fit
    constexpr Layout kGaps = Layout::padded_rows, kSpread = Layout::spread;
    ranks.emplace_back(new Rank{
        Device(rank), Tensor::of<B16>({kTokens, kWidth}, tokens, kGaps),
        Tensor::of<std::int32_t>({kTokens, 1}, ids), Tensor::of<float>({kTokens, 1}, ones),
        Tensor::empty<B16>({kRows, kWidth}, kGaps), Tensor::empty<std::int32_t>({kRows * 128}, kSpread),
        Tensor::empty<std::int64_t>({1}), Tensor::empty<std::int32_t>({kRanks}),
        Tensor::empty<float>({kRows}, kSpread), Tensor::empty<B16>({kTokens, kWidth}, kGaps)});
  }
  const EpGroup group(kRanks);
  group.run([&](int rank, const Device& device) {
    const Rank& mine = *ranks[static_cast<std::size_t>(rank)];
    DispatchParams p;
    CombineParams c;
    p.group = c.group = group.name(), p.ranks = c.ranks = p.experts = c.experts = kRanks,
    p.rank = c.rank = rank;
    p.x = mine.x, p.ids = c.ids = mine.ids, p.weights = c.weights = mine.weights, p.expand_x = mine.rows;
    p.assist = c.assist = mine.assist, p.nums = mine.nums, p.counts = c.counts = mine.counts;
    p.expand_scales = mine.expand_scales, c.expand_x = mine.rows, c.out = mine.out;
    ASSERT_EQ(run(p, device), 0) << recent_message();
    for (const Tensor* tensor : {&mine.rows, &mine.assist, &mine.expand_scales})
      EXPECT_TRUE(tensor->gaps_untouched());
    const int received = rank == 0 ? kRows : 0;
    EXPECT_EQ(mine.counts.values<std::int32_t>().back(), received);
    ASSERT_EQ(run(c, device), 0) << recent_message();
    EXPECT_TRUE(mine.out.values<B16>() == tokens);  // the expert returns what it gets
    const std::vector<float> weights = mine.expand_scales.values<float>();
    EXPECT_EQ(std::count(weights.begin(), weights.end(), 1.0f), received);
    EXPECT_TRUE(mine.out.gaps_untouched());
  });
}

class RandomShapes : public testing::TestWithParam<int> {};

TEST_P(RandomShapes, MatchThePlainLoops) {
  const EpGroup group(GetParam());
  const int problems = GetParam() > 8 ? kProblems / 6 : kProblems;
  for (int i = 0; i < problems && !HasFailure(); ++i) {
    const std::uint32_t of = seed() + static_cast<std::uint32_t>(1000 * GetParam() + i);
    SCOPED_TRACE("MOEYARD_TEST_SEED: problem seed " + std::to_string(of));
    if (i % 2 == 0)
      check_random<B16>(group, of);
    else
      check_random<F16>(group, of);
  }
}
INSTANTIATE_TEST_SUITE_P(Ranks, RandomShapes, testing::Values(1, 2, 3, 4, 8, 64));

// --- Each mode with each other one -------------------------------------------------------------------------------------

enum Choice {
  kGroupOf,
  kQuantisation,
  kCommunication,
  kMask,
  kShared,
  kSpecial,
  kTokensOf,
  kWeights,
  kTypes,
  kChoices
};
using Modes = std::array<int, kChoices>;
constexpr int kGroups[] = {1, 2, 4, 16};
const Modes kWays = {4, static_cast<int>(every_quantisation().size()) + 1, 4, 3, 3, 2, 2, 2, 2};

bool is_possible(const Modes& m) {
  const bool uneven = m[kTokensOf] == 1;
  return !(uneven && m[kMask] != 0) && !(m[kShared] == 1 && m[kGroupOf] == 0);
}

// Modes such that every two choices occur together, if they can.
std::vector<Modes> all_pairs(std::mt19937& random) {
  std::set<std::array<int, 4>> missing;  // choice, its value, another choice, its value
  for (int a = 0; a < kChoices; ++a)
    for (int b = a + 1; b < kChoices; ++b)
      for (int i = 0; i < kWays[static_cast<std::size_t>(a)]; ++i)
        for (int j = 0; j < kWays[static_cast<std::size_t>(b)]; ++j) {
          Modes modes{};
          modes[static_cast<std::size_t>(a)] = i, modes[static_cast<std::size_t>(b)] = j;
          if (a != kGroupOf) modes[kGroupOf] = 1;
          if (is_possible(modes)) missing.insert({a, i, b, j});
        }
  const auto pairs_of = [](const Modes& modes, const auto& visit) {
    for (int a = 0; a < kChoices; ++a)
      for (int b = a + 1; b < kChoices; ++b)
        visit({a, modes[static_cast<std::size_t>(a)], b, modes[static_cast<std::size_t>(b)]});
  };
  std::vector<Modes> chosen;
  while (!missing.empty()) {
    Modes best{};
    std::size_t most = 0;
    for (int tries = 0; tries < 50; ++tries) {
      Modes modes;
      for (std::size_t c = 0; c < kChoices; ++c) modes[c] = below(random, kWays[c]);
      const auto& wanted = *missing.begin();
      modes[static_cast<std::size_t>(wanted[0])] = wanted[1];
      modes[static_cast<std::size_t>(wanted[2])] = wanted[3];
      std::size_t found = 0;
      if (is_possible(modes))
        pairs_of(modes, [&](const std::array<int, 4>& pair) { found += missing.count(pair); });
      if (found > most) most = found, best = modes;
    }
    pairs_of(best, [&](const std::array<int, 4>& pair) { missing.erase(pair); });
    chosen.push_back(best);
  }
  return chosen;
}

template <class T>
void check_modes(const EpGroup& group, const Modes& m, std::uint32_t seed) {
  std::mt19937 random(seed);
  EpShape shape;
  shape.ranks = group.size();
  if (m[kShared] == 1) shape.shared = shape.shared_ranks = 1;
  shape.experts = (shape.ranks - shape.shared_ranks) * 2;
  if (m[kSpecial] == 1) shape.zero = shape.copy = shape.constant = 1;
  shape.topk = 2;
  shape.hidden = 70;
  if (m[kQuantisation] > 0)
    shape.quantised = every_quantisation()[static_cast<std::size_t>(m[kQuantisation] - 1)];
  if (shape.quantised.mode == 1) shape.factors = Factors::of_all;
  if (shape.quantised.mode == 2 || shape.quantised.mode == 3)
    shape.factors = below(random, 2) == 0 ? Factors::none : Factors::of_experts;
  constexpr int kCommModes[] = {0, 2, 3, 4};
  shape.comm_mode = kCommModes[m[kCommunication]];
  std::vector<int> bs(static_cast<std::size_t>(shape.ranks), 4);
  if (m[kTokensOf] == 1) {
    for (int& tokens : bs) tokens = below(random, 5);
    shape.global_bs = 4 * shape.ranks;
  }
  EpRoundTrip<T> problem(shape, bs, m[kMask], seed);
  problem.weighted = m[kWeights] == 0;
  if (m[kShared] == 2) problem.add_shared_x();
  problem.check(group);
}

TEST(EveryTwoModes, MatchThePlainLoops) {
  std::mt19937 random(seed());
  const std::vector<Modes> chosen = all_pairs(random);
  for (int i = 0; i < kWays[kGroupOf]; ++i) {
    const EpGroup group(kGroups[i]);
    std::uint32_t number = 0;
    for (const Modes& modes : chosen) {
      const std::uint32_t of = seed() + 500000 + ++number;
      if (modes[kGroupOf] != i || testing::Test::HasFailure()) continue;
      if (modes[kTypes] == 0)
        check_modes<B16>(group, modes, of);
      else
        check_modes<F16>(group, modes, of);
    }
  }
}

// A2 tells combine in another way where rows are.
TEST(RandomProblems, MatchThePlainLoopsOnA2) {
  if (!run_again_with("MOEYARD_SOC", "A2")) return;
  for (const int ranks : {1, 2, 3, 8, 16}) {
    const EpGroup group(ranks);
    for (int i = 0; i < kProblems / 3 && !HasFailure(); ++i) {
      const std::uint32_t of = seed() + static_cast<std::uint32_t>(100000 + 1000 * ranks + i);
      std::mt19937 random(of);
      EpShape shape;
      shape.ranks = ranks, shape.experts = ranks * (1 + below(random, 4)),
      shape.hidden = 32 * (1 + below(random, 3));
      EpOptions options;
      options.indices = true;
      if (ranks > 8 && i % 2 == 0)
        options.algorithm = "hierarchy";
      else
        shape.zero = below(random, 3), shape.copy = below(random, 3);
      shape.topk = 1 + below(random, std::min(8, shape.experts + shape.zero + shape.copy));
      shape.quantised.mode = 2 * below(random, 2);
      const bool hierarchy = *options.algorithm != '\0';
      if (shape.quantised.mode != 0 && !hierarchy && below(random, 2) == 0)
        shape.factors = Factors::of_experts;
      if (shape.quantised.mode == 0 && !hierarchy && below(random, 2) == 0)
        shape.quantised = {0, ACL_INT32, true, ACL_FLOAT, 0};
      if (hierarchy && below(random, 2) == 0) shape.comm_mode = 2;
      EpRoundTrip<B16>(shape, std::vector<int>(static_cast<std::size_t>(ranks), 1 + below(random, 9)),
                       hierarchy ? 0 : below(random, 3), of, options)
          .check(group);
    }
  }
}

// --- Edges, one by one -----------------------------------------------------------------------------------------------

EpShape plain(int ranks, int experts, int topk, int hidden) {
  EpShape shape;
  shape.ranks = ranks, shape.experts = experts, shape.topk = topk, shape.hidden = hidden;
  return shape;
}

TEST(DispatchCombine, OneExpertGetsEverything) {
  const EpGroup group(4);
  EpRoundTrip<B16> problem(plain(4, 8, 1, 40), {5, 5, 5, 5}, 0, 1);
  for (auto& rank : problem.ranks) std::fill(rank.ids.begin(), rank.ids.end(), 6);
  problem.check(group);
}

TEST(DispatchCombine, NoTokensAtAll) {
  const EpGroup group(3);
  EpRoundTrip<F16> problem(plain(3, 6, 2, 16), {0, 0, 0}, 0, 2);
  problem.check(group);
}

TEST(DispatchCombine, OneTokenOnOneRank) {
  const EpGroup group(3);
  EpShape shape = plain(3, 6, 2, 16);
  shape.global_bs = 3;
  EpRoundTrip<B16>(shape, {0, 1, 0}, 0, 3).check(group);
}

TEST(DispatchCombine, OutputsOfExactlyTheCapacity) {
  const EpGroup group(2);
  EpOptions exact;
  exact.rows_to_spare = 0;
  EpRoundTrip<B16>(plain(2, 2, 2, 24), {7, 7}, 0, 4, exact).check(group);  // every rank gets every token
}

// The streaming paths of both operators, on misaligned rows, too.
TEST(DispatchCombine, RowsLargerThanTheCaches) {
  const EpGroup group(2);
  EpOptions dense;
  dense.views = false;
  EpShape quantized = plain(2, 8, 8, 2051);
  quantized.quantised.mode = 2;
  EpRoundTrip<B16>(quantized, {260, 260}, 0, 5, dense).check(group);             // 8.5 MB of rows
  EpRoundTrip<B16>(plain(2, 2, 1, 8195), {260, 260}, 0, 7, dense).check(group);  // 8.5 MB of rows and of sums
}

TEST(DispatchCombine, ManyExpertsPerToken) {
  const EpGroup group(2);
  EpRoundTrip<F16>(plain(2, 80, 70, 33), {3, 3}, 2, 6).check(group);
}

// Every mode with every type of rows that it has, with factors and without.
TEST(DispatchCombine, EveryQuantisation) {
  const EpGroup group(3);
  for (const Quantisation& how : every_quantisation())
    for (const Factors factors :
         {Factors::none, Factors::of_experts, Factors::of_elements, Factors::of_all}) {
      const bool only_one = how.mode == 1 && how.to == ACL_HIFLOAT8;
      const Factors least = how.mode == 1 ? only_one ? Factors::of_all : Factors::of_experts : Factors::none;
      const Factors most = how.mode == 1                    ? Factors::of_all
                           : how.mode == 2 || how.mode == 3 ? Factors::of_experts
                                                            : Factors::none;
      if (factors < least || factors > most) continue;
      for (const int hidden : {1, 130, 256}) {
        EpShape shape = plain(3, 6, 3, hidden + (how.is_fp4() ? hidden % 2 : 0));
        shape.quantised = how, shape.factors = factors;
        shape.shared = 1, shape.shared_ranks = 1, shape.experts = 6;
        EpRoundTrip<B16>(shape, {4, 4, 4}, 0, 9).check(group);
        EpRoundTrip<F16>(shape, {4, 4, 4}, 2, 10).check(group);
      }
    }
}

TEST(DispatchCombine, EveryQuantisedCommunication) {
  const EpGroup group(3);
  for (const int mode : {2, 3, 4})
    for (const int hidden : {1, 8, 37, 128, 2100}) {
      EpShape shape = plain(3, 6, 3, hidden);
      shape.comm_mode = mode;
      shape.copy = 1, shape.constant = 1;
      EpRoundTrip<B16>(shape, {4, 4, 4}, 2, 11).check(group);
      shape.shared = 1, shape.shared_ranks = 1;
      EpRoundTrip<F16>(shape, {4, 4, 4}, 0, 12).check(group);
    }
}

// xOut == x when the experts return what they get, there is one of them and it has weight 1.
TEST(DispatchCombine, IdentityRoundTripReturnsTheTokens) {
  const EpGroup group(3);
  EpRoundTrip<B16> problem(plain(3, 3, 1, 65), {6, 6, 6}, 0, 7);
  for (auto& rank : problem.ranks) {
    std::fill(rank.ids.begin(), rank.ids.end(), 0);  // expert 0 multiplies by 1
    std::fill(rank.weights.begin(), rank.weights.end(), 1.0f);
  }
  problem.check(group);
  for (const auto& rank : problem.ranks)
    for (int t = 0; t < rank.bs; ++t) {
      const std::vector<B16> x(rank.x.begin() + t * 65, rank.x.begin() + (t + 1) * 65);
      EXPECT_TRUE(
          reference_combine(problem.shape, rank, problem.constants, t, true, [&](int) { return x; }) == x);
    }
}

// --- The same bits whatever the threads and wherever the ranks are -----------------------------------------------------

constexpr const char* kDigestLine = "digest of xOut: ";

std::uint64_t digest_of(const EpGroup& group) {  // several pieces of work per rank
  EpRoundTrip<B16> problem(plain(2, 16, 4, 515), {150, 150}, 2, 8);
  return problem.check(group);
}

TEST(DispatchCombine, DoesNotDependOnWhereRanksAre) {
  const std::uint64_t in_order = digest_of(EpGroup(2));
  EXPECT_EQ(digest_of(EpGroup(std::vector<std::int32_t>{1, 0})), in_order);
  EXPECT_EQ(digest_of(EpGroup(std::vector<std::int32_t>{63, 12})), in_order);
}

TEST(DispatchCombine, PrintsItsDigest) {
  std::printf("%s%llx\n", kDigestLine, static_cast<unsigned long long>(digest_of(EpGroup(2))));
}

std::string digest_with(const std::string& environment) {
  const std::string command = again_prefix() + environment + " " + testing::internal::GetArgvs()[0] +
                              " --gtest_filter=DispatchCombine.PrintsItsDigest";
  FILE* pipe = popen(command.c_str(), "r");
  std::string found;
  char line[512];
  while (pipe != nullptr && std::fgets(line, sizeof line, pipe) != nullptr)
    if (std::string(line).rfind(kDigestLine, 0) == 0) found = line;
  EXPECT_TRUE(pipe != nullptr && pclose(pipe) == 0) << command;
  return found;
}

TEST(DispatchCombine, DoesNotDependOnThreadsOrInstructions) {
  const std::string one = digest_with("MOEYARD_THREADS=1");
  ASSERT_FALSE(one.empty());
  EXPECT_EQ(digest_with("MOEYARD_THREADS=2"), one);
  EXPECT_EQ(digest_with("MOEYARD_THREADS=7"), one);
  EXPECT_EQ(digest_with("MOEYARD_TARGET=EMU128"), one);
  EXPECT_EQ(digest_with("MOEYARD_TARGET=SSE4"), one);
}

}  // namespace
}  // namespace oracle
