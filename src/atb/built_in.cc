// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "atb/built_in.h"

#include <cstdlib>
#include <cstring>

#include "atb/failure.h"
#include "atb/graveyard.h"

namespace moeyard::atb_layer {
namespace {

using atb::Status;
using atb::VariantPack;

constexpr std::uint64_t kAlignment = 512;  // of workspace sizes

// Whether the environment asks for a synchronise after each operation.
bool synchronises() {
  static const bool asked = [] {
    const char* value = std::getenv("ATB_STREAM_SYNC_EVERY_OPERATION_ENABLE");
    return value != nullptr && std::strcmp(value, "1") == 0;
  }();
  return asked;
}

void copy_descs(const atb::SVector<atb::Tensor>& tensors, Descs& descs) {
  descs.resize(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) descs.data()[i] = tensors.data()[i].desc;
}

bool same_descs(const Descs& kept, const atb::SVector<atb::Tensor>& tensors) {
  if (kept.size() != tensors.size()) return false;
  for (std::size_t i = 0; i < kept.size(); ++i)
    if (!same_desc(kept.data()[i], tensors.data()[i].desc)) return false;
  return true;
}

}  // namespace

void* BuiltIn::operator new(std::size_t bytes) { return allocate_operation(bytes); }
void BuiltIn::operator delete(void* operation) { bury_operation(operation); }

Status BuiltIn::InferShape(const Descs& inputs, Descs& outputs) const {
  try {
    if (inputs.size() != signature_.inputs)
      return fail(atb::ERROR_INVALID_IN_TENSOR_NUM, "%s: InferShape got %zu inTensorDescs but needs %u",
                  name(), inputs.size(), signature_.inputs);
    MOEYARD_ATB_TRY(check_inputs(inputs));
    outputs.resize(signature_.outputs);
    if (signature_.types != nullptr) {
      const char* types = find_types(signature_, inputs);
      for (atb::TensorDesc& desc : outputs) {
        desc.dtype = type_of_letter(*types++);
        desc.format = ACL_FORMAT_ND;
      }
    }
    return infer(inputs, outputs);
  } catch (...) {
    return caught(atb::ERROR_OUT_OF_HOST_MEMORY, name(), "InferShape");
  }
}

Status BuiltIn::Setup(const VariantPack& pack, std::uint64_t& workspace_size, atb::Context* context) {
  ready_ = false;
  try {
    return set_up(pack, workspace_size, context);
  } catch (...) {
    return caught(atb::ERROR_OUT_OF_HOST_MEMORY, name(), "Setup");
  }
}

Status BuiltIn::set_up(const VariantPack& pack, std::uint64_t& workspace_size, atb::Context* context) {
  if (context == nullptr)
    return fail(atb::ERROR_INVALID_PARAM, "%s: context is null in Setup; pass what CreateContext made",
                name());
  ContextImpl* found = find_context(context);
  if (found == nullptr)
    return fail(atb::ERROR_INVALID_CONTEXT_ADDR,
                "%s: context %p of Setup is not alive; pass what CreateContext made", name(),
                static_cast<void*>(context));
  if (pack.inTensors.size() != signature_.inputs || pack.outTensors.size() != signature_.outputs)
    return fail(atb::ERROR_INVALID_IN_TENSOR_NUM,
                "%s: Setup got %zu inTensors and %zu outTensors but needs %u and %u", name(),
                pack.inTensors.size(), pack.outTensors.size(), signature_.inputs, signature_.outputs);
  MOEYARD_ATB_TRY(check_launch_mode(pack, *found));
  copy_descs(pack.inTensors, in_descs_);
  MOEYARD_ATB_TRY(InferShape(in_descs_, out_descs_));
  MOEYARD_ATB_TRY(check_outputs(pack));
  std::uint64_t size = 0;
  MOEYARD_ATB_TRY(plan(pack, *found, size));
  workspace_size_ = (size + kAlignment - 1) / kAlignment * kAlignment;
  workspace_size = workspace_size_;
  context_ = context;
  keep(pack);
  ready_ = true;
  prepared_ = false;
  return atb::NO_ERROR;
}

void BuiltIn::keep(const VariantPack& pack) {
  bytes_.resize(pack.inTensors.size() + pack.outTensors.size());
  std::uint64_t* next = bytes_.data();
  for (const atb::Tensor& tensor : pack.inTensors) *next++ = bytes_of(tensor.desc);
  for (const atb::Tensor& tensor : pack.outTensors) *next++ = bytes_of(tensor.desc);
}

Status BuiltIn::check_outputs(const VariantPack& pack) const {
  for (std::size_t i = 0; i < out_descs_.size(); ++i) {
    const atb::TensorDesc &given = pack.outTensors.data()[i].desc, &inferred = out_descs_.data()[i];
    if (!same_shape(given.shape, inferred.shape))
      return fail(atb::ERROR_INVALID_TENSOR_DIM,
                  "%s: outTensors[%zu] is %s but must be %s, as InferShape says", name(), i,
                  text_of(given).c_str(), text_of(inferred).c_str());
    if (given.dtype != inferred.dtype || given.format != inferred.format)
      return fail(
          atb::ERROR_INVALID_TENSOR_INI_MATCH,
          "%s: outTensors[%zu] is %s with format %d but must be %s with format %d, as InferShape says",
          name(), i, text_of(given).c_str(), static_cast<int>(given.format), text_of(inferred).c_str(),
          static_cast<int>(inferred.format));
  }
  return atb::NO_ERROR;
}

Status BuiltIn::check_launch_mode(const VariantPack& pack, ContextImpl& context) const {
  if (!executed_ || context.GetLaunchMode() != atb::GRAPH_LAUNCH_MODE) return atb::NO_ERROR;
  if (same_descs(in_descs_, pack.inTensors) && same_descs(out_descs_, pack.outTensors)) return atb::NO_ERROR;
  return fail(
      atb::ERROR_INVALID_TENSOR_DIM,
      "%s: Setup got other shapes after the first Execute, but with GRAPH_LAUNCH_MODE they must stay; make "
      "another operation for them",
      name());
}

Status BuiltIn::Execute(const VariantPack& pack, std::uint8_t* workspace, std::uint64_t workspace_size,
                        atb::Context* context) {
  try {
    return execute(pack, workspace, workspace_size, context);
  } catch (...) {
    return caught(atb::ERROR_RT_FAIL, name(), "Execute");
  }
}

Status BuiltIn::execute(const VariantPack& pack, std::uint8_t* workspace, std::uint64_t workspace_size,
                        atb::Context* context) {
  if (context == nullptr)
    return fail(atb::ERROR_INVALID_PARAM, "%s: context is null in Execute; pass the one of Setup", name());
  ContextImpl* found = find_context(context);
  if (found == nullptr)
    return fail(
        atb::ERROR_INVALID_CONTEXT_ADDR,
        "%s: context %p of Execute is not alive; it must be the one of Setup and exist until the stream has "
        "been synchronised",
        name(), static_cast<void*>(context));
  if (!ready_)
    return fail(atb::ERROR_INVALID_PARAM,
                "%s: Execute was called without a successful Setup before; call Setup first", name());
  MOEYARD_ATB_TRY(check_call(pack, workspace, workspace_size, *found));
  const atb::ExecuteType type = execute_type();
  if (type != atb::EXECUTE_LAUNCH) {
    MOEYARD_ATB_TRY(take(pack, workspace, *found));
    prepared_ = true;
  }
  if (type == atb::EXECUTE_PRELAUNCH) return atb::NO_ERROR;
  if (!prepared_)
    return fail(
        atb::ERROR_INVALID_PARAM,
        "%s: Execute was called with EXECUTE_LAUNCH but nothing is prepared; call it with EXECUTE_PRELAUNCH "
        "first",
        name());
  const aclrtStream stream = found->stream(stream_id_);
  MOEYARD_ATB_TRY(launch(*found, stream));
  prepared_ = false;
  executed_ = true;
  if (synchronises() && aclrtSynchronizeStream(stream) != 0)
    return fail(atb::ERROR_RT_FAIL, "%s: the stream failed when it was synchronised after Execute", name());
  return atb::NO_ERROR;
}

Status BuiltIn::check_call(const VariantPack& pack, const std::uint8_t* workspace,
                           std::uint64_t workspace_size, ContextImpl& context) const {
  if (stream_id_ >= context.streams())
    return fail(atb::ERROR_INVALID_PARAM,
                "%s: its stream id is %u but the context has %zu streams; see SetExecuteStreams", name(),
                stream_id_, context.streams());
  if (context.stream(stream_id_) == nullptr)
    return fail(atb::ERROR_INVALID_PARAM, "%s: stream %u of the context is null; call SetExecuteStream first",
                name(), stream_id_);
  if (&context != context_)
    return fail(atb::ERROR_INVALID_PARAM, "%s: the context of Execute is not the one of Setup; pass the same",
                name());
  if (workspace_size < workspace_size_)
    return fail(atb::ERROR_INVALID_PARAM,
                "%s: workspaceSize is %llu but must be at least %llu, what Setup returned", name(),
                static_cast<unsigned long long>(workspace_size),
                static_cast<unsigned long long>(workspace_size_));
  if (workspace == nullptr && workspace_size_ > 0)
    return fail(atb::ERROR_INVALID_PARAM,
                "%s: workspace is null but must hold %llu bytes; allocate it with aclrtMalloc", name(),
                static_cast<unsigned long long>(workspace_size_));
  if (pack.inTensors.size() != signature_.inputs || pack.outTensors.size() != signature_.outputs)
    return fail(atb::ERROR_INVALID_PARAM,
                "%s: Execute got %zu inTensors and %zu outTensors but Setup had %u and %u", name(),
                pack.inTensors.size(), pack.outTensors.size(), signature_.inputs, signature_.outputs);
  MOEYARD_ATB_TRY(check_tensors(pack.inTensors, "inTensors", 0));
  MOEYARD_ATB_TRY(check_tensors(pack.outTensors, "outTensors", pack.inTensors.size()));
  return check_overlaps(pack);
}

Status BuiltIn::check_tensors(const atb::SVector<atb::Tensor>& tensors, const char* what,
                              std::size_t first) const {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const atb::Tensor& tensor = tensors.data()[i];
    const std::uint64_t bytes = bytes_[first + i];
    if (bytes == 0) continue;  // an optional input that is not given
    if (tensor.dataSize != bytes)
      return fail(
          atb::ERROR_INVALID_PARAM,
          "%s: %s[%zu] has dataSize %llu but must have %llu, the bytes of %s; see Utils::GetTensorSize",
          name(), what, i, static_cast<unsigned long long>(tensor.dataSize),
          static_cast<unsigned long long>(bytes), text_of(first == 0 ? in_descs_[i] : out_descs_[i]).c_str());
    if (tensor.deviceData == nullptr && tensor.hostData == nullptr)
      return fail(atb::ERROR_INVALID_PARAM,
                  "%s: %s[%zu] has neither deviceData nor hostData; give it device memory of %llu bytes",
                  name(), what, i, static_cast<unsigned long long>(bytes));
  }
  return atb::NO_ERROR;
}

// Results are written while inputs are still being read.
Status BuiltIn::check_overlaps(const VariantPack& pack) const {
  const std::size_t inputs = pack.inTensors.size();
  for (std::size_t o = 0; o < pack.outTensors.size(); ++o) {
    const auto* out = static_cast<const char*>(pack.outTensors.data()[o].deviceData);
    const char* out_end = out + bytes_[inputs + o];
    for (std::size_t i = 0; i < inputs && out != nullptr; ++i) {
      const auto* in = static_cast<const char*>(pack.inTensors.data()[i].deviceData);
      const char* in_end = in + bytes_[i];
      if (in == nullptr || bytes_[i] == 0 || in_end <= out || out_end <= in) continue;
      if (signature_.in_place && in == out && in_end == out_end) continue;
      return fail(atb::ERROR_INVALID_TENSOR_ADDR,
                  "%s: outTensors[%zu] at %p overlaps inTensors[%zu] at %p; give it memory of its own",
                  name(), o, static_cast<const void*>(out), i, static_cast<const void*>(in));
    }
  }
  return atb::NO_ERROR;
}

}  // namespace moeyard::atb_layer
