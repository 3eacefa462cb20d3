// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace moeyard::test {

// A folder of its own, gone with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "moeyard-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

// The bytes of a safetensors file, put together without the code under test.
inline std::string safetensors_bytes(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
  return bytes + header + data;
}

// Tensors by name, in order; values are stored as F32, or their upper halves as a type of 2 bytes.
class TensorWriter {
 public:
  void add(const std::string& name, std::vector<std::int64_t> shape, const std::vector<float>& values,
           const std::string& dtype = "F32") {
    const std::size_t begin = data_.size();
    for (const float value : values) {
      const auto bits = std::bit_cast<std::uint32_t>(value);
      const std::uint32_t kept = dtype == "F32" ? bits : bits >> 16;
      data_.append(reinterpret_cast<const char*>(&kept), dtype == "F32" ? 4 : 2);
    }
    header_[name] = {{"dtype", dtype}, {"shape", shape}, {"data_offsets", {begin, data_.size()}}};
  }
  // Values that differ from name to name: 1/64 * (-8 ... 8).
  void add_pattern(const std::string& name, std::vector<std::int64_t> shape,
                   const std::string& dtype = "F32") {
    std::int64_t n = 1;
    for (const std::int64_t dimension : shape) n *= dimension;
    std::vector<float> values(n);
    std::size_t state = std::hash<std::string>{}(name);
    for (float& value : values) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      value = (static_cast<float>((state >> 33) % 17) - 8.0f) / 64.0f;
    }
    add(name, std::move(shape), values, dtype);
  }
  std::string bytes() const { return safetensors_bytes(header_.dump(), data_); }

 private:
  nlohmann::ordered_json header_ = nlohmann::ordered_json::object();
  std::string data_;
};

}  // namespace moeyard::test
