// Moeyard. SPDX-License-Identifier: Apache-2.0
// Workers of attention/FFN disaggregation over the windows of a communicator, and the two operators that send between
// them, as a test calls them.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "aclnnop/aclnn_attention_to_ffn.h"
#include "aclnnop/aclnn_ffn_to_attention.h"
#include "hccl/hccl.h"
#include "support/afd.h"
#include "support/hccl_ranks.h"
#include "support/int_array.h"

namespace oracle {

// A rank with its context, stream and window. Every thread that works for it calls enter() first.
class WorkerRank {
 public:
  WorkerRank(HcclComm comm, int device) {
    EXPECT_EQ(aclrtSetDevice(device), 0);
    EXPECT_EQ(aclrtCreateContext(&context_, device), 0);
    EXPECT_EQ(aclrtCreateStream(&stream), 0);
    void* base = nullptr;
    EXPECT_EQ(HcclGetHcclBuffer(comm, &base, &window_bytes), 0) << recent_message();
    window = static_cast<unsigned char*>(base);
  }
  ~WorkerRank() {
    enter();
    EXPECT_EQ(aclrtDestroyStream(stream), 0);
    EXPECT_EQ(aclrtDestroyContext(context_), 0);
  }
  void enter() const { EXPECT_EQ(aclrtSetCurrentContext(context_), 0); }
  int synchronize() const { return aclrtSynchronizeStream(stream); }
  std::int32_t* words() const { return reinterpret_cast<std::int32_t*>(window); }

  aclrtStream stream = nullptr;
  unsigned char* window = nullptr;
  std::uint64_t window_bytes = 0;

 private:
  aclrtContext context_ = nullptr;
};

class Workers {
 public:
  explicit Workers(int size) : comm_(size), ranks_(static_cast<std::size_t>(size)) {
    for (int rank = 0; rank < size; ++rank) {
      if (!owns(rank)) continue;
      ranks_[static_cast<std::size_t>(rank)] = std::make_unique<WorkerRank>(comm_.comms[rank], rank);
      char text[128] = {};
      EXPECT_EQ(HcclGetCommName(comm_.comms[rank], text), 0);
      name = text;
    }
  }
  // Whether the worker is in this process; only those may be asked for.
  static bool owns(std::int64_t rank) { return process_place().owns(static_cast<int>(rank)); }
  WorkerRank& operator[](std::int64_t rank) { return *ranks_[static_cast<std::size_t>(rank)]; }
  // Lets a worker do something; it is done when this returns, in whichever process.
  void on(std::int64_t rank, const std::function<void(WorkerRank&)>& body) {
    if (owns(rank)) {
      (*this)[rank].enter();
      body((*this)[rank]);
    }
    meet_processes();
  }
  std::int64_t size() const { return static_cast<std::int64_t>(ranks_.size()); }
  std::string name;

 private:
  Communicator comm_;
  std::vector<std::unique_ptr<WorkerRank>> ranks_;
};

inline std::int64_t align_512(std::int64_t bytes) { return (bytes + 511) / 512 * 512; }

// The windows by their documented layout.
struct FfnLayout {
  Counts counts;  // slot_bytes of the FFN window
  std::int64_t words() const { return 2 + counts.micro_batch_slots(); }
  std::int64_t data_offset() const { return align_512(4 * counts.sessions * counts.micro_batches * words()); }
  std::int32_t* descriptor(const WorkerRank& rank, std::int64_t s, std::int64_t m) const {
    return rank.words() + (s * counts.micro_batches + m) * words();
  }
  unsigned char* slot(const WorkerRank& rank, std::int64_t s, std::int64_t m, std::int64_t t,
                      std::int64_t k) const {
    return rank.window + data_offset() +
           (((s * counts.micro_batches + m) * counts.tokens + t) * counts.slots + k) * counts.slot_bytes;
  }
  void empty(const WorkerRank& rank) const {
    for (std::int64_t s = 0; s < counts.sessions; ++s)
      for (std::int64_t m = 0; m < counts.micro_batches; ++m) {
        std::int32_t* d = descriptor(rank, s, m);
        d[0] = d[1] = 0;
        std::fill_n(d + 2, counts.micro_batch_slots(), kNothingHere);
      }
  }
};
struct AttentionLayout {
  Counts counts;  // slot_bytes of the attention window
  std::int64_t data_offset() const {
    return align_512(4 * counts.micro_batches * counts.micro_batch_slots());
  }
  std::int32_t* flag(const WorkerRank& rank, std::int64_t m, std::int64_t t, std::int64_t k) const {
    return rank.words() + (m * counts.tokens + t) * counts.slots + k;
  }
  unsigned char* slot(const WorkerRank& rank, std::int64_t m, std::int64_t t, std::int64_t k) const {
    return rank.window + data_offset() + ((m * counts.tokens + t) * counts.slots + k) * counts.slot_bytes;
  }
};

// aclnnAttentionToFFN of one attention worker. `counts` describes the FFN windows.
struct SendCall {
  SendCall(Workers& workers, const Counts& counts, std::int64_t hidden, std::int64_t topk,
           std::int64_t experts, std::int64_t quant_mode, Tensor x, Tensor expert_ids, Tensor table)
      : group(workers.name),
        world_size(workers.size()),
        info_shape{counts.sessions, counts.micro_batches, 2 + counts.micro_batch_slots()},
        data_shape{counts.sessions, counts.micro_batches, counts.tokens, counts.slots,
                   counts.slot_bytes / (quant_mode == 2 ? 1 : 2)},
        attention_shape{counts.micro_batches, counts.tokens, counts.slots},
        expert_num(experts),
        quant_mode(quant_mode),
        hidden(hidden),
        topk(topk),
        x(std::move(x)),
        session(Tensor::of<std::int32_t>({1}, {0})),
        micro_batch(Tensor::of<std::int32_t>({1}, {0})),
        layer(Tensor::of<std::int32_t>({1}, {0})),
        expert_ids(std::move(expert_ids)),
        table(std::move(table)) {}

  SendCall& from(std::int32_t s, std::int32_t m, std::int32_t l) {
    session.set(std::vector<std::int32_t>{s});
    micro_batch.set(std::vector<std::int32_t>{m});
    layer.set(std::vector<std::int32_t>{l});
    return *this;
  }
  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    const IntArray info(info_shape), data(data_shape), attention(attention_shape);
    return aclnnAttentionToFFNGetWorkspaceSize(
        x, session, micro_batch, layer, expert_ids, table, handle(scales), handle(mask), group.c_str(),
        world_size, info, data, attention, expert_num, quant_mode, sync_flag, start_rank, size, executor);
  }
  Launched launch(const WorkerRank& rank) {
    return oracle::launch([this](auto* size, auto** executor) { return phase_one(size, executor); },
                          aclnnAttentionToFFN, rank.stream);
  }
  int run(const WorkerRank& rank) {
    const Launched launched = launch(rank);
    return launched.code != 0 ? launched.code : rank.synchronize();
  }

  std::string group;
  std::int64_t world_size;
  std::vector<std::int64_t> info_shape, data_shape, attention_shape;
  std::int64_t expert_num, quant_mode, sync_flag = 0, start_rank = 0;
  std::int64_t hidden, topk;
  Tensor x, session, micro_batch, layer, expert_ids, table;
  std::optional<Tensor> scales, mask;
};

// aclnnFFNToAttention of one FFN worker. `counts` describes the attention windows.
struct ReturnCall {
  ReturnCall(Workers& workers, const Counts& counts, Tensor x)
      : group(workers.name),
        world_size(workers.size()),
        info_shape{counts.micro_batches, counts.tokens, counts.slots},
        data_shape{counts.micro_batches, counts.tokens, counts.slots, counts.slot_bytes / 2},
        x(std::move(x)),
        sessions(Tensor::empty<std::int32_t>({this->x.shape()[0]})),
        micro_batches(Tensor::empty<std::int32_t>({this->x.shape()[0]})),
        tokens(Tensor::empty<std::int32_t>({this->x.shape()[0]})),
        offsets(Tensor::empty<std::int32_t>({this->x.shape()[0]})),
        count(Tensor::of<std::int64_t>({1}, {0})) {}

  int phase_one(std::uint64_t* size, aclOpExecutor** executor) {
    const IntArray info(info_shape), data(data_shape);
    return aclnnFFNToAttentionGetWorkspaceSize(x, sessions, micro_batches, tokens, offsets, count,
                                               handle(table), group.c_str(), world_size, info, data, size,
                                               executor);
  }
  Launched launch(const WorkerRank& rank) {
    return oracle::launch([this](auto* size, auto** executor) { return phase_one(size, executor); },
                          aclnnFFNToAttention, rank.stream);
  }
  int run(const WorkerRank& rank) {
    const Launched launched = launch(rank);
    return launched.code != 0 ? launched.code : rank.synchronize();
  }

  std::string group;
  std::int64_t world_size;
  std::vector<std::int64_t> info_shape, data_shape;
  Tensor x, sessions, micro_batches, tokens, offsets, count;
  std::optional<Tensor> table;
};

}  // namespace oracle
