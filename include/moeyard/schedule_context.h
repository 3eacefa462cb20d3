// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// ScheduleContext: what the operators of attention/FFN disaggregation (AFD) know of their worker.
//
// Attention workers send every token, once per chosen expert, into the windows of FFN workers; FFN workers send
// the results back into the windows of attention workers. A context is 1024 bytes of a worker's device memory:
// it says where its own window is and how it is divided. It is never sent.
//
// Programs for CANN bring their own definition of this structure, so no aclnnop header includes this one. It is
// here for programs that don't want to: the layout, the windows, and what is wrong with a context. How a worker
// begins is in moeyard/schedule_setup.h.
#ifndef MOEYARD_SCHEDULE_CONTEXT_H
#define MOEYARD_SCHEDULE_CONTEXT_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace moeyard {

// Little-endian, without padding. Every *_buf is a device address. A field that nobody mentions keeps its value:
// operators write polling_index, out_num and micro_batch_id, users write run_flag to stop schedulers.
struct ScheduleContext {
  struct Common {
    uint32_t session_num;             // attention workers; a worker's number is its session id
    uint32_t micro_batch_num;         // micro-batches of a session that may be under way
    uint32_t micro_batch_size;        // tokens of a micro-batch
    uint32_t selected_expert_num;     // slots of a token: topK and the shared experts
    uint32_t expert_num;              // experts of a layer; no operator reads it
    uint32_t attn_to_ffn_token_size;  // bytes from slot to slot in the FFN window, a multiple of 512
    uint32_t ffn_to_attn_token_size;  // bytes from slot to slot in the attention window, a multiple of 512
    int32_t schedule_mode;            // 0 FFN worker, 1 attention worker
    int8_t reserve0[96];
  } common;
  struct Control {
    int32_t run_flag;  // 1 running; 0 makes waiting schedulers give up, with success
    int8_t reserve2[124];
  } control;
  struct Attention {
    uint64_t token_info_buf;       // AttentionWindow: a flag per slot
    uint64_t token_info_buf_size;  // bytes
    uint64_t token_data_buf;       // AttentionWindow: the slots
    uint64_t token_data_buf_size;
    uint32_t micro_batch_id;  // the last one that was completed; micro_batch_num - 1 at first
    int8_t reserve5[92];
  } attention;
  struct Ffn {
    uint64_t token_info_buf;  // FfnWindow: a descriptor per session and micro-batch
    uint64_t token_info_buf_size;
    uint64_t token_data_buf;  // FfnWindow: the slots
    uint64_t token_data_buf_size;
    uint64_t polling_index;  // the micro-batch to wait for next; 0 at first
    int8_t reserve3[88];
    uint64_t layer_ids_buf;  // what the scheduler collected: int32 per session
    uint64_t layer_ids_buf_size;
    uint64_t session_ids_buf;  // int32 per session
    uint64_t session_ids_buf_size;
    uint64_t micro_batch_ids_buf;  // int32 per session
    uint64_t micro_batch_ids_buf_size;
    uint64_t expert_ids_buf;  // int32 [session_num][micro_batch_size][selected_expert_num]
    uint64_t expert_ids_buf_size;
    uint32_t out_num;  // sessions collected
    int8_t reserve4[60];
  } ffn;
  int8_t reserve6[384];
};

#define MOEYARD_AT(field, offset) \
  static_assert(offsetof(ScheduleContext, field) == (offset), #field " lies at " #offset)
MOEYARD_AT(common.session_num, 0);
MOEYARD_AT(common.micro_batch_num, 4);
MOEYARD_AT(common.micro_batch_size, 8);
MOEYARD_AT(common.selected_expert_num, 12);
MOEYARD_AT(common.expert_num, 16);
MOEYARD_AT(common.attn_to_ffn_token_size, 20);
MOEYARD_AT(common.ffn_to_attn_token_size, 24);
MOEYARD_AT(common.schedule_mode, 28);
MOEYARD_AT(common.reserve0, 32);
MOEYARD_AT(control.run_flag, 128);
MOEYARD_AT(control.reserve2, 132);
MOEYARD_AT(attention.token_info_buf, 256);
MOEYARD_AT(attention.token_info_buf_size, 264);
MOEYARD_AT(attention.token_data_buf, 272);
MOEYARD_AT(attention.token_data_buf_size, 280);
MOEYARD_AT(attention.micro_batch_id, 288);
MOEYARD_AT(attention.reserve5, 292);
MOEYARD_AT(ffn.token_info_buf, 384);
MOEYARD_AT(ffn.token_info_buf_size, 392);
MOEYARD_AT(ffn.token_data_buf, 400);
MOEYARD_AT(ffn.token_data_buf_size, 408);
MOEYARD_AT(ffn.polling_index, 416);
MOEYARD_AT(ffn.reserve3, 424);
MOEYARD_AT(ffn.layer_ids_buf, 512);
MOEYARD_AT(ffn.layer_ids_buf_size, 520);
MOEYARD_AT(ffn.session_ids_buf, 528);
MOEYARD_AT(ffn.session_ids_buf_size, 536);
MOEYARD_AT(ffn.micro_batch_ids_buf, 544);
MOEYARD_AT(ffn.micro_batch_ids_buf_size, 552);
MOEYARD_AT(ffn.expert_ids_buf, 560);
MOEYARD_AT(ffn.expert_ids_buf_size, 568);
MOEYARD_AT(ffn.out_num, 576);
MOEYARD_AT(ffn.reserve4, 580);
MOEYARD_AT(reserve6, 640);
#undef MOEYARD_AT
static_assert(sizeof(ScheduleContext) == 1024, "a context has 1024 bytes");

// An expert id outside [0, kExpertIdLimit) names no expert: nothing is in that slot. kNoExpert is the usual one.
enum : int32_t { kExpertIdLimit = 1000000, kNoExpert = 0x7FFFFFFF };

namespace detail {
// A product that stops at the largest value instead of wrapping.
inline uint64_t times(uint64_t a, uint64_t b) { return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b; }
inline uint64_t plus(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }
inline uint64_t align_up(uint64_t bytes) {
  return bytes > UINT64_MAX - 511 ? UINT64_MAX : (bytes + 511) / 512 * 512;
}
}  // namespace detail

// ---- The windows. Sizes and offsets are bytes, and UINT64_MAX where they would not fit. -----------------------

// An FFN worker's window: int32 descriptors [sessions][micro_batches][2 + tokens * slots], each
// {flag, layer id, local expert id of every slot}; then, from a multiple of 512 on, the slots
// [sessions][micro_batches][tokens][slots][slot_bytes]. A slot holds H elements of 16 bits, or H bytes and an FP32
// scale right behind them.
struct FfnWindow {
  uint64_t sessions, micro_batches, tokens, slots, slot_bytes;

  uint64_t slots_of_descriptor() const { return detail::times(tokens, slots); }
  uint64_t descriptor_bytes() const { return detail::times(detail::plus(slots_of_descriptor(), 2), 4); }
  uint64_t info_bytes() const {
    return detail::times(detail::times(sessions, micro_batches), descriptor_bytes());
  }
  uint64_t data_offset() const { return detail::align_up(info_bytes()); }
  uint64_t data_bytes() const {
    return detail::times(detail::times(detail::times(sessions, micro_batches), slots_of_descriptor()),
                         slot_bytes);
  }
  uint64_t bytes() const { return detail::plus(data_offset(), data_bytes()); }
  uint64_t descriptor(uint64_t session, uint64_t micro_batch) const {  // from the window's begin
    return (session * micro_batches + micro_batch) * descriptor_bytes();
  }
  uint64_t slot(uint64_t session, uint64_t micro_batch, uint64_t token,
                uint64_t k) const {  // from the data's begin
    return (((session * micro_batches + micro_batch) * tokens + token) * slots + k) * slot_bytes;
  }
};

// An attention worker's window: an int32 flag per slot [micro_batches][tokens][slots]; then, from a multiple of 512
// on, the slots [micro_batches][tokens][slots][slot_bytes], H elements of 16 bits each. aclnnAttentionWorkerCombine
// takes slots to be H * 2 bytes apart.
struct AttentionWindow {
  uint64_t micro_batches, tokens, slots, slot_bytes;

  uint64_t flags_of_micro_batch() const { return detail::times(tokens, slots); }
  uint64_t info_bytes() const {
    return detail::times(detail::times(micro_batches, flags_of_micro_batch()), 4);
  }
  uint64_t data_offset() const { return detail::align_up(info_bytes()); }
  uint64_t data_bytes() const {
    return detail::times(detail::times(micro_batches, flags_of_micro_batch()), slot_bytes);
  }
  uint64_t bytes() const { return detail::plus(data_offset(), data_bytes()); }
  uint64_t flag(uint64_t micro_batch, uint64_t token, uint64_t k) const {  // from the window's begin
    return ((micro_batch * tokens + token) * slots + k) * 4;
  }
  uint64_t slot(uint64_t micro_batch, uint64_t token, uint64_t k) const {  // from the data's begin
    return ((micro_batch * tokens + token) * slots + k) * slot_bytes;
  }
};

inline FfnWindow ffn_window(const ScheduleContext& context) {
  const ScheduleContext::Common& c = context.common;
  return {c.session_num, c.micro_batch_num, c.micro_batch_size, c.selected_expert_num,
          c.attn_to_ffn_token_size};
}
inline AttentionWindow attention_window(const ScheduleContext& context) {
  const ScheduleContext::Common& c = context.common;
  return {c.micro_batch_num, c.micro_batch_size, c.selected_expert_num, c.ffn_to_attn_token_size};
}

// ---- What is wrong with a context ------------------------------------------------------------------------------

enum class ScheduleUse {
  ffn_scheduler,            // aclnnInplaceFfnWorkerScheduler
  ffn_batching,             // aclnnFfnWorkerBatching, needSchedule 0
  ffn_batching_fused,       // needSchedule 1
  attention_scheduler,      // aclnnInplaceAttentionWorkerScheduler
  attention_combine,        // aclnnAttentionWorkerCombine, needSchedule 0
  attention_combine_fused,  // needSchedule 1
};

namespace detail {

// Collects the first broken rule as "<field> is <value> but must <rule>".
class ContextProblem {
 public:
  void must(bool holds, const char* field, uint64_t value, const std::string& rule) {
    if (holds || !text_.empty()) return;
    text_ = std::string(field) + " is " + std::to_string(value) + " but must " + rule;
  }
  void positive(const char* field, uint64_t value) { must(value > 0, field, value, "be above 0"); }
  void up_to(const char* field, uint64_t value, uint64_t most) {
    must(0 < value && value <= most, field, value, "be in [1, " + std::to_string(most) + "]");
  }
  void address(const char* field, uint64_t value) { must(value != 0, field, value, "be a device address"); }
  void below(const char* field, uint64_t value, const char* limit_field, uint64_t limit) {
    must(value < limit, field, value, std::string("be below ") + limit_field + ", " + std::to_string(limit));
  }
  void room(const char* field, uint64_t value, uint64_t needed) {
    must(value >= needed, field, value,
         needed == UINT64_MAX ? "be more than any memory has, as the counts in common are too large"
                              : "be at least " + std::to_string(needed) + " for the counts in common");
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

inline void check_ffn_scheduler(const ScheduleContext& c, ContextProblem* p) {
  p->must(c.common.schedule_mode == 0, "common.schedule_mode", static_cast<uint32_t>(c.common.schedule_mode),
          "be 0 for an FFN worker");
  p->positive("common.session_num", c.common.session_num);
  p->positive("common.micro_batch_num", c.common.micro_batch_num);
  p->positive("common.micro_batch_size", c.common.micro_batch_size);
  p->positive("common.selected_expert_num", c.common.selected_expert_num);
  p->address("ffn.token_info_buf", c.ffn.token_info_buf);
  p->address("ffn.token_data_buf", c.ffn.token_data_buf);
  p->address("ffn.layer_ids_buf", c.ffn.layer_ids_buf);
  p->address("ffn.session_ids_buf", c.ffn.session_ids_buf);
  p->address("ffn.micro_batch_ids_buf", c.ffn.micro_batch_ids_buf);
  p->address("ffn.expert_ids_buf", c.ffn.expert_ids_buf);
  const FfnWindow window = ffn_window(c);
  const uint64_t ids_bytes = times(window.sessions, 4);
  p->room("ffn.token_info_buf_size", c.ffn.token_info_buf_size, window.info_bytes());
  p->room("ffn.layer_ids_buf_size", c.ffn.layer_ids_buf_size, ids_bytes);
  p->room("ffn.session_ids_buf_size", c.ffn.session_ids_buf_size, ids_bytes);
  p->room("ffn.micro_batch_ids_buf_size", c.ffn.micro_batch_ids_buf_size, ids_bytes);
  p->room("ffn.expert_ids_buf_size", c.ffn.expert_ids_buf_size,
          times(ids_bytes, window.slots_of_descriptor()));
  p->below("ffn.polling_index", c.ffn.polling_index, "common.micro_batch_num", c.common.micro_batch_num);
}

inline void check_ffn_batching(const ScheduleContext& c, bool fused, ContextProblem* p) {
  if (fused || c.ffn.out_num != 0 || c.common.session_num != 0)
    p->up_to("common.session_num", c.common.session_num, 1024);
  p->up_to("common.micro_batch_num", c.common.micro_batch_num, 64);
  p->positive("common.micro_batch_size", c.common.micro_batch_size);
  p->up_to("common.selected_expert_num", c.common.selected_expert_num, 64);
  if (fused) {
    p->address("ffn.token_info_buf", c.ffn.token_info_buf);
    if (c.ffn.token_info_buf_size != 0)
      p->room("ffn.token_info_buf_size", c.ffn.token_info_buf_size, ffn_window(c).info_bytes());
    p->below("ffn.polling_index", c.ffn.polling_index, "common.micro_batch_num", c.common.micro_batch_num);
    return;
  }
  p->must(c.ffn.out_num <= c.common.session_num, "ffn.out_num", c.ffn.out_num,
          "be at most common.session_num, " + std::to_string(c.common.session_num));
  if (c.ffn.out_num == 0) return;
  p->address("ffn.session_ids_buf", c.ffn.session_ids_buf);
  p->address("ffn.micro_batch_ids_buf", c.ffn.micro_batch_ids_buf);
  p->address("ffn.expert_ids_buf", c.ffn.expert_ids_buf);
}

inline void check_attention_scheduler(const ScheduleContext& c, ContextProblem* p) {
  p->must(c.common.schedule_mode == 1, "common.schedule_mode", static_cast<uint32_t>(c.common.schedule_mode),
          "be 1 for an attention worker");
  p->positive("common.micro_batch_num", c.common.micro_batch_num);
  p->positive("common.micro_batch_size", c.common.micro_batch_size);
  p->positive("common.selected_expert_num", c.common.selected_expert_num);
  p->address("attention.token_info_buf", c.attention.token_info_buf);
  p->address("attention.token_data_buf", c.attention.token_data_buf);
  p->room("attention.token_info_buf_size", c.attention.token_info_buf_size, attention_window(c).info_bytes());
  p->below("attention.micro_batch_id", c.attention.micro_batch_id, "common.micro_batch_num",
           c.common.micro_batch_num);
}

inline void check_attention_combine(const ScheduleContext& c, bool fused, ContextProblem* p) {
  if (fused) {
    p->positive("common.micro_batch_num", c.common.micro_batch_num);
    p->address("attention.token_info_buf", c.attention.token_info_buf);
  }
  p->address("attention.token_data_buf", c.attention.token_data_buf);
  if (fused || c.common.micro_batch_num != 0)
    p->below("attention.micro_batch_id", c.attention.micro_batch_id, "common.micro_batch_num",
             c.common.micro_batch_num);
}

}  // namespace detail

// Empty if an operator may use the context, else the first rule that it breaks, with the field that breaks it:
// "ffn.polling_index is 2 but must be below common.micro_batch_num, 2". Looks at the context alone; whether its
// addresses are device memory of that size the operators check.
inline std::string schedule_context_problem(const ScheduleContext& context, ScheduleUse use) {
  detail::ContextProblem problem;
  switch (use) {
    case ScheduleUse::ffn_scheduler:
      detail::check_ffn_scheduler(context, &problem);
      break;
    case ScheduleUse::ffn_batching:
    case ScheduleUse::ffn_batching_fused:
      detail::check_ffn_batching(context, use == ScheduleUse::ffn_batching_fused, &problem);
      break;
    case ScheduleUse::attention_scheduler:
      detail::check_attention_scheduler(context, &problem);
      break;
    case ScheduleUse::attention_combine:
    case ScheduleUse::attention_combine_fused:
      detail::check_attention_combine(context, use == ScheduleUse::attention_combine_fused, &problem);
      break;
  }
  return problem.text();
}

}  // namespace moeyard

#endif
