// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/rank.h"

#include "model/errors.h"

namespace moeyard::model {

Result<std::unique_ptr<Rank>> Rank::make(int number, int ranks, Communicator communicator) {
  std::unique_ptr<Rank> rank(new Rank(number, ranks));
  rank->communicator_ = std::move(communicator);
  MOEYARD_TRY(rank->set_up());
  return rank;
}

Status Rank::set_up() {
  aclrtContext context = nullptr;
  MOEYARD_TRY(checked(aclrtCreateContext(&context, number_), "aclrtCreateContext"));
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

Result<std::array<double, kPhases>> Rank::milliseconds() const {
  std::array<double, kPhases> times{};
  for (int p = 0; p < kPhases; ++p) {
    if (!timed_[p]) continue;  // a rank without tokens has nothing to gate
    float ms = 0;
    MOEYARD_TRY(checked(aclrtEventElapsedTime(&ms, events_[p][0].get(), events_[p][1].get()),
                        "aclrtEventElapsedTime"));
    times[p] = ms;
  }
  return times;
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
