// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "contract/shape.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <stdexcept>

namespace moeyard::contract {
namespace {

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '\'';
}

// Recursive descent over one dimension; writes postfix terms.
class ExpressionParser {
 public:
  ExpressionParser(std::string_view text, const std::vector<std::string>& names)
      : text_(text), names_(names) {}

  std::vector<Term> parse() {
    sum();
    skip_blanks();
    if (at_ != text_.size()) reject();
    return std::move(terms_);
  }

 private:
  void sum() {
    product();
    while (const char op = next_of("+-")) {
      product();
      terms_.push_back({op == '+' ? Term::Op::add : Term::Op::subtract, 0});
    }
  }
  void product() {
    factor();
    while (const char op = next_of("*/")) {
      factor();
      terms_.push_back({op == '*' ? Term::Op::multiply : Term::Op::divide, 0});
    }
  }
  void factor() {
    if (next_of("(") != 0) {
      sum();
      if (next_of(")") == 0) reject();
      return;
    }
    skip_blanks();
    const std::size_t begin = at_;
    if (at_ < text_.size() && is_name_start(text_[at_])) {
      while (at_ < text_.size() && is_name_char(text_[at_])) ++at_;
      const auto found = std::find(names_.begin(), names_.end(), text_.substr(begin, at_ - begin));
      if (found == names_.end()) reject();
      terms_.push_back({Term::Op::name, found - names_.begin()});
      return;
    }
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    if (at_ == begin) reject();
    terms_.push_back({Term::Op::number, std::stoll(std::string(text_.substr(begin, at_ - begin)))});
  }

  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  char next_of(std::string_view wanted) {
    skip_blanks();
    if (at_ < text_.size() && wanted.find(text_[at_]) != std::string_view::npos) return text_[at_++];
    return 0;
  }
  [[noreturn]] void reject() const {
    throw std::invalid_argument("cannot read the dimension '" + std::string(text_) + "' of a contract");
  }

  std::string_view text_;
  const std::vector<std::string>& names_;
  std::size_t at_ = 0;
  std::vector<Term> terms_;
};

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(separator, begin);
    parts.push_back(trim(text.substr(begin, end - begin)));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

}  // namespace

Shape parse_shape(std::string_view text, const std::vector<std::string>& names) {
  Shape shape{std::string(text), {}};
  if (trim(text).empty()) return shape;
  for (const std::string_view alternative : split(text, '|')) {
    ShapeAlternative& made = shape.alternatives.emplace_back();
    if (alternative == "()") continue;
    for (std::string_view dim : split(alternative, ',')) {
      if (dim == "..." && made.dims.empty() && !made.any_leading) {
        made.any_leading = true;
        continue;
      }
      if (dim == "*") {
        made.dims.push_back({DimRule::Kind::anything, {}});
        continue;
      }
      DimRule::Kind kind = DimRule::Kind::exactly;
      if (dim.starts_with(">=")) {
        kind = DimRule::Kind::at_least;
        dim.remove_prefix(2);
      }
      made.dims.push_back({kind, ExpressionParser(dim, names).parse()});
    }
  }
  return shape;
}

std::optional<std::int64_t> evaluate(std::span<const Term> terms, const Values& values) {
  std::array<std::int64_t, 16> stack;
  std::size_t depth = 0;
  for (const Term& term : terms) {
    if (term.op == Term::Op::number || term.op == Term::Op::name) {
      if (depth == stack.size()) return std::nullopt;
      const auto name = static_cast<std::size_t>(term.value);
      if (term.op == Term::Op::name && !values.has(name)) return std::nullopt;
      stack[depth++] = term.op == Term::Op::number ? term.value : values[name];
      continue;
    }
    const std::int64_t right = stack[--depth];
    std::int64_t& left = stack[depth - 1];
    switch (term.op) {
      case Term::Op::add:
        if (__builtin_add_overflow(left, right, &left)) return std::nullopt;
        break;
      case Term::Op::subtract:
        if (__builtin_sub_overflow(left, right, &left)) return std::nullopt;
        break;
      case Term::Op::multiply:
        if (__builtin_mul_overflow(left, right, &left)) return std::nullopt;
        break;
      default:
        if (right == 0) return std::nullopt;
        left /= right;
    }
  }
  return stack[0];
}

std::optional<std::size_t> single_name(const DimRule& rule) {
  if (rule.kind != DimRule::Kind::exactly || rule.terms.size() != 1 || rule.terms[0].op != Term::Op::name)
    return std::nullopt;
  return static_cast<std::size_t>(rule.terms[0].value);
}

}  // namespace moeyard::contract
