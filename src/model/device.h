// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "base/status.h"
#include "hccl/hccl.h"

namespace moeyard::model {

// Owners of the runtime's objects.
template <auto release>
struct Release {
  template <class T>
  void operator()(T* object) const {
    release(object);
  }
};
using Context = std::unique_ptr<void, Release<aclrtDestroyContext>>;
using Stream = std::unique_ptr<void, Release<aclrtDestroyStream>>;
using Event = std::unique_ptr<void, Release<aclrtDestroyEvent>>;
using Communicator = std::unique_ptr<void, Release<HcclCommDestroy>>;
using DeviceMemory = std::unique_ptr<void, Release<aclrtFree>>;
using Tensor = std::unique_ptr<aclTensor, Release<aclDestroyTensor>>;
using TensorList = std::unique_ptr<aclTensorList, Release<aclDestroyTensorList>>;

// Success for 0; else what `call` returned, with the sentence that the library has for it.
Status checked(std::int32_t code, const char* call);

Result<DeviceMemory> allocate(std::int64_t bytes);

// A dense tensor with memory on the current device.
class DeviceTensor {
 public:
  static Result<DeviceTensor> make(aclDataType type, std::vector<std::int64_t> shape);
  // The same, with values: as many bytes as the tensor has.
  static Result<DeviceTensor> make(aclDataType type, std::vector<std::int64_t> shape,
                                   std::span<const std::byte> values);

  aclTensor* get() const { return handle_.get(); }
  const std::vector<std::int64_t>& shape() const { return shape_; }

  Status upload(std::span<const std::byte> values, std::int64_t first_byte) const;
  Status download(std::span<std::byte> values) const;  // its first bytes

  void* data() const { return memory_.get(); }
  std::int64_t bytes() const;

  // Views of the same memory: all of it, some rows, and the last two dimensions exchanged.
  Result<Tensor> all() const { return first_rows(shape_[0]); }
  Result<Tensor> first_rows(std::int64_t count) const { return rows(0, count); }
  Result<Tensor> rows(std::int64_t first, std::int64_t count) const;
  Result<Tensor> transposed() const;

 private:
  Result<Tensor> view(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides,
                      std::int64_t offset = 0) const;

  aclDataType type_;
  std::vector<std::int64_t> shape_, strides_;
  DeviceMemory memory_;
  Tensor handle_;
};

// A list owns its members.
Result<TensorList> list_of(Tensor member);

}  // namespace moeyard::model
