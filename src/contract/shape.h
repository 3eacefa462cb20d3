// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace moeyard::contract {

// A dimension's expression in postfix order: numbers, names (by index into the contract's names) and
// operators.
struct Term {
  enum class Op : std::uint8_t { number, name, add, subtract, multiply, divide } op;
  std::int64_t value;  // the number, or the index of the name
};

struct DimRule {
  enum class Kind : std::uint8_t { anything, exactly, at_least } kind;
  std::vector<Term> terms;
};

struct ShapeAlternative {
  bool any_leading = false;  // begins with "..."
  std::vector<DimRule> dims;
};

struct Shape {
  std::string text;                            // as written, for messages
  std::vector<ShapeAlternative> alternatives;  // none: any shape
};

// Parses the shape language of contract.h. `index_of` gives the index of a name. Throws std::invalid_argument
// for text that is not in the language: contracts are ours, so a test of every contract finds it.
Shape parse_shape(std::string_view text, const std::vector<std::string>& names);

// What the names of a contract stand for in one call, by index, as far as it is known.
class Values {
 public:
  static constexpr std::size_t kMost = 64;

  bool has(std::size_t name) const { return (known_ >> name & 1) != 0; }
  std::int64_t operator[](std::size_t name) const { return values_[name]; }
  void set(std::size_t name, std::int64_t value) {
    values_[name] = value;
    known_ |= std::uint64_t{1} << name;
  }

 private:
  std::uint64_t known_ = 0;
  std::int64_t values_[kMost];  // set where known
};

// The value of an expression; none if it names a dimension without a value yet, or divides by zero.
std::optional<std::int64_t> evaluate(std::span<const Term> terms, const Values& values);

// Whether the expression is one name and nothing else: such a dimension binds the name when it has no value
// yet.
std::optional<std::size_t> single_name(const DimRule& rule);

}  // namespace moeyard::contract
