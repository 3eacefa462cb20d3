// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "aclnn/acl_meta.h"
#include "model/job.h"
#include "model/rank.h"
#include "moeyard/schedule_setup.h"

namespace moeyard::model {

using IntArray = std::unique_ptr<aclIntArray, Release<aclDestroyIntArray>>;
IntArray int_array(std::initializer_list<std::int64_t> values);

// The sizes that attention workers and FFN workers agree on.
struct WorkerShape {
  explicit WorkerShape(const Job& job);

  ScheduleShape schedule() const;
  std::int64_t window_mebibytes() const;                // what the larger of both kinds of windows needs
  std::int64_t rows() const { return tokens * slots; }  // of a micro-batch
  // Sizes of the parts of a window, as the operators that write to it take them.
  IntArray ffn_info() const { return int_array({sessions, micro_batches, 2 + rows()}); }
  IntArray ffn_data() const { return int_array({sessions, micro_batches, tokens, slots, hidden}); }
  IntArray attention_info() const { return int_array({micro_batches, tokens, slots}); }
  IntArray attention_data() const { return int_array({micro_batches, tokens, slots, hidden}); }

  std::int64_t sessions, micro_batches, tokens;  // attention workers; under way; in one micro-batch
  std::int64_t hidden, experts;
  std::int64_t slots;          // of a token: its experts and the shared one
  std::int64_t local_experts;  // of an FFN worker: its instances and the shared one
};

// A rank's window and ScheduleContext.
class WorkerContext {
 public:
  static Result<WorkerContext> make(const Job& job, Rank& rank);
  // Back to the beginning: nothing under way, not stopped.
  Status begin();
  // Ends the schedulers that wait on the context, and every later one. Called by any thread.
  Status stop() const;
  Result<ScheduleContext> read() const;
  aclTensor* get() const { return context_.get(); }

 private:
  explicit WorkerContext(const Job& job) : shape_(job) {}
  WorkerShape shape_;
  bool attention_ = false;
  std::span<std::byte> window_;
  DeviceTensor context_, collected_;
};

}  // namespace moeyard::model
