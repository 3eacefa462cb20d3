// Moeyard. SPDX-License-Identifier: Apache-2.0
// Calls as lists of parameters that can be spoiled at random: tensors in one block of device memory, and numbers. Public
// headers only.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "support/device.h"

namespace oracle {

using Random = std::mt19937_64;

inline std::int64_t below(Random& random, std::size_t n) { return static_cast<std::int64_t>(random() % n); }
template <class T>
const T& one_of(Random& random, const std::vector<T>& choices) {
  return choices[static_cast<std::size_t>(below(random, choices.size()))];
}

// What a parameter of an operator is made from.
struct TensorSpec {
  aclDataType dtype;
  std::vector<std::int64_t> shape;
  bool output = false, listed = false;  // listed: the parameter is an aclTensorList, with this one member
  std::int64_t most = 100, least = 0;   // data of an integer input is in [least, most)
  bool given = true;

  std::vector<std::int64_t> strides = {};  // empty: dense
  std::int64_t offset = 0,
               slot = -1;  // where: a slot of the block; -1: its own; -2: null; -3: host; -4: freed
  int members = 1;
  aclFormat format = ACL_FORMAT_ND;
};

struct Call {
  std::vector<TensorSpec> tensors;
  std::vector<std::int64_t> numbers;
};

inline std::size_t bytes_of(aclDataType dtype) {
  switch (dtype) {
    case ACL_INT8:
    case ACL_UINT8:
    case ACL_BOOL:
    case ACL_HIFLOAT8:
    case ACL_FLOAT8_E5M2:
    case ACL_FLOAT8_E4M3FN:
    case ACL_FLOAT8_E8M0:
    case ACL_FLOAT4_E2M1:
    case ACL_FLOAT4_E1M2:
      return 1;
    case ACL_FLOAT16:
    case ACL_BF16:
    case ACL_INT16:
      return 2;
    case ACL_INT64:
    case ACL_UINT64:
    case ACL_DOUBLE:
      return 8;
    default:
      return 4;
  }
}

// Makes one part of the call different.
inline void spoil(Call& call, Random& random) {
  static const std::vector<std::int64_t> kSizes = {0,
                                                   1,
                                                   2,
                                                   3,
                                                   5,
                                                   7,
                                                   64,
                                                   -1,
                                                   1 << 20,
                                                   INT64_C(1) << 31,
                                                   INT64_C(1) << 40,
                                                   INT64_C(1) << 55,
                                                   INT64_C(1) << 62,
                                                   INT64_MAX,
                                                   INT64_MIN};
  const auto changed = [&](std::int64_t value) {
    switch (below(random, 4)) {
      case 0:
        return value == INT64_MAX ? value : value + 1;
      case 1:
        return value == INT64_MIN ? value : value - 1;
      default:
        return one_of(random, kSizes);
    }
  };
  if (!call.numbers.empty() && below(random, 4) == 0) {
    std::int64_t& number = call.numbers[static_cast<std::size_t>(below(random, call.numbers.size()))];
    number = changed(number);
    return;
  }
  TensorSpec& tensor = call.tensors[static_cast<std::size_t>(below(random, call.tensors.size()))];
  const auto axis = tensor.shape.empty() ? 0 : static_cast<std::size_t>(below(random, tensor.shape.size()));
  switch (below(random, 12)) {
    case 0:
    case 1:
    case 2:
      if (!tensor.shape.empty()) tensor.shape[axis] = changed(tensor.shape[axis]);
      break;
    case 3:
      tensor.shape.insert(tensor.shape.begin(),
                          static_cast<std::size_t>(one_of<std::int64_t>(random, {1, 1, 2, 7, 22})), 1);
      break;
    case 4:
      if (!tensor.shape.empty()) tensor.shape.pop_back();
      break;
    case 5:
    case 6:
      if (tensor.shape.empty()) break;
      if (tensor.strides.size() != tensor.shape.size()) {
        tensor.strides.assign(tensor.shape.size(), 1);
        for (std::size_t i = tensor.shape.size() - 1; i-- > 0;)
          if (__builtin_mul_overflow(tensor.strides[i + 1], tensor.shape[i + 1], &tensor.strides[i]))
            tensor.strides[i] = INT64_MAX;
      }
      tensor.strides[axis] = below(random, 3) == 0 && tensor.strides[axis] != INT64_MIN
                                 ? -tensor.strides[axis]
                                 : changed(tensor.strides[axis]);
      break;
    case 7:
      tensor.offset = changed(tensor.offset);
      break;
    case 8:
      tensor.dtype = static_cast<aclDataType>(below(random, 45) - 2);
      break;
    case 9:
      tensor.slot = below(random, call.tensors.size() + 3) - 4;
      break;
    case 10:
      tensor.given = !tensor.given;
      break;
    default:
      if (below(random, 2) == 0) tensor.format = ACL_FORMAT_FRACTAL_NZ;
      tensor.members = static_cast<int>(below(random, 4));
      tensor.most = below(random, 2) == 0 ? tensor.most + 1 : INT_MAX;
  }
}

// The block that a call's tensors lie in: a slot for each.
class Block {
 public:
  static constexpr std::size_t kSlot = 8192, kSlots = 14;

  Block() {
    expect_success(aclrtMalloc(&memory_, kSlot * kSlots, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    void* freed = nullptr;
    expect_success(aclrtMalloc(&freed, kSlot, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    expect_success(aclrtFree(freed), "aclrtFree");
    freed_ = freed;
  }
  ~Block() { aclrtFree(memory_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void* address(const TensorSpec& tensor, std::size_t index) {
    if (tensor.slot == -2) return nullptr;
    if (tensor.slot == -3) return host_;
    if (tensor.slot == -4) return freed_;
    return bytes() + kSlot * (tensor.slot == -1 ? index : static_cast<std::size_t>(tensor.slot));
  }
  unsigned char* bytes() { return static_cast<unsigned char*>(memory_); }

  // Small numbers for inputs; every output holds the sentinel.
  void fill(const Call& call, Random& random) {
    std::memset(memory_, Tensor::kSentinel, kSlot * kSlots);
    for (std::size_t i = 0; i < call.tensors.size(); ++i) {
      const TensorSpec& tensor = call.tensors[i];
      if (tensor.output) continue;
      unsigned char* at = bytes() + kSlot * i;
      const std::size_t width = bytes_of(tensor.dtype);
      const auto most = static_cast<std::size_t>(std::max<std::int64_t>(tensor.most - tensor.least, 1));
      std::uint64_t noise = random();
      for (std::size_t n = 0; n < kSlot / width; ++n, at += width) {
        noise = noise * 6364136223846793005u + 1442695040888963407u;
        const auto value = static_cast<std::int64_t>((noise >> 33) % most) + tensor.least;
        const float number = static_cast<float>(value % 16) * 0.25f;
        if (tensor.dtype == ACL_FLOAT)
          std::memcpy(at, &number, sizeof number);
        else if (width == 2)
          std::memset(at, 0x3C, 2);
        else
          std::memcpy(at, &value, width);
      }
    }
  }

 private:
  void* memory_ = nullptr;
  void* freed_ = nullptr;
  alignas(64) unsigned char host_[kSlot] = {};
};

// The handles of a call's tensors. Lists own their members.
class Handles {
 public:
  Handles(const Call& call, Block& block) {
    for (std::size_t i = 0; i < call.tensors.size(); ++i) {
      const TensorSpec& spec = call.tensors[i];
      tensors_.push_back(nullptr);
      lists_.push_back(nullptr);
      if (!spec.given) continue;
      if (!spec.listed) {
        tensors_[i] = make(spec, block, i);
        continue;
      }
      std::vector<aclTensor*> members;
      for (int m = 0; m < spec.members; ++m) members.push_back(make(spec, block, i));
      lists_[i] = aclCreateTensorList(members.data(), members.size());
    }
  }
  ~Handles() {
    for (aclTensor* tensor : tensors_) aclDestroyTensor(tensor);
    for (aclTensorList* list : lists_) aclDestroyTensorList(list);
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;
  aclTensor* operator[](std::size_t i) const { return tensors_[i]; }
  aclTensorList* list(std::size_t i) const { return lists_[i]; }

 private:
  static aclTensor* make(const TensorSpec& spec, Block& block, std::size_t i) {
    const bool strided = spec.strides.size() == spec.shape.size() && !spec.shape.empty();
    return aclCreateTensor(spec.shape.data(), spec.shape.size(), spec.dtype,
                           strided ? spec.strides.data() : nullptr, spec.offset, spec.format,
                           spec.shape.data(), spec.shape.size(), block.address(spec, i));
  }
  std::vector<aclTensor*> tensors_;
  std::vector<aclTensorList*> lists_;
};

// One rank's side of a call: its memory, and what both phases said.
class Attempt {
 public:
  using PhaseOne = std::function<aclnnStatus(const Call&, const Handles&, std::uint64_t*, aclOpExecutor**)>;
  static constexpr std::uint64_t kMostWorkspace = 1 << 20;  // calls that need more are planned, not run

  ~Attempt() { free_workspace(); }

  int plan(const Call& call, const PhaseOne& phase_one, Random& random) {
    free_workspace();
    block_.fill(call, random);
    before_.assign(block_.bytes(), block_.bytes() + Block::kSlot * Block::kSlots);
    const Handles handles(call, block_);
    executor_ = nullptr;
    workspace_size_ = 0;
    const int code = phase_one(call, handles, &workspace_size_, &executor_);
    EXPECT_EQ(code == 0, executor_ != nullptr);
    return code;
  }
  bool may_run() const { return workspace_size_ <= kMostWorkspace; }
  void drop() { EXPECT_EQ(aclDestroyAclOpExecutor(executor_), 0); }
  int launch(PhaseTwo phase_two, aclrtStream stream) {
    if (workspace_size_ > 0)
      expect_success(aclrtMalloc(&workspace_, workspace_size_, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    return phase_two(workspace_, workspace_size_, executor_, stream);
  }

  // Every byte of the block that no output may reach is what it was.
  bool inputs_untouched(const Call& call) {
    std::vector<char> writable(before_.size(), false);
    for (std::size_t i = 0; i < call.tensors.size(); ++i) {
      const TensorSpec& tensor = call.tensors[i];
      if (!tensor.output || !tensor.given || tensor.slot < -1) continue;
      // A view that reached outside would have been refused; inside, gaps are the business of other tests.
      const std::size_t home = tensor.slot == -1 ? i : static_cast<std::size_t>(tensor.slot);
      const bool dense = tensor.strides.empty() && tensor.offset == 0;
      const std::size_t from = dense ? home * Block::kSlot : 0;
      std::size_t size = bytes_of(tensor.dtype);
      for (const std::int64_t n : tensor.shape)
        size *= static_cast<std::size_t>(std::clamp<std::int64_t>(n, 0, 1 << 16));
      const std::size_t to = dense ? std::min(from + size, before_.size()) : before_.size();
      std::fill(writable.begin() + static_cast<std::ptrdiff_t>(from),
                writable.begin() + static_cast<std::ptrdiff_t>(to), 1);
    }
    const unsigned char* now = block_.bytes();
    for (std::size_t i = 0; i < before_.size(); ++i)
      if (writable[i] == 0 && now[i] != before_[i]) return false;
    return true;
  }

 private:
  void free_workspace() {
    if (workspace_ != nullptr) aclrtFree(workspace_);
    workspace_ = nullptr;
  }
  Block block_;
  std::vector<unsigned char> before_;
  std::uint64_t workspace_size_ = 0;
  aclOpExecutor* executor_ = nullptr;
  void* workspace_ = nullptr;
};

// Codes that documents name for the two phases and for a stream's error.
inline bool is_documented(int code) {
  static const std::set<int> kCodes = {0, 161001, 161002, 361001, 561002, 561003, 507015};
  return kCodes.contains(code);
}

}  // namespace oracle
