// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/device.h"

#include <algorithm>
#include <string_view>

#include "base/dtype.h"
#include "model/errors.h"

namespace moeyard::model {
namespace {

std::int64_t elements_of(std::span<const std::int64_t> shape) {
  std::int64_t n = 1;
  for (const std::int64_t dimension : shape) n *= dimension;
  return n;
}

std::vector<std::int64_t> dense_strides(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

}  // namespace

Status checked(std::int32_t code, const char* call) {
  if (code == 0) return {};
  const char* messages = aclGetRecentErrMsg();
  std::string_view newest = messages == nullptr ? "no message" : messages;
  newest = newest.substr(0, newest.find('\n'));
  return run_failed("{} returned {}: {}", call, code, newest);
}

Result<DeviceMemory> allocate(std::int64_t bytes) {
  void* memory = nullptr;  // a block of no bytes does not exist
  MOEYARD_TRY(checked(aclrtMalloc(&memory, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)),
                                  ACL_MEM_MALLOC_HUGE_FIRST),
                      "aclrtMalloc"));
  return DeviceMemory(memory);
}

Result<DeviceTensor> DeviceTensor::make(aclDataType type, std::vector<std::int64_t> shape) {
  DeviceTensor tensor;
  tensor.type_ = type;
  tensor.shape_ = std::move(shape);
  tensor.strides_ = dense_strides(tensor.shape_);
  tensor.memory_ = MOEYARD_TRY(allocate(bytes_of(type, elements_of(tensor.shape_))));
  tensor.handle_ = MOEYARD_TRY(tensor.view(tensor.shape_, tensor.strides_));
  return tensor;
}

Result<DeviceTensor> DeviceTensor::make(aclDataType type, std::vector<std::int64_t> shape,
                                        std::span<const std::byte> values) {
  DeviceTensor tensor = MOEYARD_TRY(make(type, std::move(shape)));
  MOEYARD_TRY(tensor.upload(values, 0));
  return tensor;
}

Status DeviceTensor::upload(std::span<const std::byte> values, std::int64_t first_byte) const {
  const std::int64_t room = bytes() - first_byte;
  return checked(
      aclrtMemcpy(static_cast<std::byte*>(memory_.get()) + first_byte, static_cast<std::size_t>(room),
                  values.data(), values.size(), ACL_MEMCPY_HOST_TO_DEVICE),
      "aclrtMemcpy");
}

Status DeviceTensor::download(std::span<std::byte> values) const {
  return checked(
      aclrtMemcpy(values.data(), values.size(), memory_.get(), values.size(), ACL_MEMCPY_DEVICE_TO_HOST),
      "aclrtMemcpy");
}

std::int64_t DeviceTensor::bytes() const { return bytes_of(type_, elements_of(shape_)); }

Result<Tensor> DeviceTensor::rows(std::int64_t first, std::int64_t count) const {
  std::vector<std::int64_t> shape = shape_;
  shape[0] = count;
  return view(shape, strides_, first * strides_[0]);
}

Result<Tensor> DeviceTensor::transposed() const {
  std::vector<std::int64_t> shape = shape_, strides = strides_;
  std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  std::swap(strides[shape.size() - 1], strides[shape.size() - 2]);
  return view(shape, strides);
}

Result<Tensor> DeviceTensor::view(const std::vector<std::int64_t>& shape,
                                  const std::vector<std::int64_t>& strides, std::int64_t offset) const {
  Tensor tensor(aclCreateTensor(shape.data(), shape.size(), type_, strides.data(), offset, ACL_FORMAT_ND,
                                shape_.data(), shape_.size(), memory_.get()));
  if (tensor == nullptr) return run_failed("aclCreateTensor returned null.");
  return tensor;
}

Result<TensorList> list_of(Tensor member) {
  const aclTensor* members[] = {member.get()};
  TensorList list(aclCreateTensorList(members, 1));
  if (list == nullptr) return run_failed("aclCreateTensorList returned null.");
  (void)member.release();  // the list's now
  return list;
}

}  // namespace moeyard::model
