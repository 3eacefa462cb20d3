// Moeyard. SPDX-License-Identifier: Apache-2.0
// Workers of attention/FFN disaggregation as a test sees them: the context and the windows by their documented
// offsets, sharing nothing with moeyard/schedule_context.h.
#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

#include "support/device.h"

namespace oracle {

// Offsets of a context's fields.
enum ContextField : std::size_t {
  kSessionNum = 0,
  kMicroBatchNum = 4,
  kMicroBatchSize = 8,
  kSelectedExpertNum = 12,
  kExpertNum = 16,
  kAttnToFfnTokenSize = 20,
  kFfnToAttnTokenSize = 24,
  kScheduleMode = 28,
  kRunFlag = 128,
  kAttentionInfo = 256,
  kAttentionInfoSize = 264,
  kAttentionData = 272,
  kAttentionDataSize = 280,
  kMicroBatchId = 288,
  kFfnInfo = 384,
  kFfnInfoSize = 392,
  kFfnData = 400,
  kFfnDataSize = 408,
  kPollingIndex = 416,
  kLayerIds = 512,
  kLayerIdsSize = 520,
  kSessionIds = 528,
  kSessionIdsSize = 536,
  kMicroBatchIds = 544,
  kMicroBatchIdsSize = 552,
  kExpertIds = 560,
  kExpertIdsSize = 568,
  kOutNum = 576,
};

constexpr std::int32_t kNothingHere = 0x7FFFFFFF;

// A context in device memory; every byte that no field takes holds a pattern of its own.
class Context {
 public:
  Context() : tensor_(Tensor::empty<std::int8_t>({1024})) {
    for (std::size_t i = 0; i < 1024; ++i) bytes()[i] = reserved(i);
    for (std::size_t field = 0; field <= kScheduleMode; field += 4) set<std::uint32_t>(field, 0);
    set<std::int32_t>(kRunFlag, 1);
    for (std::size_t field = kAttentionInfo; field <= kAttentionDataSize; field += 8)
      set<std::uint64_t>(field, 0);
    set<std::uint32_t>(kMicroBatchId, 0);
    for (std::size_t field = kFfnInfo; field <= kPollingIndex; field += 8) set<std::uint64_t>(field, 0);
    for (std::size_t field = kLayerIds; field <= kExpertIdsSize; field += 8) set<std::uint64_t>(field, 0);
    set<std::uint32_t>(kOutNum, 0);
  }
  operator aclTensor*() const { return tensor_; }
  Tensor& tensor() { return tensor_; }

  template <class T>
  void set(std::size_t field, T value) {
    std::memcpy(bytes() + field, &value, sizeof value);
  }
  void point(std::size_t field, const void* address, std::uint64_t size) {
    set<std::uint64_t>(field, reinterpret_cast<std::uintptr_t>(address));
    set<std::uint64_t>(field + 8, size);
  }
  std::uint32_t u32(std::size_t field) const { return get<std::uint32_t>(field); }
  std::uint64_t u64(std::size_t field) const { return get<std::uint64_t>(field); }
  std::vector<unsigned char> image() const { return {bytes(), bytes() + 1024}; }

  // As a program stops a worker: a copy of four bytes.
  void stop() {
    const std::int32_t stopped = 0;
    EXPECT_EQ(aclrtMemcpy(bytes() + kRunFlag, 4, &stopped, 4, ACL_MEMCPY_HOST_TO_DEVICE), 0);
  }

 private:
  static unsigned char reserved(std::size_t i) { return static_cast<unsigned char>(0x80 + i % 61); }
  unsigned char* bytes() const { return static_cast<unsigned char*>(tensor_.memory()); }
  template <class T>
  T get(std::size_t field) const {
    T value;
    std::memcpy(&value, bytes() + field, sizeof value);
    return value;
  }
  Tensor tensor_;
};

inline std::int32_t load_word(const std::int32_t* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
inline void store_word(std::int32_t* word, std::int32_t value) {
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

// Counts of a deployment.
struct Counts {
  std::int64_t sessions = 1, micro_batches = 1, tokens = 1, slots = 1;
  std::int64_t slot_bytes = 512;

  std::int64_t micro_batch_slots() const { return tokens * slots; }
  std::int64_t all_slots() const { return sessions * micro_batches * micro_batch_slots(); }
};

inline void set_counts(Context& context, const Counts& c) {
  context.set<std::uint32_t>(kSessionNum, static_cast<std::uint32_t>(c.sessions));
  context.set<std::uint32_t>(kMicroBatchNum, static_cast<std::uint32_t>(c.micro_batches));
  context.set<std::uint32_t>(kMicroBatchSize, static_cast<std::uint32_t>(c.tokens));
  context.set<std::uint32_t>(kSelectedExpertNum, static_cast<std::uint32_t>(c.slots));
}

// An FFN worker: its window (descriptors and slots), what its scheduler collects, its context.
class FfnSide {
 public:
  explicit FfnSide(const Counts& counts)
      : counts(counts),
        words(2 + counts.micro_batch_slots()),
        info(Tensor::empty<std::int32_t>({counts.sessions * counts.micro_batches * words})),
        data(Tensor::empty<std::int8_t>({counts.all_slots() * counts.slot_bytes})),
        layer_ids(Tensor::empty<std::int32_t>({counts.sessions})),
        session_ids(Tensor::empty<std::int32_t>({counts.sessions})),
        micro_batch_ids(Tensor::empty<std::int32_t>({counts.sessions})),
        expert_ids(Tensor::empty<std::int32_t>({counts.sessions * counts.micro_batch_slots()})) {
    for (std::int64_t s = 0; s < counts.sessions; ++s)
      for (std::int64_t m = 0; m < counts.micro_batches; ++m) {
        std::int32_t* d = descriptor(s, m);
        d[0] = d[1] = 0;
        std::fill_n(d + 2, counts.micro_batch_slots(), kNothingHere);
      }
    set_counts(context, counts);
    context.set<std::uint32_t>(kAttnToFfnTokenSize, static_cast<std::uint32_t>(counts.slot_bytes));
    context.point(kFfnInfo, info.memory(), info.bytes());
    context.point(kFfnData, data.memory(), data.bytes());
    context.point(kLayerIds, layer_ids.memory(), layer_ids.bytes());
    context.point(kSessionIds, session_ids.memory(), session_ids.bytes());
    context.point(kMicroBatchIds, micro_batch_ids.memory(), micro_batch_ids.bytes());
    context.point(kExpertIds, expert_ids.memory(), expert_ids.bytes());
  }

  std::int32_t* descriptor(std::int64_t s, std::int64_t m) const {
    return static_cast<std::int32_t*>(info.memory()) + (s * counts.micro_batches + m) * words;
  }
  unsigned char* slot(std::int64_t s, std::int64_t m, std::int64_t t, std::int64_t k) const {
    return static_cast<unsigned char*>(data.memory()) +
           (((s * counts.micro_batches + m) * counts.tokens + t) * counts.slots + k) * counts.slot_bytes;
  }
  // What a sender does last.
  void post(std::int64_t s, std::int64_t m, std::int32_t layer, const std::vector<std::int32_t>& ids) {
    std::int32_t* d = descriptor(s, m);
    std::copy(ids.begin(), ids.end(), d + 2);
    d[1] = layer;
    store_word(d, 1);
  }
  std::vector<std::int32_t> descriptor_words(std::int64_t s, std::int64_t m) const {
    return {descriptor(s, m), descriptor(s, m) + words};
  }

  // Everything that operators could change.
  std::vector<std::vector<unsigned char>> image() const {
    std::vector<std::vector<unsigned char>> all{context.image()};
    for (const Tensor* tensor : {&info, &data, &layer_ids, &session_ids, &micro_batch_ids, &expert_ids}) {
      const auto* bytes = static_cast<const unsigned char*>(tensor->memory());
      all.emplace_back(bytes, bytes + tensor->bytes());
    }
    return all;
  }

  const Counts counts;
  const std::int64_t words;  // of a descriptor
  Tensor info, data, layer_ids, session_ids, micro_batch_ids, expert_ids;
  Context context;
};

// An attention worker: its window (a flag per slot, and the slots), its context.
class AttentionSide {
 public:
  explicit AttentionSide(const Counts& counts)
      : counts(counts),
        flags(Tensor::empty<std::int32_t>({counts.micro_batches * counts.micro_batch_slots()})),
        data(Tensor::empty<std::int8_t>(
            {counts.micro_batches * counts.micro_batch_slots() * counts.slot_bytes})) {
    std::memset(flags.memory(), 0, flags.bytes());
    set_counts(context, counts);
    context.set<std::uint32_t>(kFfnToAttnTokenSize, static_cast<std::uint32_t>(counts.slot_bytes));
    context.set<std::int32_t>(kScheduleMode, 1);
    context.point(kAttentionInfo, flags.memory(), flags.bytes());
    context.point(kAttentionData, data.memory(), data.bytes());
    context.set<std::uint32_t>(kMicroBatchId, static_cast<std::uint32_t>(counts.micro_batches - 1));
  }

  std::int32_t* flag(std::int64_t m, std::int64_t t, std::int64_t k) const {
    return static_cast<std::int32_t*>(flags.memory()) + (m * counts.tokens + t) * counts.slots + k;
  }
  unsigned char* slot(std::int64_t m, std::int64_t t, std::int64_t k) const {
    return static_cast<unsigned char*>(data.memory()) +
           ((m * counts.tokens + t) * counts.slots + k) * counts.slot_bytes;
  }
  void set_flags(std::int64_t m, std::int32_t value) {
    for (std::int64_t i = 0; i < counts.micro_batch_slots(); ++i) store_word(flag(m, 0, 0) + i, value);
  }
  std::vector<std::vector<unsigned char>> image() const {
    std::vector<std::vector<unsigned char>> all{context.image()};
    for (const Tensor* tensor : {&flags, &data}) {
      const auto* bytes = static_cast<const unsigned char*>(tensor->memory());
      all.emplace_back(bytes, bytes + tensor->bytes());
    }
    return all;
  }

  const Counts counts;
  Tensor flags, data;
  Context context;
};

}  // namespace oracle
