// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <type_traits>

#include "aclnn/aclnn_base.h"
#include "base/boundary.h"
#include "base/log.h"
#include "contract/check.h"
#include "executor/objects.h"
#include "runtime/stream.h"

// The corridor that every operator's two C functions go through. An operator is a struct
//
//   struct UpdateExpert {
//     using Args = UpdateExpertArgs;                 // TensorViews and attributes, filled by the C facade
//     struct Plan : executor::PlanBase { ... };      // what phase one decides; holds no addresses
//     static const contract::Contract kContract;
//     // After the contract has been checked:
//     static Result<Plan> plan(const char* function, const Args&);
//     // On the stream:
//     static Status run(const executor::Run&, const Args&, const Plan&);
//   };
//
// with, where it concerns ranks, these two as well:
//
//     // One of the phases refused the call:
//     static void refused(const char* function, const Args&, const Status&);
//     // What phase two takes before the call is queued, an Exchange for example; movable:
//     using Session = ...;
//     static Result<Session> open(const char* function, const Args&, const Plan&, runtime::Stream&);
//
// and then run() gets the session as its last argument.
namespace moeyard::executor {

// The part of a plan that the corridor reads.
struct PlanBase {
  std::int64_t workspace_bytes = 0;
  bool tiny = false;  // so little local work that handing it to the stream's thread would cost more
};

// What run() gets beside its arguments.
struct Run {
  const char* function;
  std::byte* workspace;
  int device;  // of the stream
};

// A call between its phases: arguments and plan of an operator whose type is no longer known.
class PlannedCall {
 public:
  PlannedCall(const char* function, const contract::Contract& contract)
      : function(function), contract(contract) {}
  virtual ~PlannedCall() = default;
  virtual void* args() = 0;
  virtual const PlanBase& plan() const = 0;
  virtual std::unique_ptr<PlannedCall> clone() const = 0;
  virtual Status open(runtime::Stream& stream) = 0;
  virtual void refused(const Status& why) = 0;
  virtual Status run(const Run& run) = 0;

  const char* const function;
  const contract::Contract& contract;
};

// Checks that need no operator type.
Status check_outputs(const char* function, const std::uint64_t* workspace_size, aclOpExecutor** executor);
Status check_addresses(const char* function, const contract::Contract& contract, void* args,
                       bool null_is_wrong);
// No output lies where an input does: data that is checked before it is used would change in between. Speaks of tensors
// without gaps whose addresses are known; others may lie between each other.
Status check_overlaps(const char* function, const contract::Contract& contract, void* args);
aclOpExecutor* make_executor(std::unique_ptr<PlannedCall> call);

// Phase two of every operator.
aclnnStatus run_call(const char* function, void* workspace, std::uint64_t workspace_size,
                     aclOpExecutor* executor, aclrtStream stream) noexcept;

namespace detail {

template <class Op>
void tell_peers(const char* function, const typename Op::Args& args, const Status& why) {
  if constexpr (requires { Op::refused(function, args, why); }) Op::refused(function, args, why);
}

struct NoSession {};
template <class Op>
struct SessionOfTrait {
  using Type = NoSession;
};
template <class Op>
requires requires { typename Op::Session; }
struct SessionOfTrait<Op> {
  using Type = std::optional<typename Op::Session>;
};
template <class Op>
using SessionOf = typename SessionOfTrait<Op>::Type;

template <class Op>
class Planned final : public PlannedCall {
 public:
  static constexpr bool kHasSession = !std::is_same_v<SessionOf<Op>, NoSession>;

  Planned(const char* function, typename Op::Args args, typename Op::Plan plan)
      : PlannedCall(function, Op::kContract), args_(std::move(args)), plan_(std::move(plan)) {}
  void* args() override { return &args_; }
  const PlanBase& plan() const override { return plan_; }
  std::unique_ptr<PlannedCall> clone() const override {
    return std::make_unique<Planned>(function, args_, plan_);
  }
  Status open([[maybe_unused]] runtime::Stream& stream) override {
    if constexpr (kHasSession) session_.emplace(MOEYARD_TRY(Op::open(function, args_, plan_, stream)));
    return {};
  }
  void refused(const Status& why) override { tell_peers<Op>(function, args_, why); }
  Status run(const Run& run) override {
    if constexpr (kHasSession)
      return Op::run(run, args_, plan_, *session_);
    else
      return Op::run(run, args_, plan_);
  }

 private:
  typename Op::Args args_;
  typename Op::Plan plan_;
  [[no_unique_address]] SessionOf<Op> session_;
};

template <class Op>
Result<typename Op::Plan> check_and_plan(const char* function, typename Op::Args& args) {
  MOEYARD_TRY(contract::check(Op::kContract, function, &args));
  MOEYARD_TRY(check_addresses(function, Op::kContract, &args, false));
  MOEYARD_TRY(check_overlaps(function, Op::kContract, &args));
  return Op::plan(function, args);
}

}  // namespace detail

// Phase one: `make_args` fills the operator's argument struct from the C parameters.
template <class Op, class MakeArgs>
aclnnStatus plan_call(const char* function, std::uint64_t* workspace_size, aclOpExecutor** executor,
                      MakeArgs&& make_args) noexcept {
  return c_boundary<AclnnApi, aclnnStatus>(function, [&]() -> Status {
    typename Op::Args args = make_args();
    Result<typename Op::Plan> plan = Status();
    if (Status outputs = check_outputs(function, workspace_size, executor); !outputs.ok())
      plan = std::move(outputs);
    else
      plan = detail::check_and_plan<Op>(function, args);
    if (!plan) {
      detail::tell_peers<Op>(function, args, plan.error());
      return std::move(plan).error();
    }
    const auto workspace_bytes = static_cast<std::uint64_t>(plan->workspace_bytes);
    if constexpr (requires { plan->describe(); }) log_plan("{}: {}", function, plan->describe());
    *executor =
        make_executor(std::make_unique<detail::Planned<Op>>(function, std::move(args), *std::move(plan)));
    *workspace_size = workspace_bytes;
    return {};
  });
}

}  // namespace moeyard::executor
