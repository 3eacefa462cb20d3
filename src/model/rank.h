// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "model/device.h"

namespace moeyard::model {

// Of a pass over the layer; `batch` and `send_back` are steps of FFN workers.
enum class Phase { gate, dispatch, batch, experts, send_back, combine };
inline constexpr int kPhases = 6;
using PhaseTimes = std::array<double, kPhases>;  // in milliseconds, 0 for what a rank has no part in

// One rank: its device's context and stream, its place in the communicator, and what lives as long as its
// queued work.
class Rank {
 public:
  static Result<std::unique_ptr<Rank>> make(int number, int ranks, int device, Communicator communicator);
  ~Rank();

  int number() const { return number_; }
  int ranks() const { return ranks_; }
  const char* group() const { return group_.c_str(); }
  HcclComm communicator() const { return communicator_.get(); }
  aclrtStream stream() const { return stream_.get(); }

  // The rank's context becomes the thread's.
  Status enter() const;
  // Waits for the queued work, then lets go of its handles.
  Status synchronize();
  // The streams of all ranks meet.
  Status meet();
  // Ends this rank's part in the communicator once its queued work is done, so that peers that wait for it hear
  // of it.
  void leave();
  // Drops the queued work and ends what waits on the stream.
  void abort();
  // The communicator's memory on this rank, which peers write to.
  Result<std::span<std::byte>> window();

  // Keep a handle until the next synchronize.
  aclTensor* keep(Tensor tensor);
  aclTensorList* keep(TensorList list);

  // Times on the stream, from begin to end of a phase. After a synchronize, add_times adds what was timed since the
  // last one.
  Status begin(Phase phase) { return record(phase, 0); }
  Status end(Phase phase) { return record(phase, 1); }
  Status add_times(PhaseTimes& times);

  // Queues a copy of all bytes of `from` to the beginning of `to`.
  Status copy(const DeviceTensor& from, const DeviceTensor& to);

  // An operator's two phases: the first one with `arguments`, the second one on the rank's stream.
  template <class... Parameters, class... Arguments>
  Status call(const char* name, aclnnStatus (*plan)(Parameters...),
              aclnnStatus (*run)(void*, std::uint64_t, aclOpExecutor*, aclrtStream), Arguments... arguments) {
    std::uint64_t bytes = 0;
    aclOpExecutor* executor = nullptr;
    MOEYARD_TRY(checked(plan(arguments..., &bytes, &executor), name));
    void* workspace = MOEYARD_TRY(workspace_of(static_cast<std::int64_t>(bytes)));
    return checked(run(workspace, bytes, executor, stream_.get()), name);
  }

 private:
  Rank(int number, int ranks) : number_(number), ranks_(ranks) {}
  Status set_up(int device);
  Status record(Phase phase, int end);
  // The stream runs one operator after the other, so that all of them can share one workspace.
  Result<void*> workspace_of(std::int64_t bytes);

  int number_, ranks_;
  std::string group_;
  Context context_;
  Stream stream_;
  Communicator communicator_;
  std::array<std::array<Event, 2>, kPhases> events_;
  std::array<bool, kPhases> timed_{};
  std::vector<Tensor> tensors_;
  std::vector<TensorList> lists_;
  std::vector<DeviceMemory> workspaces_;  // the last one is in use, earlier ones may be until a synchronize
  std::int64_t workspace_bytes_ = 0;
};

}  // namespace moeyard::model
