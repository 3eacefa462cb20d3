// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// How a worker of attention/FFN disaggregation begins: divides its window (HcclGetHcclBuffer), prepares it and fills
// its context. Copy the context into an INT8 tensor of 1024 elements, and store 0 in its run_flag there to stop.
// C++11; needs libascendcl.
#ifndef MOEYARD_SCHEDULE_SETUP_H
#define MOEYARD_SCHEDULE_SETUP_H

#include <cstdint>
#include <string>
#include <vector>

#include "acl/acl_rt.h"
#include "moeyard/schedule_context.h"

namespace moeyard {

// What all workers of one deployment agree on; the fields of ScheduleContext::Common, in their order.
struct ScheduleShape {
  uint32_t sessions, micro_batches, tokens, slots, experts;
  uint32_t ffn_slot_bytes;        // multiples of 512
  uint32_t attention_slot_bytes;  // H * 2, if aclnnAttentionWorkerCombine is to read the slots
};

namespace detail {

inline std::string shape_problem(const ScheduleShape& s) {
  ContextProblem problem;
  problem.positive("sessions", s.sessions);
  problem.positive("micro_batches", s.micro_batches);
  problem.positive("tokens", s.tokens);
  problem.positive("slots", s.slots);
  problem.positive("experts", s.experts);
  problem.must(s.ffn_slot_bytes > 0 && s.ffn_slot_bytes % 512 == 0, "ffn_slot_bytes", s.ffn_slot_bytes,
               "be a multiple of 512");
  problem.must(s.attention_slot_bytes > 0 && s.attention_slot_bytes % 512 == 0, "attention_slot_bytes",
               s.attention_slot_bytes, "be a multiple of 512");
  return problem.text();
}

template <class Window>
std::string window_problem(const Window& window, const void* begin, uint64_t bytes) {
  ContextProblem problem;
  problem.must(begin != nullptr, "window", 0, "be device memory");
  problem.room("window_bytes", bytes, window.bytes());
  return problem.text();
}

inline std::string fill(void* device, const std::vector<int32_t>& words) {
  const uint64_t bytes = words.size() * sizeof(int32_t);
  const aclError code = aclrtMemcpy(device, bytes, words.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE);
  if (code == ACL_SUCCESS) return std::string();
  return "the window could not be written: aclrtMemcpy returned " + std::to_string(code);
}

inline ScheduleContext begin_context(const ScheduleShape& s, int32_t mode) {
  ScheduleContext context = ScheduleContext();
  context.common.session_num = s.sessions;
  context.common.micro_batch_num = s.micro_batches;
  context.common.micro_batch_size = s.tokens;
  context.common.selected_expert_num = s.slots;
  context.common.expert_num = s.experts;
  context.common.attn_to_ffn_token_size = s.ffn_slot_bytes;
  context.common.ffn_to_attn_token_size = s.attention_slot_bytes;
  context.common.schedule_mode = mode;
  context.control.run_flag = 1;
  return context;
}

}  // namespace detail

// Bytes of device memory that an FFN worker's scheduler collects into.
inline uint64_t collected_bytes(const ScheduleShape& s) {
  return detail::times(detail::times(s.sessions, 4), detail::plus(3, detail::times(s.tokens, s.slots)));
}

// Begins an FFN worker: descriptors empty, all expert ids kNoExpert (senders write only the slots that they route
// here). `collected` has collected_bytes(shape). Returns an empty text, or what is wrong; then nothing was changed.
inline std::string begin_ffn_worker(const ScheduleShape& shape, void* window, uint64_t window_bytes,
                                    void* collected, ScheduleContext* context) {
  std::string problem = detail::shape_problem(shape);
  const FfnWindow layout = {shape.sessions, shape.micro_batches, shape.tokens, shape.slots,
                            shape.ffn_slot_bytes};
  if (problem.empty()) problem = detail::window_problem(layout, window, window_bytes);
  if (problem.empty() && collected == nullptr) problem = "collected is null but must be device memory";
  if (!problem.empty()) return problem;

  const uint64_t words = layout.descriptor_bytes() / 4;
  std::vector<int32_t> descriptors(layout.info_bytes() / 4, kNoExpert);
  for (uint64_t i = 0; i < descriptors.size(); i += words) descriptors[i] = descriptors[i + 1] = 0;
  problem = detail::fill(window, descriptors);
  if (!problem.empty()) return problem;

  *context = detail::begin_context(shape, 0);
  ScheduleContext::Ffn& ffn = context->ffn;
  const uint64_t base = reinterpret_cast<uintptr_t>(window);
  ffn.token_info_buf = base;
  ffn.token_info_buf_size = layout.info_bytes();
  ffn.token_data_buf = base + layout.data_offset();
  ffn.token_data_buf_size = window_bytes - layout.data_offset();
  const uint64_t ids_bytes = UINT64_C(4) * shape.sessions;
  const uint64_t out = reinterpret_cast<uintptr_t>(collected);
  ffn.layer_ids_buf = out;
  ffn.session_ids_buf = out + ids_bytes;
  ffn.micro_batch_ids_buf = out + 2 * ids_bytes;
  ffn.expert_ids_buf = out + 3 * ids_bytes;
  ffn.layer_ids_buf_size = ffn.session_ids_buf_size = ffn.micro_batch_ids_buf_size = ids_bytes;
  ffn.expert_ids_buf_size = ids_bytes * layout.slots_of_descriptor();
  return problem;
}

// Begins an attention worker: no flag is set, and micro-batch 0 is the next to be completed.
inline std::string begin_attention_worker(const ScheduleShape& shape, void* window, uint64_t window_bytes,
                                          ScheduleContext* context) {
  std::string problem = detail::shape_problem(shape);
  const AttentionWindow layout = {shape.micro_batches, shape.tokens, shape.slots, shape.attention_slot_bytes};
  if (problem.empty()) problem = detail::window_problem(layout, window, window_bytes);
  if (problem.empty()) problem = detail::fill(window, std::vector<int32_t>(layout.info_bytes() / 4, 0));
  if (!problem.empty()) return problem;

  *context = detail::begin_context(shape, 1);
  const uint64_t base = reinterpret_cast<uintptr_t>(window);
  context->attention.token_info_buf = base;
  context->attention.token_info_buf_size = layout.info_bytes();
  context->attention.token_data_buf = base + layout.data_offset();
  context->attention.token_data_buf_size = window_bytes - layout.data_offset();
  context->attention.micro_batch_id = shape.micro_batches - 1;
  return problem;
}

}  // namespace moeyard

#endif
