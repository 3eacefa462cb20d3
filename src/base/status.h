// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace moeyard {

// Success, or a code of one of CANN's return code families with a message for people.
//
// The code is what a C function returns (aclError, aclnnStatus, HcclResult): whoever makes the Status knows
// which of them its caller speaks. The message is complete when it is made: operator or function, parameter,
// value, rule, way out, one sentence (see fail() in base/errors.h, which puts the bracketed text code in
// front).
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(std::int32_t code, std::string message)
      : failure_(std::make_shared<const Failure>(Failure{code, std::move(message)})) {}

  bool ok() const { return failure_ == nullptr; }
  std::int32_t code() const { return ok() ? 0 : failure_->code; }
  const std::string& message() const;

 private:
  struct Failure {
    std::int32_t code;
    std::string message;
  };
  std::shared_ptr<const Failure> failure_;
};

// A T, or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result : public tl::expected<T, Status> {
 public:
  using Base = tl::expected<T, Status>;
  Result(T value) : Base(std::move(value)) {}
  Result(Status failure) : Base(tl::unexpected<Status>(std::move(failure))) {}
};

namespace detail {
inline bool succeeded(const Status& status) { return status.ok(); }
template <class T>
bool succeeded(const Result<T>& result) {
  return result.has_value();
}
inline Status take_failure(Status&& status) { return std::move(status); }
template <class T>
Status take_failure(Result<T>&& result) {
  return std::move(result).error();
}
inline void take_value(Status&&) {}
template <class T>
T take_value(Result<T>&& result) {
  return *std::move(result);
}
}  // namespace detail

// The value of a Result (nothing for a Status), or leaves the calling function with its failure:
//   const int rank = MOEYARD_TRY(find_rank(name));
#define MOEYARD_TRY(expression)                                       \
  __extension__({                                                     \
    auto moeyard_try = (expression);                                  \
    if (!::moeyard::detail::succeeded(moeyard_try)) [[unlikely]]      \
      return ::moeyard::detail::take_failure(std::move(moeyard_try)); \
    ::moeyard::detail::take_value(std::move(moeyard_try));            \
  })

}  // namespace moeyard
