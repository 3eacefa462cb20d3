// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/worker.h"

#include "model/errors.h"

namespace moeyard::model {

IntArray int_array(std::initializer_list<std::int64_t> values) {
  return IntArray(aclCreateIntArray(values.begin(), values.size()));
}

WorkerShape::WorkerShape(const Job& job)
    : sessions(job.afd->attention_workers),
      micro_batches(job.afd->micro_batches),
      tokens(job.afd->micro_batch_tokens),
      hidden(job.layer.config.hidden),
      experts(job.layer.config.experts),
      slots(job.layer.config.topk + (job.layer.shared ? 1 : 0)),
      local_experts(job.local_instances() + (job.layer.shared ? 1 : 0)) {}

ScheduleShape WorkerShape::schedule() const {
  const auto size = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
  return {size(sessions), size(micro_batches), size(tokens),    size(slots),
          size(experts),  size(2 * hidden),    size(2 * hidden)};
}

std::int64_t WorkerShape::window_mebibytes() const {
  const ScheduleShape s = schedule();
  const FfnWindow ffn = {s.sessions, s.micro_batches, s.tokens, s.slots, s.ffn_slot_bytes};
  const AttentionWindow attention = {s.micro_batches, s.tokens, s.slots, s.attention_slot_bytes};
  // The operators count whole mebibytes, and one more.
  return static_cast<std::int64_t>(std::max(ffn.bytes(), attention.bytes()) >> 20) + 2;
}

Result<WorkerContext> WorkerContext::make(const Job& job, Rank& rank) {
  WorkerContext made(job);
  made.attention_ = rank.number() < job.first_expert_rank();
  made.window_ = MOEYARD_TRY(rank.window());
  made.context_ =
      MOEYARD_TRY(DeviceTensor::make(ACL_INT8, {static_cast<std::int64_t>(sizeof(ScheduleContext))}));
  if (!made.attention_)
    made.collected_ = MOEYARD_TRY(
        DeviceTensor::make(ACL_INT8, {static_cast<std::int64_t>(collected_bytes(made.shape_.schedule()))}));
  return made;
}

Status WorkerContext::begin() {
  ScheduleContext begin;
  const std::string problem =
      attention_
          ? begin_attention_worker(shape_.schedule(), window_.data(), window_.size(), &begin)
          : begin_ffn_worker(shape_.schedule(), window_.data(), window_.size(), collected_.data(), &begin);
  if (!problem.empty()) return run_failed("{}; HCCL_BUFFSIZE sets the size of the window", problem);
  return context_.upload(std::as_bytes(std::span(&begin, 1)), 0);
}

Status WorkerContext::stop() const {
  const std::int32_t stopped = 0;
  return context_.upload(std::as_bytes(std::span(&stopped, 1)), offsetof(ScheduleContext, control.run_flag));
}

Result<ScheduleContext> WorkerContext::read() const {
  ScheduleContext context;
  MOEYARD_TRY(context_.download(std::as_writable_bytes(std::span(&context, 1))));
  return context;
}

}  // namespace moeyard::model
