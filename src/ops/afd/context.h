// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// How operators of attention/FFN disaggregation read and write the ScheduleContext of their worker.
#pragma once
#include <cstdint>

#include "base/status.h"
#include "base/tensor_view.h"
#include "moeyard/schedule_context.h"

namespace moeyard::ops {

inline constexpr std::int64_t kContextBytes = sizeof(ScheduleContext);

// A context in device memory. What other tasks or the program change while an operator runs is read and written
// atomically; the rest is read as it is when the operator runs, never in phase one.
class ContextRef {
 public:
  explicit ContextRef(const TensorView& tensor) : base_(tensor.begin()) {}

  ScheduleContext load() const;
  bool stopped() const {
    return __atomic_load_n(at<std::int32_t>(offsetof(ScheduleContext, control.run_flag)), __ATOMIC_ACQUIRE) ==
           0;
  }
  void set_polling_index(std::uint64_t value) const {
    __atomic_store_n(at<std::uint64_t>(offsetof(ScheduleContext, ffn.polling_index)), value,
                     __ATOMIC_RELAXED);
  }
  void set_out_num(std::uint32_t value) const {
    __atomic_store_n(at<std::uint32_t>(offsetof(ScheduleContext, ffn.out_num)), value, __ATOMIC_RELAXED);
  }
  void set_micro_batch_id(std::uint32_t value) const {
    __atomic_store_n(at<std::uint32_t>(offsetof(ScheduleContext, attention.micro_batch_id)), value,
                     __ATOMIC_RELAXED);
  }

 private:
  template <class T>
  T* at(std::size_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }
  std::byte* base_;
};

// Whether a tensor can hold a context: aligned for its largest field. True as long as its address is not known.
inline bool is_context_aligned(const TensorView& tensor) {
  return tensor.data == nullptr ||
         reinterpret_cast<std::uintptr_t>(tensor.begin()) % alignof(ScheduleContext) == 0;
}

// Who reads a context: messages and codes of its operator.
struct ContextReader {
  const char* function;
  int device;
  std::int32_t code;  // of the stream, for a context that cannot be used

  // The context, or what is wrong with it: its tensor or one of its fields.
  Result<ScheduleContext> load(const TensorView& tensor, ScheduleUse use) const;

  // Whether [address, address + bytes) is memory of the device, aligned for int32. `field` leads the message.
  Status check_memory(const char* field, std::uint64_t address, std::uint64_t bytes) const;

  Status wrong(const std::string& text) const;
};

inline std::int32_t* words_at(std::uint64_t address) { return reinterpret_cast<std::int32_t*>(address); }

inline bool names_expert(std::int32_t id) {
  return static_cast<std::uint32_t>(id) < static_cast<std::uint32_t>(kExpertIdLimit);
}

// A flag of a window: 1 says that what it stands for is there.
inline bool is_set(const std::int32_t* flag) { return __atomic_load_n(flag, __ATOMIC_ACQUIRE) == 1; }
inline void set_flag(std::int32_t* flag, std::int32_t value) {
  __atomic_store_n(flag, value, __ATOMIC_RELEASE);
}

}  // namespace moeyard::ops
