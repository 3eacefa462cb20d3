// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "base/product.h"
#include "base/tensor_view.h"

// A contract describes an operator as data: its parameters, their dtypes and shapes, and the rules between
// them, each with the code that CANN documents for it. Argument checks, their messages and everything that
// explains an operator read this one description. See docs/add-an-operator.md.
namespace moeyard::contract {

struct Compiled;  // shape expressions, parsed once (check.cc)

// Where a parameter's value is in the operator's argument struct. Made from a member pointer, which also says
// what kind of value it is.
struct Access {
  TensorView* (*tensor)(void*) = nullptr;
  TensorListView* (*list)(void*) = nullptr;
  const IntArrayView* (*integers)(const void*) = nullptr;
  const ScalarView* (*scalar)(const void*) = nullptr;
  std::int64_t (*integer)(const void*) = nullptr;
  double (*number)(const void*) = nullptr;
  std::string_view (*text)(const void*) = nullptr;
};

enum class Direction : std::uint8_t { in, out, in_out, attribute };

// One parameter, in the order of the prototype and with its spelling.
struct Param {
  std::string_view name;
  Direction direction;
  Access access;
  Dtypes dtypes = {};             // what some mode of some product accepts; rules narrow it
  std::string_view shape = {};    // see "Shapes" below; empty: only rules speak of it
  std::string_view meaning = {};  // for people: what it holds, units
  bool required = true;
  std::string_view same_dtype_as = {};
  bool dense = false;        // an output that CANN documents as contiguous-only
  bool format_free = false;  // its format is not looked at
  bool in_place = false;     // an output that may be the same tensor as an input

  constexpr Param optional() const {
    Param changed = *this;
    changed.required = false;
    return changed;
  }
  constexpr Param like(std::string_view other) const {
    Param changed = *this;
    changed.same_dtype_as = other;
    return changed;
  }
  constexpr Param any_format() const {
    Param changed = *this;
    changed.format_free = true;
    return changed;
  }
  constexpr Param or_in_place() const {
    Param changed = *this;
    changed.in_place = true;
    return changed;
  }
  constexpr Param contiguous_only() const {
    Param changed = *this;
    changed.dense = true;
    return changed;
  }
};

// Shapes: a list of dimensions separated by commas, alternatives separated by "|" (the first one with the
// tensor's number of dimensions counts); "" any shape, "()" a scalar. A dimension is
//   BS         a name: bound by the first tensor that has it, or computed (Dim), or an attribute of that name
//   4 + 2*W    an expression of names and numbers with + - * / ( )
//   >= A*128   at least that
//   *          anything; "..." as the first dimension stands for any number of leading ones
struct Dim {
  std::string_view name;
  std::string_view meaning;
  std::int64_t (*value)(const void* args) = nullptr;  // null: bound by the first tensor that has it
};

// When a rule is checked: see check() for the order of everything.
enum class Stage : std::uint8_t { nulls, strings, attributes, shapes };

struct Rule {
  Stage stage;
  Products on;
  std::int32_t code;         // 0: the contract's code for rules
  std::string_view subject;  // the parameter that the message leads with
  std::string_view must;  // completes "<subject> is <value> but must "; names in it are printed with values
  bool (*holds)(const void* args);
  std::string_view way_out = {};
};

// A number that the arguments of a call determine.
struct Figure {
  std::string_view name;
  std::string_view meaning;
  std::int64_t (*value)(const void* args);  // of a call that the contract accepts
};

// The documented codes of the checks that all operators share.
struct Codes {
  std::int32_t null = ACLNN_ERR_PARAM_NULLPTR;
  std::int32_t dtype = ACLNN_ERR_PARAM_INVALID;
  std::int32_t same_dtype = ACLNN_ERR_PARAM_INVALID;
  std::int32_t format = ACLNN_ERR_PARAM_INVALID;
  std::int32_t shape = ACLNN_ERR_PARAM_INVALID;
  std::int32_t rule = ACLNN_ERR_PARAM_INVALID;
};

struct Description {
  std::string_view name;     // "MoeUpdateExpert": the functions are aclnn<name>[V2...]
  std::string_view family;   // its folder: dispatch, routing, balance, afd, compute
  std::string_view summary;  // one sentence
  std::string_view source;   // the document that defines it
  Products products = kEverywhere;
  Codes codes = {};
  std::span<const Param> params = {};
  std::span<const Dim> dims = {};
  std::span<const Rule> rules = {};
  std::span<const Figure> needs = {};  // of its surroundings, 0: nothing; HCCL_BUFFSIZE in MiB, say
  std::span<const Figure> facts = {};  // what all ranks of its group must pass alike
};

class Contract {
 public:
  explicit Contract(const Description& description);
  ~Contract();
  Contract(const Contract&) = delete;
  Contract& operator=(const Contract&) = delete;

  const Description& about() const { return about_; }
  const Compiled& compiled() const { return *compiled_; }
  std::span<const Param* const> tensors() const { return tensors_; }  // and tensor lists, in order

 private:
  const Description about_;
  const std::unique_ptr<const Compiled> compiled_;
  const std::vector<const Param*> tensors_;
};

// Every contract there is, by family and name: each makes itself known.
std::vector<const Contract*> all();

// --- Making parameters and rules -------------------------------------------------------------------------

namespace detail {
template <class M>
struct MemberOf;
template <class A, class V>
struct MemberOf<V A::*> {
  using Args = A;
  using Value = V;
};

template <auto kMember>
constexpr Access access() {
  using Args = typename MemberOf<decltype(kMember)>::Args;
  using Value = typename MemberOf<decltype(kMember)>::Value;
  Access made;
  if constexpr (std::is_same_v<Value, TensorView>)
    made.tensor = [](void* args) { return &(static_cast<Args*>(args)->*kMember); };
  else if constexpr (std::is_same_v<Value, TensorListView>)
    made.list = [](void* args) { return &(static_cast<Args*>(args)->*kMember); };
  else if constexpr (std::is_same_v<Value, IntArrayView>)
    made.integers = [](const void* args) { return &(static_cast<const Args*>(args)->*kMember); };
  else if constexpr (std::is_integral_v<Value>)
    made.integer = [](const void* args) {
      return static_cast<std::int64_t>(static_cast<const Args*>(args)->*kMember);
    };
  else if constexpr (std::is_same_v<Value, ScalarView>)
    made.scalar = [](const void* args) { return &(static_cast<const Args*>(args)->*kMember); };
  else if constexpr (std::is_floating_point_v<Value>)
    made.number = [](const void* args) {
      return static_cast<double>(static_cast<const Args*>(args)->*kMember);
    };
  else
    made.text = [](const void* args) -> std::string_view { return static_cast<const Args*>(args)->*kMember; };
  return made;
}

template <class Args, class Predicate>
constexpr auto erased(Predicate) {
  static_assert(std::is_empty_v<Predicate>, "a lambda without captures; a function goes into one");
  return [](const void* args) { return Predicate{}(*static_cast<const Args*>(args)); };
}
}  // namespace detail

template <auto kMember>
constexpr Param in(std::string_view name, Dtypes dtypes, std::string_view shape, std::string_view meaning) {
  return {name, Direction::in, detail::access<kMember>(), dtypes, shape, meaning};
}
template <auto kMember>
constexpr Param out(std::string_view name, Dtypes dtypes, std::string_view shape, std::string_view meaning) {
  return {name, Direction::out, detail::access<kMember>(), dtypes, shape, meaning};
}
template <auto kMember>
constexpr Param in_out(std::string_view name, Dtypes dtypes, std::string_view shape,
                       std::string_view meaning) {
  return {name, Direction::in_out, detail::access<kMember>(), dtypes, shape, meaning};
}
template <auto kMember>
constexpr Param attribute(std::string_view name, std::string_view meaning) {
  return {name, Direction::attribute, detail::access<kMember>(), {}, {}, meaning};
}

// A dimension that the arguments determine:
// dim<Args>("L", "experts of this rank", [](const Args& a) { ... })
template <class Args, class Value>
constexpr Dim dim(std::string_view name, std::string_view meaning, Value) {
  return {name, meaning,
          [](const void* args) -> std::int64_t { return Value{}(*static_cast<const Args*>(args)); }};
}
constexpr Dim dim(std::string_view name, std::string_view meaning) { return {name, meaning}; }

template <class Args, class Value>
constexpr Figure figure(std::string_view name, std::string_view meaning, Value) {
  return {name, meaning,
          [](const void* args) -> std::int64_t { return Value{}(*static_cast<const Args*>(args)); }};
}

// rule<Args>(Stage::shapes, kA3 | k950, "BS", "be at most 512",
//            [](const Args& a) { return a.tokens() <= 512; })
template <class Args, class Predicate>
constexpr Rule rule(Stage stage, Products on, std::string_view subject, std::string_view must, Predicate,
                    std::string_view way_out = {}, std::int32_t code = 0) {
  return {stage, on, code, subject, must, detail::erased<Args>(Predicate{}), way_out};
}

namespace detail {
template <class T>
constexpr void append(T*& to, const T& one) {
  *to++ = one;
}
template <class T, std::size_t kSize>
constexpr void append(T*& to, const T (&list)[kSize]) {
  for (const T& one : list) *to++ = one;
}
}  // namespace detail

// Parameters or rules, single ones and lists of them, as one list: joined<Rule>(kShared, rule<A>(...), kMore).
template <class T, class... Parts>
constexpr auto joined(const Parts&... parts) {
  std::array<T, ((sizeof(Parts) / sizeof(T)) + ...)> all{};
  T* to = all.data();
  (detail::append<T>(to, parts), ...);
  return all;
}

}  // namespace moeyard::contract
