// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/rank.h"

#include "model/errors.h"

namespace moeyard::model {

Result<std::unique_ptr<Rank>> Rank::make(int number, int ranks, int device, Communicator communicator) {
  std::unique_ptr<Rank> rank(new Rank(number, ranks));
  rank->communicator_ = std::move(communicator);
  MOEYARD_TRY(rank->set_up(device));
  return rank;
}

Status Rank::set_up(int device) {
  aclrtContext context = nullptr;
  MOEYARD_TRY(checked(aclrtCreateContext(&context, device), "aclrtCreateContext"));
  context_.reset(context);
  MOEYARD_TRY(enter());
  aclrtStream stream = nullptr;
  MOEYARD_TRY(checked(aclrtCreateStream(&stream), "aclrtCreateStream"));
  stream_.reset(stream);
  char name[COMM_NAME_MAX_LENGTH] = {};
  MOEYARD_TRY(checked(HcclGetCommName(communicator_.get(), name), "HcclGetCommName"));
  group_ = name;
  for (auto& pair : events_)
    for (Event& event : pair) {
      aclrtEvent made = nullptr;
      MOEYARD_TRY(checked(aclrtCreateEvent(&made), "aclrtCreateEvent"));
      event.reset(made);
    }
  return {};
}

Rank::~Rank() {
  // Streams and memory are given back in their own context, whichever thread does it.
  if (context_ != nullptr) aclrtSetCurrentContext(context_.get());
  if (stream_ != nullptr) aclrtSynchronizeStream(stream_.get());
}

Status Rank::enter() const {
  return checked(aclrtSetCurrentContext(context_.get()), "aclrtSetCurrentContext");
}

Status Rank::synchronize() {
  Status status = checked(aclrtSynchronizeStream(stream_.get()), "aclrtSynchronizeStream");
  tensors_.clear();
  lists_.clear();
  if (workspaces_.size() > 1) workspaces_.erase(workspaces_.begin(), workspaces_.end() - 1);
  return status;
}

void Rank::leave() {
  (void)synchronize();  // a communicator with work in flight stays
  communicator_.reset();
}

void Rank::abort() { (void)aclrtStreamAbort(stream_.get()); }

Result<std::span<std::byte>> Rank::window() {
  void* memory = nullptr;
  std::uint64_t bytes = 0;
  MOEYARD_TRY(checked(HcclGetHcclBuffer(communicator_.get(), &memory, &bytes), "HcclGetHcclBuffer"));
  return std::span(static_cast<std::byte*>(memory), bytes);
}

Status Rank::meet() { return checked(HcclBarrier(communicator_.get(), stream_.get()), "HcclBarrier"); }

aclTensor* Rank::keep(Tensor tensor) {
  tensors_.push_back(std::move(tensor));
  return tensors_.back().get();
}

aclTensorList* Rank::keep(TensorList list) {
  lists_.push_back(std::move(list));
  return lists_.back().get();
}

Status Rank::record(Phase phase, int end) {
  const int index = static_cast<int>(phase);
  timed_[index] = true;
  return checked(aclrtRecordEvent(events_[index][end].get(), stream_.get()), "aclrtRecordEvent");
}

Status Rank::add_times(PhaseTimes& times) {
  for (int p = 0; p < kPhases; ++p) {
    if (!timed_[p]) continue;
    float ms = 0;
    MOEYARD_TRY(checked(aclrtEventElapsedTime(&ms, events_[p][0].get(), events_[p][1].get()),
                        "aclrtEventElapsedTime"));
    times[p] += ms;
    timed_[p] = false;
  }
  return {};
}

Status Rank::copy(const DeviceTensor& from, const DeviceTensor& to) {
  return checked(
      aclrtMemcpyAsync(to.data(), static_cast<std::size_t>(to.bytes()), from.data(),
                       static_cast<std::size_t>(from.bytes()), ACL_MEMCPY_DEVICE_TO_DEVICE, stream_.get()),
      "aclrtMemcpyAsync");
}

Result<void*> Rank::workspace_of(std::int64_t bytes) {
  if (bytes == 0) return nullptr;
  if (bytes > workspace_bytes_) {
    workspaces_.push_back(MOEYARD_TRY(allocate(bytes)));
    workspace_bytes_ = bytes;
  }
  return workspaces_.back().get();
}

}  // namespace moeyard::model
