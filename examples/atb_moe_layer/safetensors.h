// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// Just enough of safetensors to read tensors by name from files that one trusts: 8 bytes with the length of a JSON header,
// the header, then the data that it points to.
#pragma once
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace atb_moe_layer {

struct Stored {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::vector<char> bytes;
};

class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path) : path_(path) {
    std::ifstream file(path, std::ios::binary);
    content_.assign(std::istreambuf_iterator<char>(file), {});
    std::uint64_t length = 0;
    if (content_.size() >= sizeof length) std::memcpy(&length, content_.data(), sizeof length);
    if (length == 0 || length > content_.size() - sizeof length)
      throw std::runtime_error(path + " is no safetensors file");
    header_ = content_.substr(sizeof length, length);
    data_ = sizeof length + length;
  }

  Stored read(const std::string& name) const {
    const std::size_t entry = header_.find('"' + name + '"');
    if (entry == std::string::npos) throw std::runtime_error(path_ + " has no tensor " + name);
    Stored tensor;
    const std::size_t dtype = after("\"dtype\":\"", entry);
    tensor.dtype = header_.substr(dtype, header_.find('"', dtype) - dtype);
    tensor.shape = numbers(after("\"shape\":[", entry));
    const std::vector<std::int64_t> range = numbers(after("\"data_offsets\":[", entry));
    const std::string bytes = content_.substr(data_ + static_cast<std::size_t>(range.at(0)),
                                              static_cast<std::size_t>(range.at(1) - range.at(0)));
    tensor.bytes.assign(bytes.begin(), bytes.end());
    return tensor;
  }

 private:
  std::size_t after(const std::string& text, std::size_t from) const {
    const std::size_t found = header_.find(text, from);
    if (found == std::string::npos) throw std::runtime_error(path_ + " lacks " + text);
    return found + text.size();
  }
  std::vector<std::int64_t> numbers(std::size_t at) const {
    std::vector<std::int64_t> values;
    while (at < header_.size() && header_[at] != ']') {
      std::size_t used = 0;
      values.push_back(std::stoll(header_.substr(at, 24), &used));
      at += used;
      if (at < header_.size() && header_[at] == ',') ++at;
    }
    return values;
  }

  std::string path_, content_, header_;
  std::size_t data_ = 0;
};

}  // namespace atb_moe_layer
