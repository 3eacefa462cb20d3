// Moeyard. SPDX-License-Identifier: Apache-2.0
// A product whose rows or sums are spread over ranks: a graph of the operations that it stands for.
#include <memory>

#include "atb/communicators.h"
#include "atb/delegating.h"
#include "atb/infer_op_params.h"
#include "atb/kind.h"
#include "atb/linear_parallel_graph.h"

namespace moeyard::atb_layer {
namespace {

using Param = atb::infer::LinearParallelParam;

struct Destroy {
  void operator()(atb::Operation* operation) const { atb::DestroyOperation(operation); }
};
using Owned = std::unique_ptr<atb::Operation, Destroy>;

class LinearParallelOperation final : public DelegatingOperation {
 public:
  explicit LinearParallelOperation(const Param& param) : DelegatingOperation("LinearParallelOperation") {
    update(param);
  }
  const Param& param() const { return param_; }
  void update(const Param& param) {
    atb::Operation* made = nullptr;
    if (make_parallel_linear(param, &made) != atb::NO_ERROR)
      throw std::bad_alloc();  // the parameter has been checked
    set_stream_of(made, stream_id());
    graph_.reset(made);
    param_ = param;
    start_over({.inputs = param.hasResidual ? 3u : 2u});
  }
  void set_stream_id(std::uint32_t id) override {
    BuiltIn::set_stream_id(id);
    set_stream_of(graph_.get(), id);
  }

 private:
  atb::Operation* choose() const override { return graph_.get(); }

  Owned graph_;
  Param param_;
};

}  // namespace

template <>
struct Kind<Param> {
  using Operation = LinearParallelOperation;
  static constexpr const char* kName = "LinearParallelOperation";
  static auto fields(const Param& p) {
    return std::tuple_cat(fields_of_ranks(p),
                          std::tie(p.transWeight, p.hasResidual, p.type, p.keepIntermediate, p.quantType,
                                   p.quantGroupSize, p.outDataType));
  }
  static atb::Status check(const Param& p) {
    MOEYARD_ATB_TRY(check_ranks(kName, Ranks::of(p), "lcoc"));
    if (p.type < Param::LINEAR_ALL_REDUCE || p.type > Param::GMM_REDUCE_SCATTER_ALLTOALLVC)
      return fail(atb::ERROR_INVALID_PARAM, "%s: type is %d but must be one of ParallelType", kName,
                  static_cast<int>(p.type));
    if (p.type > Param::PURE_LINEAR || p.keepIntermediate || p.quantType != Param::QUANT_TYPE_UNQUANT)
      return fail(
          atb::ERROR_INVALID_PARAM,
          "%s: type is %d, quantType %d and keepIntermediate %d, but only types 0 to 3 without quantisation "
          "and keepIntermediate are supported yet",
          kName, static_cast<int>(p.type), static_cast<int>(p.quantType), p.keepIntermediate ? 1 : 0);
    if (p.hasResidual && p.type != Param::LINEAR_ALL_REDUCE)
      return fail(atb::ERROR_INVALID_PARAM, "%s: hasResidual is true but must be false for type %d", kName,
                  static_cast<int>(p.type));
    return atb::NO_ERROR;
  }
};

template struct Exported<Param>;

}  // namespace moeyard::atb_layer
