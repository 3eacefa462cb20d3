// Moeyard. SPDX-License-Identifier: Apache-2.0
// What tests of ATB share: tensors in device memory, a context, and the whole life of a call.
#pragma once
#include <gmock/gmock.h>

#include <memory>
#include <numeric>

#include "atb/atb_infer.h"
#include "support/device.h"

namespace oracle {

template <>
struct DtypeOf<std::int16_t> {
  static constexpr aclDataType value = ACL_INT16;
};
template <>
struct DtypeOf<std::uint32_t> {
  static constexpr aclDataType value = ACL_UINT32;
};

using Shape = std::vector<std::int64_t>;

inline atb::TensorDesc desc_of(aclDataType dtype, const Shape& shape, aclFormat format = ACL_FORMAT_ND) {
  atb::TensorDesc desc;
  desc.dtype = dtype;
  desc.format = format;
  desc.shape.dimNum = shape.size();
  for (std::size_t i = 0; i < shape.size() && i < atb::MAX_DIM; ++i) desc.shape.dims[i] = shape[i];
  return desc;
}
inline Shape shape_of(const atb::TensorDesc& desc) {
  return {desc.shape.dims, desc.shape.dims + desc.shape.dimNum};
}

// An atb::Tensor and its memory.
class AtbTensor {
 public:
  explicit AtbTensor(const atb::TensorDesc& desc) {
    tensor_.desc = desc;
    tensor_.dataSize = atb::Utils::GetTensorSize(desc);
    if (tensor_.dataSize == 0) return;  // an optional one that is not given
    expect_success(aclrtMalloc(&tensor_.deviceData, tensor_.dataSize, ACL_MEM_MALLOC_HUGE_FIRST),
                   "aclrtMalloc");
    std::memset(tensor_.deviceData, Tensor::kSentinel, tensor_.dataSize);
  }
  template <class T>
  static AtbTensor of(const Shape& shape, const std::vector<T>& values) {
    AtbTensor tensor(desc_of(DtypeOf<T>::value, shape));
    tensor.set(values);
    return tensor;
  }
  template <class T>
  static AtbTensor empty(const Shape& shape) {
    return AtbTensor(desc_of(DtypeOf<T>::value, shape));
  }
  static AtbTensor none() { return AtbTensor(atb::TensorDesc()); }
  AtbTensor(AtbTensor&& other) noexcept : tensor_(std::exchange(other.tensor_, {})) {}
  AtbTensor& operator=(AtbTensor&& other) noexcept {
    std::swap(tensor_, other.tensor_);
    return *this;
  }
  ~AtbTensor() {
    if (tensor_.deviceData != nullptr) aclrtFree(tensor_.deviceData);
  }

  operator const atb::Tensor&() const { return tensor_; }
  const atb::TensorDesc& desc() const { return tensor_.desc; }
  Shape shape() const { return shape_of(tensor_.desc); }
  template <class T>
  void set(const std::vector<T>& values) {
    ASSERT_EQ(values.size() * sizeof(T), tensor_.dataSize);
    std::memcpy(tensor_.deviceData, values.data(), tensor_.dataSize);
  }
  template <class T>
  std::vector<T> values() const {
    std::vector<T> all(tensor_.dataSize / sizeof(T));
    if (!all.empty()) std::memcpy(all.data(), tensor_.deviceData, tensor_.dataSize);
    return all;
  }

 private:
  atb::Tensor tensor_;
};

struct Destroy {
  void operator()(atb::Operation* operation) const { EXPECT_EQ(atb::DestroyOperation(operation), 0); }
  void operator()(atb::Context* context) const { EXPECT_EQ(atb::DestroyContext(context), 0); }
};
using OperationPtr = std::unique_ptr<atb::Operation, Destroy>;
using ContextPtr = std::unique_ptr<atb::Context, Destroy>;

// Null, and a failure of the test, if the parameter is refused.
template <class Param>
atb::Operation* make(const Param& param) {
  atb::Operation* operation = nullptr;
  EXPECT_EQ(atb::CreateOperation(param, &operation), 0) << recent_message();
  return operation;
}

// The parameter is refused, with this in the message.
template <class Param>
void refused(const Param& param, const char* message) {
  atb::Operation* made = nullptr;
  EXPECT_EQ(atb::CreateOperation(param, &made), atb::ERROR_INVALID_PARAM) << message;
  EXPECT_THAT(recent_message(), testing::HasSubstr(message));
}

// Device memory for a call.
class Workspace {
 public:
  explicit Workspace(std::uint64_t size) {
    if (size > 0) expect_success(aclrtMalloc(&memory_, size, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    if (size > 0) std::memset(memory_, Tensor::kSentinel, size);
  }
  ~Workspace() {
    if (memory_ != nullptr) aclrtFree(memory_);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  std::uint8_t* data() const { return static_cast<std::uint8_t*>(memory_); }

 private:
  void* memory_ = nullptr;
};

// A device with a context on its stream, in the thread that made it.
class Atb {
 public:
  explicit Atb(int device_number = 0) : device(device_number) {
    atb::Context* made = nullptr;
    EXPECT_EQ(atb::CreateContext(&made), 0);
    context.reset(made);
    EXPECT_EQ(made->SetExecuteStream(device.stream()), 0);
  }

  static atb::VariantPack pack(const std::vector<const AtbTensor*>& inputs,
                               const std::vector<const AtbTensor*>& outputs) {
    atb::VariantPack pack;
    for (const AtbTensor* tensor : inputs) pack.inTensors.push_back(*tensor);
    for (const AtbTensor* tensor : outputs) pack.outTensors.push_back(*tensor);
    return pack;
  }

  // Setup, Execute and a synchronise: the first code that is not 0.
  int run(atb::Operation& operation, const atb::VariantPack& pack) const {
    std::uint64_t size = 0;
    if (const int code = operation.Setup(pack, size, context.get()); code != 0) return code;
    EXPECT_EQ(size % 512, 0u);
    const Workspace workspace(size);
    if (const int code = operation.Execute(pack, workspace.data(), size, context.get()); code != 0)
      return code;
    return device.synchronize();
  }

  // The outputs that InferShape gives, after a run that must succeed.
  std::vector<AtbTensor> outputs(atb::Operation& operation,
                                 const std::vector<const AtbTensor*>& inputs) const {
    atb::SVector<atb::TensorDesc> in, out;
    for (const AtbTensor* tensor : inputs) in.push_back(tensor->desc());
    out.resize(operation.GetOutputNum());
    EXPECT_EQ(operation.InferShape(in, out), 0) << recent_message();
    std::vector<AtbTensor> made;
    for (const atb::TensorDesc& desc : out) made.emplace_back(desc);
    std::vector<const AtbTensor*> handles;
    for (const AtbTensor& tensor : made) handles.push_back(&tensor);
    EXPECT_EQ(run(operation, pack(inputs, handles)), 0) << recent_message();
    return made;
  }
  template <class Param>
  std::vector<AtbTensor> outputs_of(const Param& param, const std::vector<const AtbTensor*>& inputs) const {
    const OperationPtr operation(make(param));
    if (operation == nullptr) throw std::runtime_error("no operation");
    return outputs(*operation, inputs);
  }

  // What InferShape says about inputs of these descriptors.
  template <class Param>
  static int infer(const Param& param, const std::vector<atb::TensorDesc>& inputs) {
    const OperationPtr operation(make(param));
    atb::SVector<atb::TensorDesc> in, out;
    for (const atb::TensorDesc& desc : inputs) in.push_back(desc);
    return operation->InferShape(in, out);
  }

  Device device;
  ContextPtr context;
};

template <class T>
std::vector<T> random_values(std::size_t count, std::mt19937& random, float spread = 4) {
  std::normal_distribution<float> normal(0, spread);
  std::vector<T> values;
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (std::is_integral_v<T>)
      values.push_back(static_cast<T>(std::lround(normal(random))));
    else
      values.push_back(T(normal(random)));
  }
  return values;
}

inline std::size_t elements_of(const Shape& shape) {
  return static_cast<std::size_t>(
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
}

// Half a unit in the last place, relative, and what rounding to fp32 before adds.
template <class T>
constexpr double kHalfUnit = sizeof(T) == 4           ? 0x1p-24
                             : std::is_same_v<T, B16> ? 0x1.01p-8
                                                      : 0x1.01p-11;

}  // namespace oracle
