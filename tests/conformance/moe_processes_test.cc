// Moeyard. SPDX-License-Identifier: Apache-2.0
// Layers whose ranks are processes: what becomes of dispatch and combine when one of them ends, is slow or leaves, and
// attention and FFN workers as processes.
#include <gmock/gmock.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <optional>

#include "oracle/ep_part.h"
#include "support/afd_layer.h"
#include "support/forked.h"

namespace oracle {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr int kFault = 507048;
constexpr PartSize kSize{.tokens = 64, .topk = 4, .hidden = 512};

void wait_until(const std::function<bool()>& holds) {
  while (!holds()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// A rank of an expert-parallel group, and its part in a call.
class MoeRank {
 public:
  MoeRank(int size, int rank, RootInfoBox& box) : rank_(size, rank, box) {
    EXPECT_EQ(HcclGetCommName(rank_->comm, name_), HCCL_SUCCESS);
  }
  ~MoeRank() {
    device_.reset();  // which leaves the thread without a context
    EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  }
  MoeRank(const MoeRank&) = delete;
  int size() const { return rank_->size; }
  const char* name() const { return name_; }
  const ProcessRank& process() const { return rank_; }

  EpPart part() const { return EpPart(*this, rank_->rank, kSize); }
  // Dispatch and combine; every result is 1, twice, as 4 slots weigh 0.5 each.
  int layer() const {
    EpPart mine = part();
    if (const int code = run(mine.dispatch, *device_); code != 0) return code;
    if (const int code = run(mine.combine, *device_); code != 0) return code;
    for (const std::uint16_t bits : mine.out.values<std::uint16_t>()) EXPECT_EQ(bits, B16(2.0f).bits);
    return 0;
  }
  const Device& device() const { return *device_; }

 private:
  const ProcessRank rank_;
  std::optional<Device> device_{0};
  char name_[128] = {};
};

struct Steps {
  RootInfoBox box, again;
  std::atomic<int> ready{0}, killed{0};
};

// Those that are left make a communicator of their own and go on.
void go_on_without(int victim, int size, int rank, Steps& steps) {
  const MoeRank left(size - 1, rank < victim ? rank : rank - 1, steps.again);
  EXPECT_EQ(left.layer(), 0) << recent_message();
}

// Wherever a rank is when it ends, the others hear of it long before their deadline: who, and in which call.
TEST(LostExperts, AreNamedWithTheCallThatTheyWereIn) {
  constexpr int kRanks = 4, kVictim = 2;
  const struct {
    const char* what;
    bool dispatched;                           // all have
    std::function<void(const MoeRank&)> last;  // of the victim
    const char* seen;
  } cases[] = {
      {"idle", false, [](const MoeRank&) { pause(); }, "rank 2 (last seen in MoeDistributeCombine"},
      {"waiting in dispatch", false, [](const MoeRank& me) { run(me.part().dispatch, me.device()); },
       "rank 2 (last seen in MoeDistributeDispatch"},
      {"between dispatch and combine", true, [](const MoeRank&) { pause(); },
       "rank 2 (last seen in MoeDistributeDispatch"},
      {"waiting in combine", true, nullptr, "rank 2 (last seen in MoeDistributeCombine"},
      {"ending by itself", true, [](const MoeRank&) { _exit(0); },
       "rank 2 (last seen in MoeDistributeDispatch"},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.what);
    const Shared<Steps> steps;
    Forked ranks(kRanks, [&](int rank) {
      const MoeRank me(kRanks, rank, steps->box);
      EXPECT_EQ(me.layer(), 0) << recent_message();
      EpPart part = me.part();
      if (one.dispatched) {
        EXPECT_EQ(run(part.dispatch, me.device()), 0) << recent_message();
      }
      ++steps->ready;
      if (rank == kVictim && one.last)
        one.last(me);
      else if (rank == kVictim)
        run(part.combine, me.device());
      wait_until([&] { return steps->killed != 0; });
      const auto start = Clock::now();
      EXPECT_EQ(one.dispatched ? run(part.combine, me.device()) : run(part.dispatch, me.device()), kFault);
      EXPECT_LT(Clock::now() - start, std::chrono::seconds(20));
      EXPECT_THAT(recent_message(), AllOf(HasSubstr(one.seen), HasSubstr("the process has ended")));
      go_on_without(kVictim, kRanks, rank, *steps);
    });
    wait_until([&] { return steps->ready == kRanks; });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ranks.signal(kVictim, SIGKILL);
    ranks.wait(kVictim);
    steps->killed = 1;
    ranks.expect_success();
  }
}

// While it writes rows into its peers, while they read its own, in a meeting: wherever the signal finds it.
TEST(LostExperts, AtAnyMoment) {
  constexpr int kRanks = 3;
  for (int attempt = 0; attempt < 15; ++attempt) {
    SCOPED_TRACE(attempt);
    const Shared<Steps> steps;
    const int victim = attempt % kRanks;
    Forked ranks(kRanks, [&](int rank) {
      const MoeRank me(kRanks, rank, steps->box);
      int code = me.layer();
      ++steps->ready;
      while (code == 0) code = me.layer();
      EXPECT_EQ(code, kFault);
      EXPECT_THAT(recent_message(), AllOf(HasSubstr("rank " + std::to_string(victim) + " (last seen in"),
                                          HasSubstr("the process has ended")));
      go_on_without(victim, kRanks, rank, *steps);
    });
    wait_until([&] { return steps->ready == kRanks; });
    std::this_thread::sleep_for(std::chrono::microseconds(5000 + 1709 * attempt));
    ranks.signal(victim, SIGKILL);
    ranks.wait(victim);
    ranks.expect_success();
  }
}

TEST(LostExperts, OneThatDestroysItsCommunicatorIsNamedAtOnce) {
  const Shared<Steps> steps;
  Forked(3, [&](int rank) {
    {
      const MoeRank me(3, rank, steps->box);
      EXPECT_EQ(me.layer(), 0) << recent_message();
      if (rank != 1) {
        EXPECT_EQ(me.layer(), kFault);
        EXPECT_THAT(recent_message(), HasSubstr("rank 1 has destroyed its communicator and will not come"));
      }
    }
    if (rank != 1) go_on_without(1, 3, rank, *steps);
  }).expect_success();
}

TEST(SlowExperts, AreNamedAtTheDeadlineAndAreOutThen) {
  const Shared<Steps> steps;
  Forked(3, [&](int rank) {
    setenv("MOEYARD_TIMEOUT_MS", "2000", 1);  // read when the library is first used
    const MoeRank me(3, rank, steps->box);
    EXPECT_EQ(me.layer(), 0) << recent_message();
    if (rank == 1) wait_until([&] { return steps->ready == 2; });
    const auto start = Clock::now();
    EXPECT_EQ(me.layer(), kFault);
    const std::string text = recent_message();
    EXPECT_THAT(text, AllOf(HasSubstr("rank 1 (last seen in MoeDistributeCombine"),
                            HasSubstr("did not come within 2000 ms")));
    if (rank != 1) {
      EXPECT_LT(Clock::now() - start, std::chrono::seconds(20));
      ++steps->ready;
      go_on_without(1, 3, rank, *steps);
    }
  }).expect_success();
}

// ---- Attention and FFN workers ----

constexpr attention_ffn::Shape kLayer{2, 2, 2, 5, 256, 6, 2, true, 1};

// A worker of kLayer in a process of its own.
class WorkerProcess {
 public:
  WorkerProcess(int rank, RootInfoBox& box) : rank_(rank) {
    attention_ffn::check(aclrtSetDevice(rank), "aclrtSetDevice");
    attention_ffn::check(aclrtCreateStream(&stream_), "aclrtCreateStream");
    attention_ffn::check(HcclCommInitRootInfo(static_cast<std::uint32_t>(kLayer.ranks()), &box.get(rank),
                                              static_cast<std::uint32_t>(rank), &comm_),
                         "HcclCommInitRootInfo");
    worker_ = std::make_unique<attention_ffn::Worker>(kLayer, comm_, rank);
    meet(stream_);  // nobody sends before all windows are prepared
  }
  ~WorkerProcess() {
    worker_.reset();
    EXPECT_EQ(HcclCommDestroy(comm_), HCCL_SUCCESS);
    EXPECT_EQ(aclrtDestroyStream(stream_), ACL_SUCCESS);
  }

  bool attention() const { return rank_ < kLayer.attention_workers; }
  void attend(attention_ffn::Tokens& tokens) const {
    attention_ffn::AttentionWorker(*worker_, stream_, tokens).run();
  }
  // Until all attention workers have said by a barrier that they have their results.
  void serve() const {
    std::thread stopper([this] {
      aclrtStream stream = nullptr;
      attention_ffn::check(aclrtSetDevice(rank_), "aclrtSetDevice");
      attention_ffn::check(aclrtCreateStream(&stream), "aclrtCreateStream");
      meet(stream);
      worker_->stop();
      attention_ffn::check(aclrtDestroyStream(stream), "aclrtDestroyStream");
    });
    const attention_ffn::Expert expert = [](std::int64_t e, const std::uint16_t* x, std::uint16_t* y) {
      scaling_expert(kLayer.hidden, e, x, y);
    };
    attention_ffn::FfnWorker(*worker_, stream_, expert).run();
    stopper.join();
  }
  void meet(aclrtStream stream) const {
    attention_ffn::check(HcclBarrier(comm_, stream), "HcclBarrier");
    attention_ffn::check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
  }
  aclrtStream stream() const { return stream_; }
  HcclComm comm() const { return comm_; }

 private:
  const int rank_;
  aclrtStream stream_ = nullptr;
  HcclComm comm_ = nullptr;
  std::unique_ptr<attention_ffn::Worker> worker_;
};

TEST(WorkerProcesses, EqualThePlainLayer) {
  const Shared<Steps> steps;
  Forked(static_cast<int>(kLayer.ranks()), [&](int rank) {
    std::mt19937 random(static_cast<std::uint32_t>(rank));
    attention_ffn::Tokens tokens = small_tokens(kLayer, 83 + 30 * rank, random);
    const WorkerProcess me(rank, steps->box);
    if (!me.attention()) return me.serve();
    me.attend(tokens);
    me.meet(me.stream());
    expect_layer(kLayer, tokens);
  }).expect_success();
}

TEST(WorkerProcesses, OneThatEndsIsMissedAtTheDeadline) {
  const Shared<Steps> steps;
  const int victim = static_cast<int>(kLayer.ranks()) - 1;
  Forked ranks(victim + 1, [&](int rank) {
    setenv("MOEYARD_TIMEOUT_MS", "1500", 1);
    std::mt19937 random(static_cast<std::uint32_t>(rank));
    attention_ffn::Tokens tokens = small_tokens(kLayer, 40, random);
    const WorkerProcess me(rank, steps->box);
    ++steps->ready;
    wait_until([&] { return steps->killed != 0; });
    if (me.attention()) {
      try {
        me.attend(tokens);
        ADD_FAILURE() << "nobody has served the experts of rank " << victim;
      } catch (const std::runtime_error& error) {  // while it sends, or while it waits for results
        EXPECT_THAT(error.what(), AnyOf(HasSubstr("waited 1500 ms for"), HasSubstr("is lost")));
      }
    }
    EXPECT_THAT(HcclBarrier(me.comm(), me.stream()), AnyOf(HCCL_SUCCESS, HCCL_E_REMOTE));
    aclrtSynchronizeStream(me.stream());
    HcclResult fault = HCCL_SUCCESS;
    EXPECT_EQ(HcclGetCommAsyncError(me.comm(), &fault), HCCL_SUCCESS);
    EXPECT_EQ(fault, HCCL_E_REMOTE);
  });
  wait_until([&] { return steps->ready == victim + 1; });
  ranks.signal(victim, SIGKILL);
  ranks.wait(victim);
  steps->killed = 1;
  ranks.expect_success();
}

}  // namespace
}  // namespace oracle
