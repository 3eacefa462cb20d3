// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace moeyard {

// std::move_only_function's twin for C++20: owns any callable, small ones without allocation.
template <class Signature>
class MoveOnlyFunction;

template <class R, class... Args>
class MoveOnlyFunction<R(Args...)> {
 public:
  MoveOnlyFunction() = default;

  template <class F>
  requires(!std::is_same_v<std::decay_t<F>, MoveOnlyFunction> &&
           std::is_invocable_r_v<R, std::decay_t<F>&, Args...>) MoveOnlyFunction(F&& callable) {
    using Callable = std::decay_t<F>;
    if constexpr (fits<Callable>) {
      new (&storage_) Callable(std::forward<F>(callable));
      table_ = &kInPlace<Callable>;
    } else {
      new (&storage_) Callable*(new Callable(std::forward<F>(callable)));
      table_ = &kOnHeap<Callable>;
    }
  }
  MoveOnlyFunction(MoveOnlyFunction&& other) noexcept { take(other); }
  MoveOnlyFunction& operator=(MoveOnlyFunction&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  ~MoveOnlyFunction() { reset(); }

  explicit operator bool() const { return table_ != nullptr; }
  R operator()(Args... args) { return table_->call(&storage_, std::forward<Args>(args)...); }

 private:
  static constexpr std::size_t kInlineBytes = 48;
  template <class F>
  static constexpr bool fits =
      sizeof(F) <= kInlineBytes &&
      alignof(F) <= alignof(std::max_align_t) && std::is_nothrow_move_constructible_v<F>;

  struct Table {
    R (*call)(void*, Args&&...);
    void (*move)(void* to, void* from) noexcept;
    void (*destroy)(void*) noexcept;
  };
  template <class F>
  static constexpr Table kInPlace{
      [](void* self, Args&&... args) -> R { return (*static_cast<F*>(self))(std::forward<Args>(args)...); },
      [](void* to, void* from) noexcept {
        new (to) F(std::move(*static_cast<F*>(from)));
        static_cast<F*>(from)->~F();
      },
      [](void* self) noexcept { static_cast<F*>(self)->~F(); }};
  template <class F>
  static constexpr Table kOnHeap{
      [](void* self, Args&&... args) -> R { return (**static_cast<F**>(self))(std::forward<Args>(args)...); },
      [](void* to, void* from) noexcept { new (to) F*(*static_cast<F**>(from)); },
      [](void* self) noexcept { delete *static_cast<F**>(self); }};

  void take(MoveOnlyFunction& other) noexcept {
    table_ = std::exchange(other.table_, nullptr);
    if (table_ != nullptr) table_->move(&storage_, &other.storage_);
  }
  void reset() noexcept {
    if (table_ != nullptr) std::exchange(table_, nullptr)->destroy(&storage_);
  }

  alignas(std::max_align_t) std::byte storage_[kInlineBytes];
  const Table* table_ = nullptr;
};

}  // namespace moeyard
