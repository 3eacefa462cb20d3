// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "executor/objects.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <unordered_set>

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
