// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "contract/check.h"

#include <fmt/ranges.h>

#include <array>
#include <cctype>
#include <stdexcept>
#include <vector>

#include "base/errors.h"
#include "contract/registry.h"
#include "contract/shape.h"
#include "contract/survey.h"

namespace moeyard::contract {

// What is worked out once per contract.
struct Compiled {
  struct Tensor {  // or a list of them
    const Param* param;
    const Param* twin;  // that has the same dtype, or null
    Shape shape;
  };
  std::vector<std::string> names;  // that shapes may use: dims first, then integer attributes
  std::vector<Tensor> tensors;
  std::array<std::vector<const Rule*>, 4> rules;  // by stage
};

namespace {

constexpr std::int64_t kMostElements = INT64_C(1) << 56;  // their bits can still be counted

const Param* find_param(const Description& about, std::string_view name) {
  for (const Param& param : about.params)
    if (param.name == name) return &param;
  return nullptr;
}

std::vector<const Param*> tensors_of(const Description& about) {
  std::vector<const Param*> tensors;
  for (const Param& param : about.params)
    if (param.access.tensor != nullptr || param.access.list != nullptr) tensors.push_back(&param);
  return tensors;
}

std::unique_ptr<const Compiled> compile(const Description& about) {
  auto compiled = std::make_unique<Compiled>();
  for (const Dim& dim : about.dims) compiled->names.emplace_back(dim.name);
  for (const Param& param : about.params)
    if (param.access.integer != nullptr) compiled->names.emplace_back(param.name);
  if (compiled->names.size() > Values::kMost) throw std::invalid_argument("a contract has too many names");
  for (const Param* param : tensors_of(about)) {
    const Param* twin = param->same_dtype_as.empty() ? nullptr : find_param(about, param->same_dtype_as);
    if (twin == nullptr && !param->same_dtype_as.empty())
      throw std::invalid_argument("a contract names no parameter");
    compiled->tensors.push_back({param, twin, parse_shape(param->shape, compiled->names)});
  }
  for (const Rule& rule : about.rules) compiled->rules[static_cast<std::size_t>(rule.stage)].push_back(&rule);
  return compiled;
}

// The names, parts of names and numbers in a text.
std::vector<std::string_view> words_of(std::string_view text) {
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '\'';
  };
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin < text.size();) {
    if (!is_word(text[begin])) {
      ++begin;
      continue;
    }
    std::size_t end = begin;
    while (end < text.size() && is_word(text[end])) ++end;
    words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

// The arguments of one call under check.
class Checker {
 public:
  Checker(const Contract& contract, std::string_view function, const void* args)
      : contract_(contract),
        about_(contract.about()),
        compiled_(contract.compiled()),
        function_(function),
        args_(const_cast<void*>(args)) {}

  Status all() {
    if (survey_ != nullptr) begin_survey();
    if (!about_.products.has(here_)) MOEYARD_TRY(note(about_.name, no_kernel()));
    MOEYARD_TRY(end_of_stage());
    MOEYARD_TRY(nulls());
    MOEYARD_TRY(rules(Stage::nulls));
    MOEYARD_TRY(every_tensor<&Checker::well_formed>());
    MOEYARD_TRY(rules(Stage::strings));
    MOEYARD_TRY(every_tensor<&Checker::dtype>());
    MOEYARD_TRY(every_tensor<&Checker::format>());
    MOEYARD_TRY(rules(Stage::attributes));
    Status shapes = every_tensor<&Checker::shape>();
    if (survey_ != nullptr) tell_sizes();
    MOEYARD_TRY(std::move(shapes));
    MOEYARD_TRY(rules(Stage::shapes));
    MOEYARD_TRY(every_tensor<&Checker::output>());
    if (survey_ != nullptr) tell_figures();
    return {};
  }

  std::string sentence(std::string_view subject, std::string_view must, std::string_view way_out) {
    std::string text = fmt::format("{}: {} is {} but must {}", function_, subject, value_of(subject), must);
    const std::string others = values_named_in(must, subject);
    if (!others.empty()) text += fmt::format(" ({})", others);
    if (!way_out.empty()) text += fmt::format("; {}", way_out);
    return text;
  }

 private:
  Status broken(std::int32_t code, std::string_view subject, std::string_view must,
                std::string_view way_out = {}) {
    return fail(code, TextCode::operator_parameter, "{}", sentence(subject, must, way_out));
  }

  Status no_kernel() {
    return fail(ACLNN_ERR_INNER_FIND_KERNEL_ERROR, TextCode::operator_parameter,
                "{}: no kernel on this product: {} does not exist on {}; set MOEYARD_SOC to a product that "
                "has it, or to host",
                function_, about_.name, name_of(here_));
  }

  Status nulls() {
    for (const Param& param : about_.params) {
      if (!param.required) continue;
      const bool missing = param.access.tensor != nullptr     ? !param.access.tensor(args_)->present()
                           : param.access.list != nullptr     ? !param.access.list(args_)->given
                           : param.access.integers != nullptr ? !param.access.integers(args_)->given
                           : param.access.scalar != nullptr   ? !param.access.scalar(args_)->given
                                                              : false;
      if (missing)
        return fail(about_.codes.null, TextCode::operator_parameter,
                    "{}: {} is null but is required; pass {}", function_, param.name,
                    param.access.list != nullptr       ? "a tensor list"
                    : param.access.integers != nullptr ? "an array of integers"
                    : param.access.scalar != nullptr   ? "a scalar"
                                                       : "a tensor");
    }
    return {};
  }

  Status rules(Stage stage) {
    for (const Rule* rule : compiled_.rules[static_cast<std::size_t>(stage)]) {
      if (!rule->on.has(here_)) continue;
      if (survey_ != nullptr && speaks_of_broken(*rule)) continue;
      if (rule->holds(args_)) [[likely]]
        continue;
      MOEYARD_TRY(note(rule->subject, broken(rule->code != 0 ? rule->code : about_.codes.rule, rule->subject,
                                             rule->must, rule->way_out)));
    }
    return end_of_stage();
  }

  // `kOne` checks one tensor.
  template <Status (Checker::*kOne)(const Compiled::Tensor&, const TensorView&)>
  Status every_tensor() {
    for (const Compiled::Tensor& tensor : compiled_.tensors) {
      const Access& access = tensor.param->access;
      if (access.tensor != nullptr) {
        MOEYARD_TRY(if_present<kOne>(tensor, *access.tensor(args_)));
        continue;
      }
      for (const TensorView& view : access.list(args_)->items) MOEYARD_TRY(if_present<kOne>(tensor, view));
    }
    return end_of_stage();
  }

  template <Status (Checker::*kOne)(const Compiled::Tensor&, const TensorView&)>
  Status if_present(const Compiled::Tensor& tensor, const TensorView& view) {
    if (!view.present()) return {};
    Status found = (this->*kOne)(tensor, view);
    if (found.ok()) [[likely]]
      return {};
    return note(tensor.param->name, std::move(found));
  }

  Status well_formed(const Compiled::Tensor& tensor, const TensorView& view) {
    const Param& param = *tensor.param;
    const DtypeInfo* info = find_dtype(view.dtype);
    if (info == nullptr || info->bits == 0)
      return refuse(about_.codes.dtype, param, view, "have a data type that tensors can hold");
    if (view.rank > kMaxRank)
      return refuse(ACLNN_ERR_PARAM_INVALID, param, view, "have at most 8 dimensions");
    for (const std::int64_t size : view.dims())
      if (size < 0) return refuse(ACLNN_ERR_PARAM_INVALID, param, view, "have no negative dimension");
    if (!view.within(kMostElements))
      return refuse(
          ACLNN_ERR_PARAM_INVALID, param, view,
          "have fewer than 2^56 elements (a dimension of 0 counted as 1), and strides and an offset "
          "that stay within as many");
    return {};
  }

  Status dtype(const Compiled::Tensor& tensor, const TensorView& view) {
    const Param& param = *tensor.param;
    if (!param.dtypes.has(view.dtype))
      return refuse(about_.codes.dtype, param, view, fmt::format("be {}", names_of(param.dtypes)),
                    "cast it first");
    const Param* twin = tensor.twin;
    if (twin == nullptr) return {};
    const TensorView* other = is_broken(twin->name) ? nullptr : first_tensor(*twin);
    if (other != nullptr && other->dtype != view.dtype)
      return refuse(about_.codes.same_dtype, param, view,
                    fmt::format("have the dtype of {}, {}", twin->name, name_of(other->dtype)),
                    "cast one of them");
    return {};
  }

  Status format(const Compiled::Tensor& tensor, const TensorView& view) {
    const Param& param = *tensor.param;
    if (view.format != ACL_FORMAT_FRACTAL_NZ || param.format_free) return {};
    return refuse(about_.codes.format, param, view, "not be in format FRACTAL_NZ", "pass it as ND");
  }

  Status shape(const Compiled::Tensor& tensor, const TensorView& view) {
    const Param& param = *tensor.param;
    const Shape& shape = tensor.shape;
    if (shape.alternatives.empty()) return {};
    for (const ShapeAlternative& alternative : shape.alternatives) {
      const auto named = static_cast<std::int32_t>(alternative.dims.size());
      if (alternative.any_leading ? view.rank < named : view.rank != named) continue;
      if (matches(alternative, view)) return {};
      break;
    }
    std::string must = fmt::format("have shape ({})", shape.text);
    const std::string known = values_named_in(shape.text, {});
    if (!known.empty()) must += fmt::format(" with {}", known);
    return refuse(about_.codes.shape, param, view, must);
  }

  bool matches(const ShapeAlternative& alternative, const TensorView& view) {
    const std::size_t skip = static_cast<std::size_t>(view.rank) - alternative.dims.size();
    for (std::size_t axis = 0; axis < alternative.dims.size(); ++axis) {
      const DimRule& rule = alternative.dims[axis];
      const std::int64_t size = view.shape[skip + axis];
      if (rule.kind == DimRule::Kind::anything) continue;
      work_out_names(rule);
      if (const auto name = single_name(rule); name && !values_.has(*name)) {
        values_.set(*name, size);
        continue;
      }
      const std::optional<std::int64_t> wanted = evaluate(rule.terms, values_);
      if (!wanted || (rule.kind == DimRule::Kind::exactly ? size != *wanted : size < *wanted)) return false;
    }
    return true;
  }

  Status output(const Compiled::Tensor& tensor, const TensorView& view) {
    const Param& param = *tensor.param;
    if (param.direction == Direction::in) return {};
    if (param.dense && !view.contiguous())
      return refuse(ACLNN_ERR_PARAM_INVALID, param, view, "be contiguous",
                    "write to a contiguous tensor and copy it");
    if (view.overlaps_itself())
      return refuse(ACLNN_ERR_PARAM_INVALID, param, view, "not overlap itself",
                    "give each element its own place");
    return {};
  }

  Status refuse(std::int32_t code, const Param& param, const TensorView& view, const std::string& must,
                std::string_view way_out = {}) {
    return fail(code, TextCode::operator_parameter, "{}: {} is {} but must {}{}{}", function_, param.name,
                view.describe(), must, way_out.empty() ? "" : "; ", way_out);
  }

  const TensorView* first_tensor(const Param& param) {
    if (param.access.tensor != nullptr) {
      const TensorView* view = param.access.tensor(args_);
      return view->present() ? view : nullptr;
    }
    for (const TensorView& view : param.access.list(args_)->items)
      if (view.present()) return &view;
    return nullptr;
  }

  // Works out the value of a name of the contract when it is first needed. False: a tensor is to bind it, and none has yet.
  bool work_out(std::size_t name) {
    if (values_.has(name)) return true;
    if (name >= about_.dims.size())
      values_.set(name, find_param(about_, compiled_.names[name])->access.integer(args_));
    else if (about_.dims[name].value != nullptr)
      values_.set(name, about_.dims[name].value(args_));
    return values_.has(name);
  }

  void work_out_names(const DimRule& rule) {
    for (const Term& term : rule.terms)
      if (term.op == Term::Op::name) work_out(static_cast<std::size_t>(term.value));
  }

  // A parameter's or dimension's value as text; empty if there is none (yet).
  std::string value_of(std::string_view name) {
    if (const Param* param = find_param(about_, name)) {
      const Access& access = param->access;
      if (access.tensor != nullptr) return access.tensor(args_)->describe();
      if (access.list != nullptr) return describe(*access.list(args_));
      if (access.integers != nullptr) return describe(*access.integers(args_));
      if (access.integer != nullptr) return fmt::format("{}", access.integer(args_));
      if (access.scalar != nullptr)
        return access.scalar(args_)->is_number ? fmt::format("{}", access.scalar(args_)->number)
                                               : std::string("no number");
      if (access.number != nullptr) return fmt::format("{}", access.number(args_));
      return fmt::format("\"{}\"", access.text(args_));
    }
    for (std::size_t index = 0; index < about_.dims.size(); ++index)
      if (about_.dims[index].name == name)
        if (work_out(index)) return fmt::format("{}", values_[index]);
    return {};
  }

  static std::string describe(const TensorListView& list) {
    if (!list.given) return "null";
    std::string text = fmt::format("a list of {}", list.size());
    for (const TensorView& view : list.items)
      text += (&view == list.items.data() ? ": " : ", ") + view.describe();
    return text;
  }

  static std::string describe(const IntArrayView& array) {
    return array.given ? fmt::format("{{{}}}", fmt::join(array.items, ", ")) : "null";
  }

  // "W = 4, K = 8" for the names of parameters and dimensions that occur in a text.
  std::string values_named_in(std::string_view text, std::string_view except) {
    std::string found;
    std::vector<std::string_view> seen{except};
    for (const std::string_view word : words_of(text)) {
      if (std::find(seen.begin(), seen.end(), word) != seen.end()) continue;
      seen.push_back(word);
      const std::string value = value_of(word);
      if (!value.empty()) found += fmt::format("{}{} = {}", found.empty() ? "" : ", ", word, value);
    }
    return found;
  }

  // --- Telling a survey ---------------------------------------------------------------------------------

  // Success if the check is to go on.
  Status note(std::string_view subject, Status status) {
    if (status.ok() || survey_ == nullptr) return status;
    survey_->broken.push_back({subject, std::move(status)});
    return {};
  }

  Status end_of_stage() {
    if (survey_ == nullptr || survey_->broken.empty()) return {};
    return survey_->broken.front().status;
  }

  void begin_survey() {
    survey_->contract = &contract_;
    survey_->broken.clear();
    survey_->outputs.clear();
    survey_->dims.clear();
    survey_->needs.clear();
    survey_->facts.clear();
  }

  // Found before; without a survey nothing is, as the check would be over.
  bool is_broken(std::string_view subject) const {
    return survey_ != nullptr &&
           std::any_of(survey_->broken.begin(), survey_->broken.end(),
                       [&](const Survey::Broken& before) { return before.subject == subject; });
  }

  bool speaks_of_broken(const Rule& rule) const {
    if (is_broken(rule.subject)) return true;
    const std::vector<std::string_view> words = words_of(rule.must);
    return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return is_broken(word); });
  }

  void tell_sizes() {
    for (const Compiled::Tensor& tensor : compiled_.tensors) {
      const Param& param = *tensor.param;
      const auto& alternatives = tensor.shape.alternatives;
      if (param.direction == Direction::in || param.access.tensor == nullptr || alternatives.empty())
        continue;
      const TensorView& view = *param.access.tensor(args_);
      const ShapeAlternative* chosen = &alternatives.front();
      for (const ShapeAlternative& alternative : alternatives)
        if (static_cast<std::int32_t>(alternative.dims.size()) == view.rank) chosen = &alternative;
      if (chosen->any_leading) continue;
      Survey::Output output{&param, {}};
      for (const DimRule& rule : chosen->dims) output.shape.push_back(size_of(rule));
      survey_->outputs.push_back(std::move(output));
    }
    for (std::size_t index = 0; index < about_.dims.size(); ++index)
      if (work_out(index))
        survey_->dims.push_back({about_.dims[index].name, about_.dims[index].meaning, values_[index]});
  }

  Survey::Size size_of(const DimRule& rule) {
    if (rule.kind == DimRule::Kind::anything) return {};
    work_out_names(rule);
    return {evaluate(rule.terms, values_), rule.kind == DimRule::Kind::at_least};
  }

  void tell_figures() {
    for (const Figure& need : about_.needs)
      if (const std::int64_t value = need.value(args_); value != 0)
        survey_->needs.push_back({need.name, need.meaning, value});
    for (const Figure& fact : about_.facts)
      survey_->facts.push_back({fact.name, fact.meaning, fact.value(args_)});
  }

  const Contract& contract_;
  const Description& about_;
  const Compiled& compiled_;
  const std::string_view function_;
  void* const args_;
  Values values_;
  const Product here_ = product();
  Survey* const survey_ = Survey::current();
};

thread_local Survey* current_survey = nullptr;

}  // namespace

Survey::Survey() { current_survey = this; }
Survey::~Survey() { current_survey = nullptr; }
Survey* Survey::current() { return current_survey; }

Contract::Contract(const Description& description)
    : about_(description), compiled_(compile(description)), tensors_(tensors_of(description)) {
  remember(*this);
}
Contract::~Contract() { forget(*this); }

Status check(const Contract& contract, std::string_view function, const void* args) {
  return Checker(contract, function, args).all();
}

std::string explain(const Contract& contract, std::string_view function, const void* args,
                    std::string_view subject, std::string_view must, std::string_view way_out) {
  return Checker(contract, function, args).sentence(subject, must, way_out);
}

}  // namespace moeyard::contract
