// Moeyard. SPDX-License-Identifier: Apache-2.0
// What a test needs to call operators as a user's program does, over the public headers only.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"
#include "support/numbers.h"

namespace oracle {

// The text of the last failure in this thread; empty if there was none.
inline std::string recent_message() {
  const char* text = aclGetRecentErrMsg();
  return text == nullptr ? std::string() : std::string(text);
}

inline void expect_success(int code, const char* what) {
  EXPECT_EQ(code, 0) << what << ": " << recent_message();
}

// A device, context and stream of the calling thread.
class Device {
 public:
  explicit Device(int device = 0) {
    expect_success(aclrtSetDevice(device), "aclrtSetDevice");
    expect_success(aclrtCreateContext(&context_, device), "aclrtCreateContext");
    expect_success(aclrtCreateStream(&stream_), "aclrtCreateStream");
  }
  ~Device() {
    aclrtDestroyStream(stream_);
    aclrtDestroyContext(context_);
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  aclrtStream stream() const { return stream_; }
  int synchronize() const { return aclrtSynchronizeStream(stream_); }

 private:
  aclrtContext context_ = nullptr;
  aclrtStream stream_ = nullptr;
};

// How a tensor lies in its memory.
enum class Layout { dense, padded_rows, transposed, offset, spread };  // spread: every second element

// Device memory and the aclTensor over it. Host code may read and write our device memory, so values() and
// set() do.
class Tensor {
 public:
  Tensor(aclDataType dtype, std::vector<std::int64_t> shape, std::size_t element_bytes,
         Layout layout = Layout::dense)
      : shape_(std::move(shape)), strides_(shape_.size()), element_bytes_(element_bytes) {
    const std::size_t rank = shape_.size();
    if (layout == Layout::transposed && rank >= 2) {  // the last two axes lie the other way round
      fill_dense_strides(0);
      std::swap(strides_[rank - 1], strides_[rank - 2]);
      strides_[rank - 2] = 1;
      strides_[rank - 1] = std::max<std::int64_t>(shape_[rank - 2], 1);
    } else {
      fill_dense_strides(layout == Layout::padded_rows ? 3 : 0);
      if (layout == Layout::spread)
        for (std::int64_t& stride : strides_) stride *= 2;
    }
    if (layout == Layout::offset) offset_ = 5;
    std::int64_t reach = offset_ + 1;
    for (std::size_t axis = 0; axis < rank; ++axis)
      reach += std::max<std::int64_t>(shape_[axis] - 1, 0) * strides_[axis];
    bytes_ = static_cast<std::size_t>(reach) * element_bytes_;
    expect_success(aclrtMalloc(&memory_, bytes_, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    if (memory_ == nullptr) throw std::runtime_error("no memory for a tensor: does the test have a Device?");
    std::memset(memory_, kSentinel, bytes_);
    dtype_ = dtype;
    set_format(ACL_FORMAT_ND);
  }
  template <class T>
  static Tensor of(std::vector<std::int64_t> shape, const std::vector<T>& values,
                   Layout layout = Layout::dense) {
    Tensor tensor(DtypeOf<T>::value, std::move(shape), sizeof(T), layout);
    tensor.set(values);
    return tensor;
  }
  template <class T>
  static Tensor empty(std::vector<std::int64_t> shape, Layout layout = Layout::dense) {
    return Tensor(DtypeOf<T>::value, std::move(shape), sizeof(T), layout);
  }
  // 4-bit elements, two of them to a byte: here a tensor of bytes, whose aclTensor has twice as many columns.
  static Tensor packed(aclDataType dtype, std::vector<std::int64_t> shape, Layout layout = Layout::dense) {
    shape.back() /= 2;
    Tensor tensor(dtype, std::move(shape), 1, layout);
    tensor.per_byte_ = 2;
    tensor.set_format(ACL_FORMAT_ND);
    return tensor;
  }
  Tensor(Tensor&& other) noexcept { *this = std::move(other); }
  Tensor& operator=(Tensor&& other) noexcept {
    std::swap(shape_, other.shape_);
    std::swap(dtype_, other.dtype_);
    std::swap(strides_, other.strides_);
    std::swap(offset_, other.offset_);
    std::swap(element_bytes_, other.element_bytes_);
    std::swap(bytes_, other.bytes_);
    std::swap(per_byte_, other.per_byte_);
    std::swap(memory_, other.memory_);
    std::swap(tensor_, other.tensor_);
    return *this;
  }
  ~Tensor() {
    if (memory_ == nullptr) return;
    aclDestroyTensor(tensor_);
    aclrtFree(memory_);
  }

  static constexpr int kSentinel = 0x5A;  // every byte that nobody has written

  operator aclTensor*() const { return tensor_; }
  // Hands the aclTensor to an aclTensorList, which destroys its members; the memory stays here.
  aclTensor* release() { return std::exchange(tensor_, nullptr); }
  std::int64_t numel() const {
    std::int64_t n = 1;
    for (const std::int64_t size : shape_) n *= size;
    return n;
  }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  void* memory() const { return memory_; }
  std::size_t bytes() const { return bytes_; }

  void set_format(aclFormat format) {
    if (tensor_ != nullptr) aclDestroyTensor(tensor_);
    std::vector<std::int64_t> shape = shape_, strides = strides_;
    if (per_byte_ > 1) {
      shape.back() *= per_byte_;
      for (std::size_t axis = 0; axis + 1 < strides.size(); ++axis) strides[axis] *= per_byte_;
    }
    tensor_ = aclCreateTensor(shape.data(), shape.size(), dtype_, strides.data(), offset_ * per_byte_, format,
                              shape.data(), shape.size(), memory_);
  }
  // Lets the operator see each byte as two neighbouring elements of 4 bits; values() and set() stay with bytes. Bytes of a
  // row must be neighbours.
  void split_bytes(aclDataType dtype) {
    std::vector<std::int64_t> shape = shape_, strides = strides_;
    for (std::int64_t& stride : strides) stride *= 2;
    shape.back() *= 2, strides.back() = 1;
    aclDestroyTensor(tensor_);
    tensor_ = aclCreateTensor(shape.data(), shape.size(), dtype, strides.data(), 2 * offset_, ACL_FORMAT_ND,
                              shape.data(), shape.size(), memory_);
  }
  template <class T>
  void set(const std::vector<T>& values) {
    for (std::int64_t i = 0; i < numel(); ++i)
      std::memcpy(element(i), &values[static_cast<std::size_t>(i)], sizeof(T));
  }
  template <class T>
  std::vector<T> values() const {
    std::vector<T> all(static_cast<std::size_t>(numel()));
    for (std::int64_t i = 0; i < numel(); ++i)
      std::memcpy(&all[static_cast<std::size_t>(i)], element(i), sizeof(T));
    return all;
  }
  // Whether the bytes between the elements (and before the first) still hold the sentinel.
  bool gaps_untouched() const {
    std::vector<bool> owned(bytes_, false);
    for (std::int64_t i = 0; i < numel(); ++i) {
      const auto at = static_cast<std::size_t>(element(i) - static_cast<char*>(memory_));
      std::fill_n(owned.begin() + static_cast<std::ptrdiff_t>(at), element_bytes_, true);
    }
    for (std::size_t i = 0; i < bytes_; ++i)
      if (!owned[i] && static_cast<unsigned char*>(memory_)[i] != kSentinel) return false;
    return true;
  }

 private:
  void fill_dense_strides(std::int64_t row_padding) {
    std::int64_t stride = 1;
    for (std::size_t axis = shape_.size(); axis-- > 0;) {
      strides_[axis] = stride;
      stride *= std::max<std::int64_t>(shape_[axis], 1);
      if (axis + 1 == shape_.size()) stride += row_padding;
    }
  }
  char* element(std::int64_t index) const {
    std::int64_t at = offset_;
    for (std::size_t axis = shape_.size(); axis-- > 0;) {
      at += index % shape_[axis] * strides_[axis];
      index /= shape_[axis];
    }
    return static_cast<char*>(memory_) + static_cast<std::size_t>(at) * element_bytes_;
  }

  std::vector<std::int64_t> shape_, strides_;
  aclDataType dtype_ = ACL_DT_UNDEFINED;
  std::int64_t offset_ = 0, per_byte_ = 1;
  std::size_t element_bytes_ = 0, bytes_ = 0;
  void* memory_ = nullptr;
  aclTensor* tensor_ = nullptr;
};

// An aclTensorList and its members' memory.
class TensorList {
 public:
  TensorList() = default;
  explicit TensorList(std::vector<Tensor> members) : members_(std::move(members)) {
    std::vector<aclTensor*> handles;
    for (Tensor& member : members_) handles.push_back(member.release());
    list_ = aclCreateTensorList(handles.data(), handles.size());
  }
  TensorList(TensorList&& other) noexcept { *this = std::move(other); }
  TensorList& operator=(TensorList&& other) noexcept {
    std::swap(members_, other.members_);
    std::swap(list_, other.list_);
    return *this;
  }
  ~TensorList() {
    if (list_ != nullptr) aclDestroyTensorList(list_);
  }
  operator aclTensorList*() const { return list_; }  // null for a list that was not given
  void adopt(aclTensorList* list) { list_ = list; }  // one that was made by hand
  const Tensor& operator[](std::size_t i) const { return members_[i]; }
  std::size_t size() const { return members_.size(); }

 private:
  std::vector<Tensor> members_;
  aclTensorList* list_ = nullptr;
};
template <class... Members>
TensorList list_of(Members&&... members) {
  std::vector<Tensor> all;
  (all.push_back(std::forward<Members>(members)), ...);
  return TensorList(std::move(all));
}

// The handle of an optional parameter.
inline aclTensor* handle(const std::optional<Tensor>& tensor) {
  return tensor ? static_cast<aclTensor*>(*tensor) : nullptr;
}

// Both phases of an operator, without synchronising. `phase_one` is called with (&workspaceSize, &executor).
using PhaseTwo = aclnnStatus (*)(void*, std::uint64_t, aclOpExecutor*, aclrtStream);
struct Launched {
  int code = 0;  // of the phase that failed, else 0
  void* workspace = nullptr;
  Launched() = default;
  Launched(Launched&& other) noexcept
      : code(other.code), workspace(std::exchange(other.workspace, nullptr)) {}
  ~Launched() {
    if (workspace != nullptr) aclrtFree(workspace);
  }
};
template <class PhaseOne>
Launched launch(PhaseOne&& phase_one, PhaseTwo phase_two, aclrtStream stream) {
  Launched launched;
  std::uint64_t workspace_size = 0;
  aclOpExecutor* executor = nullptr;
  launched.code = phase_one(&workspace_size, &executor);
  if (launched.code != 0) return launched;
  if (workspace_size > 0) {
    expect_success(aclrtMalloc(&launched.workspace, workspace_size, ACL_MEM_MALLOC_HUGE_FIRST),
                   "aclrtMalloc");
    std::memset(launched.workspace, Tensor::kSentinel, workspace_size);
  }
  launched.code = phase_two(launched.workspace, workspace_size, executor, stream);
  return launched;
}

// Both phases and a synchronise: the code of whatever failed first, 0 if nothing did.
template <class PhaseOne>
int run(PhaseOne&& phase_one, PhaseTwo phase_two, const Device& device) {
  const Launched launched = launch(std::forward<PhaseOne>(phase_one), phase_two, device.stream());
  return launched.code != 0 ? launched.code : device.synchronize();
}

// The seed of a random test: MOEYARD_TEST_SEED, or a fixed one; printed when the test fails.
inline std::uint32_t seed() {
  const char* text = std::getenv("MOEYARD_TEST_SEED");
  return text != nullptr ? static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10)) : 20260u;
}

}  // namespace oracle
