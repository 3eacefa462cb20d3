// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// usage: atb_moe_layer FOLDER
//
// Runs a layer of a Qwen3 MoE model as a graph of ATB and compares the result with the one that transformers computed in
// fp32. FOLDER has model.safetensors, hidden.safetensors and expected.safetensors.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "layer.h"
#include "safetensors.h"

namespace atb_moe_layer {
namespace {

constexpr char kLayer[] = "model.layers.2.mlp.";

// A tensor of ATB in device memory.
class DeviceTensor {
 public:
  explicit DeviceTensor(const atb::TensorDesc& desc) {
    tensor_.desc = desc;
    tensor_.dataSize = atb::Utils::GetTensorSize(desc);
    check(aclrtMalloc(&tensor_.deviceData, tensor_.dataSize, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  }
  ~DeviceTensor() { aclrtFree(tensor_.deviceData); }
  DeviceTensor(const DeviceTensor&) = delete;
  DeviceTensor& operator=(const DeviceTensor&) = delete;
  const atb::Tensor& get() const { return tensor_; }

  void upload(const void* from) {
    check(
        aclrtMemcpy(tensor_.deviceData, tensor_.dataSize, from, tensor_.dataSize, ACL_MEMCPY_HOST_TO_DEVICE),
        "aclrtMemcpy");
  }
  void download(void* to) const {
    check(aclrtMemcpy(to, tensor_.dataSize, tensor_.deviceData, tensor_.dataSize, ACL_MEMCPY_DEVICE_TO_HOST),
          "aclrtMemcpy");
  }

 private:
  atb::Tensor tensor_;
};
using DeviceTensorPtr = std::unique_ptr<DeviceTensor>;

DeviceTensorPtr upload(const Stored& stored) {
  atb::TensorDesc desc = desc_of(stored.dtype == "F16" ? ACL_FLOAT16 : ACL_FLOAT, {});
  for (const std::int64_t dim : stored.shape) desc.shape.dims[desc.shape.dimNum++] = dim;
  auto tensor = std::make_unique<DeviceTensor>(desc);
  if (tensor->get().dataSize != stored.bytes.size())
    throw std::runtime_error("the model must be stored in F16");
  tensor->upload(stored.bytes.data());
  return tensor;
}

// Setup and Execute of any operation, and a synchronise.
std::vector<DeviceTensorPtr> run(atb::Operation& operation, const std::vector<const DeviceTensor*>& inputs,
                                 atb::Context* context) {
  atb::VariantPack pack;
  Descs in, out;
  for (const DeviceTensor* tensor : inputs) {
    pack.inTensors.push_back(tensor->get());
    in.push_back(tensor->get().desc);
  }
  out.resize(operation.GetOutputNum());
  check(operation.InferShape(in, out), "InferShape");
  std::vector<DeviceTensorPtr> results;
  for (const atb::TensorDesc& desc : out) {
    results.push_back(std::make_unique<DeviceTensor>(desc));
    pack.outTensors.push_back(results.back()->get());
  }
  std::uint64_t size = 0;
  check(operation.Setup(pack, size, context), "Setup");
  void* workspace = nullptr;
  if (size > 0) check(aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  check(operation.Execute(pack, static_cast<std::uint8_t*>(workspace), size, context), "Execute");
  check(aclrtSynchronizeStream(context->GetExecuteStream()), "aclrtSynchronizeStream");
  if (workspace != nullptr) aclrtFree(workspace);
  return results;
}

// Routers are sensitive, so theirs is a product of fp32.
DeviceTensorPtr widened(const DeviceTensor& tensor, atb::Context* context) {
  atb::infer::ElewiseParam cast;
  cast.elewiseType = atb::infer::ElewiseParam::ELEWISE_CAST;
  cast.outTensorType = ACL_FLOAT;
  atb::Operation* operation = nullptr;
  check(atb::CreateOperation(cast, &operation), "CreateOperation");
  DeviceTensorPtr wide = std::move(run(*operation, {&tensor}, context)[0]);
  check(atb::DestroyOperation(operation), "DestroyOperation");
  return wide;
}

// How many values are further from what they should be than rounding to fp16 on the way explains.
std::size_t too_far(const std::vector<float>& got, const std::vector<float>& want, std::size_t columns) {
  std::size_t count = 0;
  float largest = 0;
  for (std::size_t row = 0; row < want.size(); row += columns) {
    float scale = 0;
    for (std::size_t i = row; i < row + columns; ++i) scale = std::max(scale, std::fabs(want[i]));
    for (std::size_t i = row; i < row + columns; ++i) {
      const float error = std::fabs(got[i] - want[i]);
      largest = std::max(largest, error);
      count += error <= scale / 512 + 1e-3f ? 0 : 1;  // a NaN is too far
    }
  }
  std::printf("largest error %g, %zu of %zu values too far\n", static_cast<double>(largest), count,
              want.size());
  return count;
}

std::size_t compare(const std::string& folder) {
  const SafetensorsFile model(folder + "/model.safetensors"), hidden(folder + "/hidden.safetensors"),
      expected(folder + "/expected.safetensors");
  const Stored router = model.read(std::string(kLayer) + "gate.weight"), want = expected.read("expected");
  const std::int64_t experts = router.shape.at(0), topk = expected.read("topk_ids").shape.at(1);

  check(aclrtSetDevice(0), "aclrtSetDevice");
  aclrtStream stream = nullptr;
  check(aclrtCreateStream(&stream), "aclrtCreateStream");
  atb::Context* context = nullptr;
  check(atb::CreateContext(&context), "CreateContext");
  check(context->SetExecuteStream(stream), "SetExecuteStream");
  std::vector<float> y;
  {
    const DeviceTensorPtr x = upload(hidden.read("hidden_states")), narrow_router = upload(router),
                          gate_up = upload(model.read(std::string(kLayer) + "experts.gate_up_proj")),
                          down = upload(model.read(std::string(kLayer) + "experts.down_proj")),
                          wide_router = widened(*narrow_router, context);
    atb::Operation* layer = make_layer(experts, topk);
    const std::vector<DeviceTensorPtr> results =
        run(*layer, {x.get(), wide_router.get(), gate_up.get(), down.get()}, context);
    check(atb::DestroyOperation(layer), "DestroyOperation");
    y.resize(want.bytes.size() / sizeof(float));
    widened(*results[0], context)->download(y.data());
  }
  check(atb::DestroyContext(context), "DestroyContext");
  check(aclrtDestroyStream(stream), "aclrtDestroyStream");
  check(aclrtResetDevice(0), "aclrtResetDevice");

  std::vector<float> reference(y.size());
  std::memcpy(reference.data(), want.bytes.data(), want.bytes.size());
  std::printf("%lld tokens, %lld experts, %lld for each token: ", static_cast<long long>(want.shape.at(0)),
              static_cast<long long>(experts), static_cast<long long>(topk));
  return too_far(y, reference, static_cast<std::size_t>(want.shape.at(1)));
}

}  // namespace
}  // namespace atb_moe_layer

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", arguments[0]);
    return 2;
  }
  try {
    atb_moe_layer::check(aclInit(nullptr), "aclInit");
    const std::size_t wrong = atb_moe_layer::compare(arguments[1]);
    atb_moe_layer::check(aclFinalize(), "aclFinalize");
    return wrong == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
