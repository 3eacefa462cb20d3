// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "calls/call.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/dtype.h"
#include "model/errors.h"
#include "model/json_file.h"

namespace moeyard::calls {
namespace {

using model::bad_input;
using model::in_quotes;
using nlohmann::json;

constexpr std::size_t kMostDims = 25;       // what an aclTensor can store
constexpr std::size_t kMostMembers = 4096;  // of a list
constexpr std::size_t kMostRanks = 1024;

std::string upper(std::string_view text) {
  std::string made(text);
  for (char& c : made) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return made;
}

// By our names, and by those of CANN and torch.
std::optional<aclDataType> find_dtype_by_name(std::string_view name) {
  constexpr std::pair<std::string_view, aclDataType> kOthers[] = {
      {"FLOAT", ACL_FLOAT},     {"FLOAT32", ACL_FLOAT},    {"FLOAT16", ACL_FLOAT16},
      {"HALF", ACL_FLOAT16},    {"BFLOAT16", ACL_BF16},    {"DOUBLE", ACL_DOUBLE},
      {"FLOAT64", ACL_DOUBLE},  {"INT", ACL_INT32},        {"LONG", ACL_INT64},
      {"HIF8", ACL_HIFLOAT8},   {"E5M2", ACL_FLOAT8_E5M2}, {"E4M3FN", ACL_FLOAT8_E4M3FN},
      {"E8M0", ACL_FLOAT8_E8M0}};
  std::string wanted = upper(name);
  if (wanted.starts_with("ACL_")) wanted.erase(0, 4);
  for (int value = 0; value < 64; ++value)
    if (const DtypeInfo* info = find_dtype(static_cast<aclDataType>(value));
        info != nullptr && info->name == wanted)
      return info->dtype;
  for (const auto& [other, dtype] : kOthers)
    if (other == wanted) return dtype;
  return std::nullopt;
}

// What is being read, for messages.
struct Place {
  std::string file;
  std::string member;
  template <class... Args>
  Status refuse(fmt::format_string<Args...> format, Args&&... args) const {
    return bad_input("{}: {} {}.", file, member, fmt::format(format, std::forward<Args>(args)...));
  }
  Place in(std::string_view name) const {
    return {file, member.empty() ? std::string(name) : fmt::format("{}.{}", member, name)};
  }
};

Result<std::int64_t> read_integer(const json& value, const Place& place) {
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX)
    return place.refuse("is larger than any 64-bit integer");
  if (!value.is_number_integer()) return place.refuse("must be an integer");
  return value.get<std::int64_t>();
}

Result<std::vector<std::int64_t>> read_integers(const json& value, const Place& place, std::size_t most) {
  if (!value.is_array() || value.size() > most)
    return place.refuse("must be an array of at most {} integers", most);
  std::vector<std::int64_t> numbers;
  for (const json& item : value) numbers.push_back(MOEYARD_TRY(read_integer(item, place)));
  return numbers;
}

Result<std::string> read_text(const json& value, const Place& place) {
  if (!value.is_string()) return place.refuse("must be a text in quotes");
  std::string text = value.get<std::string>();
  if (text.find('\0') != std::string::npos) return place.refuse("must have no NUL in it");
  return text;
}

Result<aclDataType> read_dtype(std::string_view name, const Place& place) {
  if (const auto dtype = find_dtype_by_name(name)) return *dtype;
  return place.refuse(
      "has the dtype {}, which is none, such as BF16, FP16, FP32, INT8, INT32, INT64, BOOL or "
      "FLOAT8_E4M3FN",
      in_quotes(name));
}

// "BF16[64,7168]"
Result<TensorSpec> read_tensor_text(std::string_view text, const Place& place) {
  const std::size_t open = text.find('[');
  if (open == std::string_view::npos || text.back() != ']')
    return place.refuse("is {} but a tensor is written like \"BF16[64,7168]\"", in_quotes(text));
  TensorSpec tensor{MOEYARD_TRY(read_dtype(text.substr(0, open), place)), {}};
  std::string_view sizes = text.substr(open + 1, text.size() - open - 2);
  while (!sizes.empty()) {
    const std::size_t comma = std::min(sizes.find(','), sizes.size());
    std::string_view one = sizes.substr(0, comma);
    while (one.starts_with(' ')) one.remove_prefix(1);
    std::int64_t size = 0;
    const auto [end, error] = std::from_chars(one.data(), one.data() + one.size(), size);
    if (error != std::errc{} || end != one.data() + one.size() || tensor.shape.size() == kMostDims)
      return place.refuse("is {} but a tensor is written like \"BF16[64,7168]\"", in_quotes(text));
    tensor.shape.push_back(size);
    sizes.remove_prefix(std::min(comma + 1, sizes.size()));
  }
  return tensor;
}

// Names that cannot lead out of the folder.
bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name.front() != '.' && name.size() < 200 && std::ranges::all_of(name, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  });
}

Result<TensorSpec> read_tensor(const json& value, const Place& place) {
  if (value.is_string()) return read_tensor_text(value.get<std::string>(), place);
  if (!value.is_object() || !value.contains("dtype") || !value.contains("shape"))
    return place.refuse("must be a tensor: null, \"BF16[64,7168]\", or an object with dtype and shape");
  TensorSpec tensor;
  tensor.dtype = MOEYARD_TRY(read_dtype(MOEYARD_TRY(read_text(value["dtype"], place.in("dtype"))), place));
  tensor.shape = MOEYARD_TRY(read_integers(value["shape"], place.in("shape"), kMostDims));
  for (const auto& [name, member] : value.items()) {
    const Place here = place.in(name);
    if (name == "strides") {
      tensor.strides = MOEYARD_TRY(read_integers(member, here, kMostDims));
      if (tensor.strides.size() != tensor.shape.size())
        return here.refuse("must have an entry per dimension");
    } else if (name == "offset") {
      tensor.offset = MOEYARD_TRY(read_integer(member, here));
    } else if (name == "format") {
      const std::string format = MOEYARD_TRY(read_text(member, here));
      if (format != "ND" && format != "FRACTAL_NZ") return here.refuse("must be ND or FRACTAL_NZ");
      tensor.format = format == "ND" ? ACL_FORMAT_ND : ACL_FORMAT_FRACTAL_NZ;
    } else if (name == "file") {
      tensor.file = MOEYARD_TRY(read_text(member, here));
      if (!is_plain_file_name(tensor.file)) return here.refuse("must be the name of a file beside this one");
    } else if (name == "same_as") {
      tensor.same_as = MOEYARD_TRY(read_text(member, here));
    } else if (name != "dtype" && name != "shape") {
      return here.refuse("is no member of a tensor: dtype, shape, strides, offset, format, file, same_as");
    }
  }
  return tensor;
}

Result<Value> read_tensor_list(const json& value, const Place& place) {
  if (!value.is_array() || value.size() > kMostMembers)
    return place.refuse("must be an array of at most {} tensors", kMostMembers);
  TensorList list;
  for (std::size_t i = 0; i < value.size(); ++i) {
    list.emplace_back();
    if (!value[i].is_null()) list.back() = MOEYARD_TRY(read_tensor(value[i], place.in(std::to_string(i))));
  }
  return Value(std::move(list));
}

Result<Value> read_numbers(const json& value, const Place& place) {
  if (!value.is_array() || value.size() > kMostMembers)
    return place.refuse("must be an array of at most {} numbers", kMostMembers);
  std::vector<double> numbers;
  for (const json& item : value) {
    if (!item.is_number()) return place.in(std::to_string(numbers.size())).refuse("must be a number");
    numbers.push_back(item.get<double>());
  }
  return Value(std::move(numbers));
}

Result<Value> read_flags(const json& value, const Place& place) {
  if (!value.is_array() || value.size() > kMostMembers)
    return place.refuse("must be an array of at most {} flags", kMostMembers);
  std::vector<std::int64_t> flags;
  for (const json& item : value) {
    if (!item.is_boolean()) return place.in(std::to_string(flags.size())).refuse("must be true or false");
    flags.push_back(item.get<bool>() ? 1 : 0);
  }
  return Value(std::move(flags));
}

Result<Value> read_value(Kind kind, const json& value, const Place& place) {
  if (value.is_null()) return Value();
  switch (kind) {
    case Kind::tensor:
      return Value(MOEYARD_TRY(read_tensor(value, place)));
    case Kind::tensor_list:
      return read_tensor_list(value, place);
    case Kind::integers:
      return Value(MOEYARD_TRY(read_integers(value, place, kMostMembers)));
    case Kind::text:
      return Value(MOEYARD_TRY(read_text(value, place)));
    case Kind::number:
      if (!value.is_number()) return place.refuse("must be a number");
      return Value(value.get<double>());
    case Kind::flag:
      if (value.is_boolean()) return Value(std::int64_t{value.get<bool>() ? 1 : 0});
      return Value(MOEYARD_TRY(read_integer(value, place)));
    case Kind::integer:
      // A data type may be named.
      if (value.is_string())
        return Value(static_cast<std::int64_t>(MOEYARD_TRY(read_dtype(value.get<std::string>(), place))));
      return Value(MOEYARD_TRY(read_integer(value, place)));
    case Kind::scalar:
      if (value.is_number_integer()) return Value(MOEYARD_TRY(read_integer(value, place)));
      if (value.is_boolean()) return Value(std::int64_t{value.get<bool>() ? 1 : 0});
      if (!value.is_number()) return place.refuse("must be a number");
      return Value(value.get<double>());
    case Kind::numbers:
      return read_numbers(value, place);
    case Kind::flags:
      return read_flags(value, place);
  }
  return place.refuse("is of a kind that cannot be described");
}

// The known name that looks most like it: the longest common beginning, at least half of it.
std::string guess(std::string_view name, std::span<const Parameter> known) {
  std::string_view best;
  std::size_t most = name.size() / 2;
  for (const Parameter& parameter : known) {
    std::size_t same = 0;
    const std::string a = upper(name), b = upper(parameter.name);
    while (same < a.size() && same < b.size() && a[same] == b[same]) ++same;
    if (same > most) most = same, best = parameter.name;
  }
  return best.empty() ? "" : fmt::format("; did you mean {}?", best);
}

// Where the contract's parameter is among the function's; the function of an older version may lack it.
std::size_t index_of_contract_name(const Call& call, std::string_view name) {
  const auto& known = call.function->parameters;
  return static_cast<std::size_t>(std::ranges::find_if(known,
                                                       [&](const Parameter& parameter) {
                                                         return name_in_contract(*call.function,
                                                                                 parameter.name) == name;
                                                       }) -
                                  known.begin());
}

// Recorded calls have the contract's parameters, described ones the function's.
Status read_parameters(const json& object, const Place& place, bool recorded, Call& call) {
  if (!object.is_object()) return place.refuse("must be an object: a value for each parameter");
  for (const auto& [name, value] : object.items()) {
    const std::size_t index = recorded ? index_of_contract_name(call, name) : call.index_of(name);
    if (index == call.values.size() && recorded) continue;
    if (index == call.values.size())
      return place.in(name).refuse("is no parameter of {}{}", call.function->name,
                                   guess(name, call.function->parameters));
    call.values[index] =
        MOEYARD_TRY(read_value(call.function->parameters[index].kind, value, place.in(name)));
  }
  return {};
}

Status read_groups(const json& object, const Place& place, Call& call) {
  if (!object.is_object())
    return place.refuse("must be an object: a group for each parameter that names one");
  for (const auto& [name, value] : object.items()) {
    const Place here = place.in(name);
    const std::size_t index = call.index_of(name);
    if (index == call.values.size() || call.function->parameters[index].kind != Kind::text)
      return here.refuse("is no parameter of {} that names a group", call.function->name);
    if (!value.is_object()) return here.refuse("must be an object with ranks");
    GroupSpec group;
    for (const auto& [member, number] : value.items()) {
      std::int64_t* target = member == "ranks"       ? &group.ranks
                             : member == "rank"      ? &group.rank
                             : member == "buffer_mb" ? &group.buffer_mb
                             : member == "number"    ? &group.number
                                                     : nullptr;
      if (member == "name")
        group.name = MOEYARD_TRY(read_text(number, here.in(member)));
      else if (target != nullptr)
        *target = MOEYARD_TRY(read_integer(number, here.in(member)));
      else
        return here.in(member).refuse("is no member of a group: name, ranks, rank, buffer_mb, number");
    }
    if (group.ranks < 1 || group.ranks > static_cast<std::int64_t>(kMostRanks))
      return here.refuse("must have ranks in [1, {}]", kMostRanks);
    if (group.rank < 0 || group.rank >= group.ranks) return here.refuse("must have a rank in [0, ranks)");
    if (group.buffer_mb < 0 || group.buffer_mb > INT32_MAX)
      return here.refuse("must have buffer_mb in [1, 2^31)");
    call.groups[name] = std::move(group);
  }
  return {};
}

Status read_environment(const json& object, const Place& place, Call& call) {
  if (!object.is_object()) return place.refuse("must be an object: a text for each variable");
  for (const auto& [name, value] : object.items()) {
    const bool known = name.starts_with("HCCL_") || name.starts_with("ASCEND_");
    if (!known || !is_plain_file_name(name))
      return place.in(name).refuse("must be a variable HCCL_* or ASCEND_*");
    call.environment[name] = MOEYARD_TRY(read_text(value, place.in(name)));
  }
  return {};
}

}  // namespace

std::size_t Call::index_of(std::string_view parameter) const {
  const auto& known = function->parameters;
  return static_cast<std::size_t>(std::ranges::find(known, parameter, &Parameter::name) - known.begin());
}

const Value& Call::value_of(std::string_view parameter) const {
  static const Value none;
  const std::size_t index = index_of(parameter);
  return index == values.size() ? none : values[index];
}

Result<std::vector<Call>> parse_calls(const json& object, const std::filesystem::path& path) {
  const Place top{path.string(), ""};
  const auto member = [&](const char* name) -> const json& {
    static const json none;
    const auto found = object.find(name);
    return found == object.end() ? none : *found;
  };
  for (const auto& [name, value] : object.items())
    if (name != "schema" && name != "function" && name != "parameters" && name != "groups" &&
        name != "environment" && name != "soc" && name != "ranks" && name != "recorded")
      return top.in(name).refuse(
          "is no member of a call: schema, function, parameters, groups, environment, soc, "
          "ranks, recorded");
  if (!member("schema").is_null() && member("schema") != 1)
    return top.in("schema").refuse("must be 1: this program reads no other");
  const std::string name = MOEYARD_TRY(read_text(member("function"), top.in("function")));
  Call call;
  call.function = find_function(name);
  if (call.function == nullptr)
    return top.in("function")
        .refuse("is {}, which is no operator here; moeyard ops lists them", in_quotes(name));
  call.values.resize(call.function->parameters.size());
  call.folder = path.parent_path();
  const bool recorded = !member("recorded").is_null();
  const json& ranks = member("ranks");
  if (!member("parameters").is_null() || ranks.is_null())
    MOEYARD_TRY(read_parameters(member("parameters"), top.in("parameters"), recorded, call));
  if (!member("groups").is_null()) MOEYARD_TRY(read_groups(member("groups"), top.in("groups"), call));
  if (!member("environment").is_null())
    MOEYARD_TRY(read_environment(member("environment"), top.in("environment"), call));
  if (!member("soc").is_null()) call.soc = MOEYARD_TRY(read_text(member("soc"), top.in("soc")));
  if (ranks.is_null()) return std::vector<Call>{std::move(call)};
  if (!ranks.is_array() || ranks.empty() || ranks.size() > kMostRanks)
    return top.in("ranks").refuse("must be an array of 1 to {} objects: what each rank passes otherwise",
                                  kMostRanks);
  call.is_one_of_all = true;
  std::vector<Call> calls(ranks.size(), call);
  for (std::size_t r = 0; r < ranks.size(); ++r)
    MOEYARD_TRY(read_parameters(ranks[r], top.in(fmt::format("ranks.{}", r)), recorded, calls[r]));
  return calls;
}

Result<std::vector<Call>> read_call_file(const std::filesystem::path& path) {
  return parse_calls(MOEYARD_TRY(model::read_json_object(path)), path);
}

namespace {

// The files of an output: one, or those of a list.
Result<std::vector<std::string>> read_files(const json& value, const Place& place) {
  const json list = value.is_array() ? value : json::array({value});
  if (list.size() > kMostMembers) return place.refuse("must be at most {} files", kMostMembers);
  std::vector<std::string> files;
  for (const json& item : list) {
    files.emplace_back();
    if (item.is_null()) continue;
    files.back() = MOEYARD_TRY(read_text(item, place));
    if (!is_plain_file_name(files.back())) return place.refuse("must be the name of a file beside this one");
  }
  return files;
}

Result<Outcome> read_outcome(const json& object, const Place& place) {
  if (!object.is_object()) return place.refuse("must be an object");
  Outcome outcome;
  for (const auto& [name, value] : object.items()) {
    const Place here = place.in(name);
    if (name == "device" || name == "number") {
      (name == "device" ? outcome.device : outcome.number) = MOEYARD_TRY(read_integer(value, here));
    } else if (name == "code") {
      if (!value.is_null()) outcome.code = static_cast<std::int32_t>(MOEYARD_TRY(read_integer(value, here)));
    } else if (name == "message") {
      outcome.message = MOEYARD_TRY(read_text(value, here));
    } else if (name == "outputs") {
      if (!value.is_object()) return here.refuse("must be an object: files of each output");
      for (const auto& [output, files] : value.items())
        outcome.outputs[output] = MOEYARD_TRY(read_files(files, here.in(output)));
    } else {
      return here.refuse("is no member of what was recorded: device, number, code, message, outputs");
    }
  }
  return outcome;
}

}  // namespace

Result<Recorded> read_recorded_call(const std::filesystem::path& path) {
  const json object = MOEYARD_TRY(model::read_json_object(path));
  const auto recorded = object.find("recorded");
  if (recorded == object.end())
    return bad_input("{} describes a call that was not recorded; MOEYARD_DUMP records calls.", path.string());
  auto calls = MOEYARD_TRY(parse_calls(object, path));
  // By itself: GCC forgets members that are made already when one behind them leaves the function.
  Outcome outcome = MOEYARD_TRY(read_outcome(*recorded, Place{path.string(), "recorded"}));
  return Recorded{std::move(calls.front()), std::move(outcome)};
}

std::string text_of(const TensorSpec& tensor) {
  return fmt::format("{}[{}]", name_of(tensor.dtype), fmt::join(tensor.shape, ","));
}

std::optional<std::int64_t> element_count(const TensorSpec& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.shape)
    if (size < 0 || __builtin_mul_overflow(count, std::max<std::int64_t>(size, 1), &count))
      return std::nullopt;
  return std::ranges::find(tensor.shape, 0) == tensor.shape.end() ? count : 0;
}

}  // namespace moeyard::calls
