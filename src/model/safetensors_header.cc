// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/safetensors_header.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "model/errors.h"

namespace moeyard::model {
namespace {

using nlohmann::json;

// Takes the header's JSON event by event. A tree of it is never built, so neither deep nesting nor a hundred
// megabytes of names can hurt, and a name that comes twice is seen.
class HeaderReader : public nlohmann::json_sax<json> {
 public:
  explicit HeaderReader(std::string_view file) : file_(file) {}

  const Status& failure() const { return failure_; }
  std::vector<HeaderEntry> take() { return std::move(entries_); }

  bool start_object(std::size_t) override {
    if (place_ == Place::outside) return go(Place::names);
    if (place_ == Place::name) return name_ == "__metadata__" ? go(Place::metadata) : start_entry();
    return wrong_value();
  }
  bool end_object() override {
    if (place_ == Place::names) return go(Place::done);
    if (place_ == Place::metadata) return go(Place::names);
    return end_entry();
  }
  bool key(std::string& name) override {
    if (place_ == Place::names) return start_name(name);
    if (place_ == Place::metadata) return true;
    return start_field(name);
  }
  bool start_array(std::size_t) override {
    if (place_ == Place::field && field_ != Field::dtype) return go(Place::list);
    return wrong_value();
  }
  bool end_array() override { return go(Place::fields); }
  bool string(std::string& value) override {
    if (place_ == Place::metadata) return true;
    if (place_ != Place::field || field_ != Field::dtype) return wrong_value();
    const StoredTypeInfo* info = find_stored_type(value);
    if (info == nullptr)
      return refuse("tensor {} has the unknown type {}", in_quotes(name_), in_quotes(value));
    type_ = info->type;
    return go(Place::fields);
  }
  bool number_unsigned(std::uint64_t value) override {
    if (place_ != Place::list) return wrong_value();
    (field_ == Field::shape ? shape_ : offsets_)->push_back(value);
    return true;
  }
  bool number_integer(std::int64_t value) override {
    if (place_ != Place::list) return wrong_value();
    return refuse("tensor {} has the negative number {} in its {}", in_quotes(name_), value, field_name());
  }
  bool number_float(double, const std::string& text) override {
    if (place_ != Place::list) return wrong_value();
    return refuse("tensor {} has {} in its {}, which is not an integer of 64 bits", in_quotes(name_),
                  in_quotes(text), field_name());
  }
  bool null() override { return wrong_value(); }
  bool boolean(bool) override { return wrong_value(); }
  bool binary(json::binary_t&) override { return wrong_value(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return refuse("its header is not valid JSON at byte {}", position);
  }

 private:
  // names: between the tensors; name: after a tensor's name; fields, field, list: inside a tensor.
  enum class Place { outside, names, name, metadata, fields, field, list, done };
  enum class Field { dtype, shape, data_offsets };

  bool go(Place place) {
    place_ = place;
    return true;
  }
  template <class... Args>
  bool refuse(fmt::format_string<Args...> format, Args&&... args) {
    failure_ = bad_input("{} is not a usable safetensors file: {}.", file_,
                         fmt::format(format, std::forward<Args>(args)...));
    return false;
  }
  const char* field_name() const {
    return field_ == Field::dtype ? "dtype" : field_ == Field::shape ? "shape" : "data_offsets";
  }
  bool wrong_value() {
    switch (place_) {
      case Place::metadata:
        return refuse("__metadata__ has a value that is not a string");
      case Place::field:
      case Place::list:
        return refuse("tensor {} has a {} of the wrong kind", in_quotes(name_), field_name());
      case Place::name:
        return refuse("the value of {} is not an object", in_quotes(name_));
      default:
        return refuse("its header is not a JSON object of tensors");
    }
  }

  bool start_name(const std::string& name) {
    if (!names_.insert(name).second) return refuse("the name {} comes twice", in_quotes(name));
    name_ = name;
    return go(Place::name);
  }
  bool start_entry() {
    type_.reset();
    shape_.reset();
    offsets_.reset();
    return go(Place::fields);
  }
  bool start_field(const std::string& field) {
    const bool is_type = field == "dtype", is_shape = field == "shape";
    if (!is_type && !is_shape && field != "data_offsets")
      return refuse("tensor {} has the unknown field {}", in_quotes(name_), in_quotes(field));
    field_ = is_type ? Field::dtype : is_shape ? Field::shape : Field::data_offsets;
    if (is_type ? type_.has_value() : (is_shape ? shape_ : offsets_).has_value())
      return refuse("tensor {} has its {} twice", in_quotes(name_), field);
    if (!is_type) (is_shape ? shape_ : offsets_).emplace();
    return go(Place::field);
  }
  bool end_entry();

  std::string file_;
  Status failure_;
  std::vector<HeaderEntry> entries_;
  std::unordered_set<std::string> names_;
  Place place_ = Place::outside;
  Field field_ = Field::dtype;
  std::string name_;
  std::optional<StoredType> type_;
  std::optional<std::vector<std::uint64_t>> shape_, offsets_;
};

// The bytes of the shape; none if they are beyond 63 bits.
std::optional<std::uint64_t> bytes_of(const std::vector<std::uint64_t>& shape, StoredType type) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::uint64_t bytes = info_of(type).bytes;
  for (const std::uint64_t dimension : shape)
    if (dimension > kMost || __builtin_mul_overflow(bytes, dimension, &bytes) || bytes > kMost)
      return std::nullopt;
  return bytes;
}

bool HeaderReader::end_entry() {
  if (!type_ || !shape_ || !offsets_)
    return refuse("tensor {} has no {}", in_quotes(name_),
                  !type_    ? "dtype"
                  : !shape_ ? "shape"
                            : "data_offsets");
  if (offsets_->size() != 2)
    return refuse("tensor {} has {} data_offsets, there must be 2", in_quotes(name_), offsets_->size());
  const std::uint64_t begin = (*offsets_)[0], end = (*offsets_)[1];
  if (begin > end) return refuse("tensor {} begins at {}, after its end {}", in_quotes(name_), begin, end);
  const auto bytes = bytes_of(*shape_, *type_);
  if (!bytes) return refuse("the shape of tensor {} overflows 63 bits", in_quotes(name_));
  if (*bytes != end - begin)
    return refuse("tensor {} has {} bytes, its shape needs {}", in_quotes(name_), end - begin, *bytes);
  entries_.push_back({name_, *type_, {shape_->begin(), shape_->end()}, begin, end});
  return go(Place::names);
}

}  // namespace

Result<std::vector<HeaderEntry>> read_safetensors_header(std::string_view header, std::string_view file) {
  // The parser takes a zero byte for the end of its input; what follows one would go unread.
  const std::size_t zero = header.find('\0');
  if (header.front() != '{' || zero != std::string_view::npos)
    return bad_input("{} is not a usable safetensors file: its header is not valid JSON at byte {}.", file,
                     header.front() != '{' ? 1 : zero + 1);
  HeaderReader reader(file);
  if (!json::sax_parse(header.begin(), header.end(), &reader)) return reader.failure();
  return reader.take();
}

}  // namespace moeyard::model
