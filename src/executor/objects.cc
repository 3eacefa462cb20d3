// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "executor/objects.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <unordered_set>

#include "base/numbers.h"

namespace moeyard {
namespace {

// Sharded, so that many rank threads creating tensors don't meet on one lock.
struct alignas(64) HandleShard {
  std::mutex mutex;
  std::unordered_set<const void*> live;
};

HandleShard& shard_of(const void* handle) {
  static auto* shards = new std::array<HandleShard, 16>;  // handles outlive static objects of the program
  return (*shards)[(reinterpret_cast<std::uintptr_t>(handle) >> 6) % shards->size()];
}

}  // namespace

TensorView view(const aclTensor* tensor) {
  TensorView seen;
  if (tensor == nullptr) return seen;
  seen.data = static_cast<std::byte*>(tensor->data);
  seen.dtype = tensor->dtype;
  seen.format = tensor->format;
  seen.rank = tensor->view_rank;
  seen.offset = tensor->offset;
  const int stored = std::min(tensor->view_rank, kMaxRank);
  std::copy_n(tensor->view_dims, stored, seen.shape);
  std::copy_n(tensor->strides, stored, seen.strides);
  return seen;
}

namespace {

template <class T>
T value_of(const aclScalar& scalar) {
  T value;
  std::memcpy(&value, scalar.value, sizeof value);
  return value;
}

ScalarView number(double value) { return {.given = true, .is_number = true, .number = value}; }

}  // namespace

ScalarView view(const aclScalar* scalar) {
  if (scalar == nullptr) return {};
  switch (scalar->dtype) {
    case ACL_FLOAT:
      return number(value_of<float>(*scalar));
    case ACL_DOUBLE:
      return number(value_of<double>(*scalar));
    case ACL_FLOAT16:
      return number(to_float(value_of<Fp16>(*scalar)));
    case ACL_BF16:
      return number(to_float(value_of<Bf16>(*scalar)));
    case ACL_INT64:
      return ScalarView::of(value_of<std::int64_t>(*scalar));
    case ACL_INT32:
      return ScalarView::of(value_of<std::int32_t>(*scalar));
    case ACL_INT16:
      return ScalarView::of(value_of<std::int16_t>(*scalar));
    case ACL_INT8:
      return ScalarView::of(value_of<std::int8_t>(*scalar));
    case ACL_UINT8:
      return ScalarView::of(value_of<std::uint8_t>(*scalar));
    case ACL_BOOL:
      return ScalarView::of(value_of<std::uint8_t>(*scalar) != 0);
    default:
      return {.given = true};
  }
}

IntArrayView view(const aclIntArray* array) {
  if (array == nullptr) return {};
  return {true, array->values};
}

TensorListView view(const aclTensorList* list) {
  TensorListView seen;
  if (list == nullptr) return seen;
  seen.given = true;
  seen.items.reserve(list->tensors.size());
  for (const aclTensor* tensor : list->tensors) seen.items.push_back(view(tensor));
  return seen;
}

void remember_handle(const void* handle) {
  HandleShard& shard = shard_of(handle);
  const std::lock_guard lock(shard.mutex);
  shard.live.insert(handle);
}

bool forget_handle(const void* handle) {
  HandleShard& shard = shard_of(handle);
  const std::lock_guard lock(shard.mutex);
  return shard.live.erase(handle) == 1;
}

bool is_live_handle(const void* handle) {
  HandleShard& shard = shard_of(handle);
  const std::lock_guard lock(shard.mutex);
  return shard.live.contains(handle);
}

}  // namespace moeyard
