// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "atb/common_op_params.h"
#include "atb/delegating.h"
#include "atb/kind.h"

namespace moeyard::atb_layer {
namespace {

using Param = atb::common::IfCondParam;

// One of two operations, which stay the program's.
class IfCondOperation final : public DelegatingOperation {
 public:
  explicit IfCondOperation(const Param& param) : DelegatingOperation("IfCondOperation") { update(param); }
  const Param& param() const { return param_; }
  void update(const Param& param) {
    param_ = param;
    start_over({.inputs = param.opA->GetInputNum(), .outputs = param.opA->GetOutputNum(), .in_place = true});
  }
  void set_stream_id(std::uint32_t id) override {
    BuiltIn::set_stream_id(id);
    set_stream_of(param_.opA, id);
    set_stream_of(param_.opB, id);
  }
  std::int64_t stream_of_work() const override {
    const std::int64_t a = stream_of(param_.opA), b = stream_of(param_.opB);
    return a == b ? a : Piece::kSeveral;
  }

 private:
  atb::Operation* choose() const override { return param_.handle(param_.userData) ? param_.opA : param_.opB; }

  Param param_;
};

}  // namespace

template <>
struct Kind<Param> {
  using Operation = IfCondOperation;
  static constexpr const char* kName = "IfCondOperation";
  // Functions cannot be compared: no parameter equals another one.
  static double fields(const Param&) { return std::numeric_limits<double>::quiet_NaN(); }
  static atb::Status check(const Param& p) {
    const char* missing = p.userData == nullptr ? "userData"
                          : !p.handle           ? "handle"
                          : p.opA == nullptr    ? "opA"
                          : p.opB == nullptr    ? "opB"
                                                : nullptr;
    if (missing != nullptr)
      return fail(atb::ERROR_INVALID_PARAM, "%s: %s is null but is required", kName, missing);
    if (p.opA->GetInputNum() == p.opB->GetInputNum() && p.opA->GetOutputNum() == p.opB->GetOutputNum())
      return atb::NO_ERROR;
    return fail(atb::ERROR_INVALID_PARAM,
                "%s: opA has %u inputs and %u outputs, opB %u and %u, but both must have as many", kName,
                p.opA->GetInputNum(), p.opA->GetOutputNum(), p.opB->GetInputNum(), p.opB->GetOutputNum());
  }
};

template struct Exported<Param>;

}  // namespace moeyard::atb_layer
