// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace moeyard::kernels {

// A kernel compiled for one SIMD target.
template <class Fn>
struct Variant {
  std::int64_t target;    // Highway's bit
  std::string_view name;  // "AVX2"
  Fn run;
};

namespace detail {
std::string_view name_of_target(std::int64_t target);
bool runs_here(std::int64_t target);
bool is_forced(std::int64_t target);  // MOEYARD_TARGET names it
}  // namespace detail

// Those of `compiled` that this machine can run, fastest first: the first is the one to use, the last one
// needs nothing of the processor. MOEYARD_TARGET moves one to the front.
template <class Fn>
std::vector<Variant<Fn>> runnable(std::initializer_list<Variant<Fn>> compiled) {
  std::vector<Variant<Fn>> found;
  for (Variant<Fn> variant : compiled) {
    if (variant.run == nullptr || !detail::runs_here(variant.target)) continue;
    variant.name = detail::name_of_target(variant.target);
    found.insert(detail::is_forced(variant.target) ? found.begin() : found.end(), variant);
  }
  return found;
}

}  // namespace moeyard::kernels
