// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <tuple>

#include "atb/exported.h"
#include "atb/failure.h"
#include "atb/kernel_operation.h"

namespace moeyard::atb_layer {

// What a parameter struct means. A specialisation for each of them has
//
//   static constexpr const char* kName;                    "GatherOperation"
//   static auto fields(const Param&);                      std::tie of all members but the reserved ones
//   static atb::Status check(const Param&);                rules of the parameter itself
//   static Signature signature(const Param&);
//   static atb::Status infer(const Param&, const Descs& inputs, Descs& outputs);    rules of shapes; shapes of the outputs
//   static void describe(const Param&, MoeyardAtbCall&);   the call
//
// or is an operation of another kind, which has its own class:
//
//   using Operation = ...;                                 derives from BuiltIn, is made from a Param, has param() and
//                                                          update(const Param&)
template <class Param>
struct Kind;

// An operation that is made from a Param and answers with its Kind.
template <class Base, class Param>
class ParamOperation : public Base {
 public:
  explicit ParamOperation(const Param& param) : Base(Kind<Param>::kName) { update(param); }
  const Param& param() const { return param_; }
  void update(const Param& param) {
    param_ = param;
    Base::start_over(Kind<Param>::signature(param));
  }

 private:
  atb::Status infer(const Descs& inputs, Descs& outputs) const override {
    return Kind<Param>::infer(param_, inputs, outputs);
  }

  Param param_;
};

template <class Param>
class OperationOf final : public ParamOperation<KernelOperation, Param> {
  using ParamOperation<KernelOperation, Param>::ParamOperation;
  void describe(MoeyardAtbCall& call) const override { Kind<Param>::describe(this->param(), call); }
};

template <class Param>
struct ClassOf {
  using Type = OperationOf<Param>;
};
template <class Param>
requires requires { typename Kind<Param>::Operation; }
struct ClassOf<Param> {
  using Type = typename Kind<Param>::Operation;
};

// Reserved bytes: set by a program that was made for another version.
template <class Reserved>
bool is_zero(const Reserved& bytes) {
  for (const std::uint8_t byte : bytes)
    if (byte != 0) return false;
  return true;
}

atb::Status refuse_reserved(const char* name);
atb::Status refuse_pointer(const char* name, const char* function, const char* what);
atb::Status refuse_type(const char* name, const char* function);

template <class Param>
atb::Status check_param(const Param& param) {
  if constexpr (requires { param.rsv; })
    if (!is_zero(param.rsv)) return refuse_reserved(Kind<Param>::kName);
  return Kind<Param>::check(param);
}

template <class Param>
atb::Status create(const Param& param, atb::Operation** operation) {
  try {
    if (operation == nullptr) return refuse_pointer(Kind<Param>::kName, "CreateOperation", "operation");
    MOEYARD_ATB_TRY(check_param(param));
    *operation = new typename ClassOf<Param>::Type(param);
    return atb::NO_ERROR;
  } catch (...) {
    return caught(atb::ERROR_OUT_OF_HOST_MEMORY, Kind<Param>::kName, "CreateOperation");
  }
}

template <class Param>
atb::Status clone(const atb::Operation* operation, Param& param) {
  try {
    if (operation == nullptr) return refuse_pointer(Kind<Param>::kName, "CloneOperationParam", "operation");
    const auto* own = dynamic_cast<const typename ClassOf<Param>::Type*>(operation);
    if (own == nullptr) return refuse_type(Kind<Param>::kName, "CloneOperationParam");
    param = own->param();
    return atb::NO_ERROR;
  } catch (...) {
    return caught(atb::ERROR_OUT_OF_HOST_MEMORY, Kind<Param>::kName, "CloneOperationParam");
  }
}

template <class Param>
atb::Status update(atb::Operation* operation, const Param& param) {
  try {
    if (operation == nullptr) return refuse_pointer(Kind<Param>::kName, "UpdateOperationParam", "operation");
    auto* own = dynamic_cast<typename ClassOf<Param>::Type*>(operation);
    if (own == nullptr) return refuse_type(Kind<Param>::kName, "UpdateOperationParam");
    MOEYARD_ATB_TRY(check_param(param));
    if (Kind<Param>::fields(own->param()) == Kind<Param>::fields(param)) return atb::NO_ERROR;
    own->update(param);
    return atb::NO_ERROR;
  } catch (...) {
    return caught(atb::ERROR_OUT_OF_HOST_MEMORY, Kind<Param>::kName, "UpdateOperationParam");
  }
}

}  // namespace moeyard::atb_layer

// Defined where Kinds are: a file that includes this header can call them for its own parameter structs only.
namespace atb {

template <typename OpParam>
Status CreateOperation(const OpParam& opParam, Operation** operation) {
  return moeyard::atb_layer::create(opParam, operation);
}
template <typename OpParam>
Status CloneOperationParam(const Operation* operation, OpParam& opParam) {
  return moeyard::atb_layer::clone(operation, opParam);
}
template <typename OpParam>
Status UpdateOperationParam(Operation* operation, const OpParam& opParam) {
  return moeyard::atb_layer::update(operation, opParam);
}

}  // namespace atb
