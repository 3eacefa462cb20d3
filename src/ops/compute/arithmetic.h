// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "executor/call.h"

namespace moeyard::ops {

enum class Arithmetic : std::uint8_t { add, subtract, multiply, divide };

// Parameters of aclnnAdd, aclnnSub, aclnnMul and aclnnDiv; see their headers.
struct ArithmeticArgs {
  Arithmetic kind;
  TensorView self, other;
  ScalarView alpha = ScalarView::of(1);  // of aclnnAdd and aclnnSub
  TensorView out;
};

struct ArithmeticOperator {
  using Args = ArithmeticArgs;
  struct Plan : executor::PlanBase {};
  static Result<Plan> plan(const char* function, const Args& args);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan);
};

struct Add : ArithmeticOperator {
  static const contract::Contract kContract;
};
struct Sub : ArithmeticOperator {
  static const contract::Contract kContract;
};
struct Mul : ArithmeticOperator {
  static const contract::Contract kContract;
};
struct Div : ArithmeticOperator {
  static const contract::Contract kContract;
};

// Parameters of aclnnMuls.
struct MulsArgs {
  TensorView self;
  ScalarView other;
  TensorView out;
};

struct Muls {
  using Args = MulsArgs;
  struct Plan : executor::PlanBase {};
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan);
};

}  // namespace moeyard::ops
