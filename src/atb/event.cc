// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "atb/common_op_params.h"
#include "atb/kind.h"

namespace moeyard::atb_layer {
namespace {

using Param = atb::common::EventParam;

// Orders streams; has no tensors.
class EventOperation final : public ParamOperation<BuiltIn, Param> {
  using ParamOperation::ParamOperation;

  atb::Status plan(const atb::VariantPack&, ContextImpl&, std::uint64_t&) override { return atb::NO_ERROR; }
  atb::Status take(const atb::VariantPack&, std::uint8_t*, ContextImpl&) override { return atb::NO_ERROR; }
  atb::Status launch(ContextImpl&, aclrtStream stream) override {
    aclError code = 0;
    if (param().operatorType == Param::RECORD) code = aclrtRecordEvent(param().event, stream);
    if (param().operatorType == Param::WAIT) code = aclrtStreamWaitEvent(stream, param().event);
    if (code == 0) return atb::NO_ERROR;
    return fail(atb::ERROR_RT_FAIL, "%s: the runtime refused the event with %d", name(),
                static_cast<int>(code));
  }
};

}  // namespace

template <>
struct Kind<Param> {
  using Operation = EventOperation;
  static constexpr const char* kName = "EventOperation";
  static Signature signature(const Param&) { return {.inputs = 0, .outputs = 0}; }
  static atb::Status infer(const Param&, const Descs&, Descs&) { return atb::NO_ERROR; }
  static auto fields(const Param& p) { return std::tie(p.event, p.operatorType); }
  static atb::Status check(const Param& p) {
    if (p.operatorType < Param::UNDEFINED || p.operatorType > Param::WAIT)
      return fail(atb::ERROR_INVALID_PARAM, "%s: operatorType is %d but must be UNDEFINED, RECORD or WAIT",
                  kName, static_cast<int>(p.operatorType));
    if (p.operatorType != Param::UNDEFINED && p.event == nullptr)
      return fail(atb::ERROR_INVALID_PARAM, "%s: event is null; make it with aclrtCreateEvent", kName);
    return atb::NO_ERROR;
  }
};

template struct Exported<Param>;

}  // namespace moeyard::atb_layer
