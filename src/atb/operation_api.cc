// Moeyard. SPDX-License-Identifier: Apache-2.0
// What works on operations of any kind.
#include "atb/built_in.h"
#include "atb/failure.h"
#include "atb/graveyard.h"
#include "atb/kind.h"
#include "atb/operation_infra.h"

namespace atb {

class OperationImpl {
 public:
  uint32_t stream_id = 0;
};

OperationInfra::OperationInfra() : impl_(std::make_unique<OperationImpl>()) {}
OperationInfra::OperationInfra(const OperationInfra& other)
    : Operation(other), impl_(std::make_unique<OperationImpl>(*other.impl_)) {}
OperationInfra& OperationInfra::operator=(const OperationInfra& other) {
  *impl_ = *other.impl_;
  return *this;
}
OperationInfra::~OperationInfra() = default;

void OperationInfra::SetExecuteStreamId(uint32_t streamId) { impl_->stream_id = streamId; }
uint32_t OperationInfra::GetExecuteStreamId() const { return impl_->stream_id; }
aclrtStream OperationInfra::GetExecuteStream(Context* context) {
  const moeyard::atb_layer::ContextImpl* found = moeyard::atb_layer::find_context(context);
  return found == nullptr ? nullptr : found->stream(impl_->stream_id);
}

using namespace moeyard::atb_layer;

Status DestroyOperation(Operation* operation) {
  if (operation == nullptr) return NO_ERROR;
  try {
    switch (fate_of(operation)) {
      case Fate::destroyed:
        warn("DestroyOperation: %p was destroyed before; nothing is done", static_cast<void*>(operation));
        return NO_ERROR;
      case Fate::owned:
        warn("DestroyOperation: %p belongs to a graph, which destroys it; nothing is done",
             static_cast<void*>(operation));
        return NO_ERROR;
      default:
        delete operation;
        return NO_ERROR;
    }
  } catch (...) {
    return caught(ERROR_INTERNAL_ERROR, "Operation", "DestroyOperation");
  }
}

Status SetExecuteStreamId(Operation* operation, uint32_t streamId) {
  if (operation == nullptr)
    return fail(ERROR_INVALID_PARAM, "SetExecuteStreamId: operation is null; pass what CreateOperation made");
  if (auto* built_in = dynamic_cast<BuiltIn*>(operation)) {
    built_in->set_stream_id(streamId);
    return NO_ERROR;
  }
  if (auto* own = dynamic_cast<OperationInfra*>(operation)) {
    own->SetExecuteStreamId(streamId);
    return NO_ERROR;
  }
  return fail(ERROR_INVALID_PARAM,
              "SetExecuteStreamId: the operation must be one of the library or derive from OperationInfra, "
              "others always "
              "run on stream 0");
}

uint32_t GetExecuteStreamId(Operation* operation) {
  if (const auto* built_in = dynamic_cast<const BuiltIn*>(operation)) return built_in->stream_id();
  if (const auto* own = dynamic_cast<const OperationInfra*>(operation)) return own->GetExecuteStreamId();
  return 0;
}

}  // namespace atb

namespace moeyard::atb_layer {

std::int64_t stream_of(const atb::Operation* operation) {
  if (const auto* built_in = dynamic_cast<const BuiltIn*>(operation)) return built_in->stream_of_work();
  if (const auto* own = dynamic_cast<const atb::OperationInfra*>(operation)) return own->GetExecuteStreamId();
  return 0;
}

void set_stream_of(atb::Operation* operation, std::uint32_t id) {
  if (auto* built_in = dynamic_cast<BuiltIn*>(operation)) built_in->set_stream_id(id);
  if (auto* own = dynamic_cast<atb::OperationInfra*>(operation)) own->SetExecuteStreamId(id);
}

atb::Status refuse_reserved(const char* name) {
  return fail(
      atb::ERROR_INVALID_PARAM,
      "%s: a reserved byte of the parameter is not 0; it was made for another version, or not initialised",
      name);
}

atb::Status refuse_pointer(const char* name, const char* function, const char* what) {
  return fail(atb::ERROR_INVALID_PARAM, "%s: %s of %s is null but is required", name, what, function);
}

atb::Status refuse_type(const char* name, const char* function) {
  return fail(atb::ERROR_INVALID_PARAM,
              "%s: the operation of %s was not created with a parameter of this type", name, function);
}

}  // namespace moeyard::atb_layer
