// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "model/errors.h"
#include "model/safetensors_header.h"

namespace moeyard::model {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kLongestHeader = 100'000'000;  // the limit of the format's own library

// Every byte of the data must belong to one tensor: no overlap, no hole, no end outside the file.
Status check_cover(std::vector<HeaderEntry>& entries, std::uint64_t data_bytes, std::string_view file) {
  std::sort(entries.begin(), entries.end(), [](const HeaderEntry& a, const HeaderEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t covered = 0;
  for (const HeaderEntry& entry : entries) {
    if (entry.begin != covered)
      return bad_input(
          "{} is not a usable safetensors file: tensor {} begins at byte {} of the data, {} {}.", file,
          in_quotes(entry.name), entry.begin,
          entry.begin < covered ? "inside another one that ends at" : "which leaves a hole after", covered);
    covered = entry.end;
  }
  if (covered != data_bytes)
    return bad_input(
        "{} is not a usable safetensors file: its tensors take {} bytes, but {} bytes are there{}.", file,
        covered, data_bytes, covered > data_bytes ? " (cut off?)" : "");
  return {};
}

}  // namespace

Result<StoredTensors> parse_safetensors(std::span<const std::byte> bytes, std::string_view file) {
  if (bytes.size() < kLengthBytes)
    return bad_input("{} is not a usable safetensors file: {} bytes are less than the 8 of its length.", file,
                     bytes.size());
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  const std::uint64_t rest = bytes.size() - kLengthBytes;
  if (length == 0) return bad_input("{} is not a usable safetensors file: its header is empty.", file);
  if (length > kLongestHeader || length > rest)
    return bad_input(
        "{} is not a usable safetensors file: a header of {} bytes is announced, the most is {}{}.", file,
        length, std::min(kLongestHeader, rest), rest < kLongestHeader ? ", what the file has" : "");
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length);
  auto entries = MOEYARD_TRY(read_safetensors_header(header, file));
  const auto data = bytes.subspan(kLengthBytes + length);
  MOEYARD_TRY(check_cover(entries, data.size(), file));
  StoredTensors tensors;
  for (HeaderEntry& entry : entries) {
    const auto part = data.subspan(entry.begin, entry.end - entry.begin);
    tensors.emplace(entry.name, StoredTensor{entry.name, entry.type, std::move(entry.shape), part});
  }
  return tensors;
}

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path) {
  auto file = MOEYARD_TRY(MappedFile::open(path));
  auto tensors = MOEYARD_TRY(parse_safetensors(file.bytes(), path.string()));
  return SafetensorsFile(std::move(file), std::move(tensors));
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

Status write_safetensors(const std::filesystem::path& path, std::span<const StoredTensor> tensors) {
  auto header = nlohmann::ordered_json::object();
  std::uint64_t offset = 0;
  // Wide elements first, as the format's own library does: then each tensor is aligned without gaps.
  std::vector<const StoredTensor*> order;
  for (const StoredTensor& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const StoredTensor* a, const StoredTensor* b) {
    return info_of(a->type).bytes > info_of(b->type).bytes;
  });
  for (const StoredTensor* tensor : order) {
    const std::uint64_t end = offset + tensor->bytes.size();
    header[tensor->name] = {
        {"dtype", info_of(tensor->type).name}, {"shape", tensor->shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&length), kLengthBytes);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  for (const StoredTensor* tensor : order)
    out.write(reinterpret_cast<const char*>(tensor->bytes.data()),
              static_cast<std::streamsize>(tensor->bytes.size()));
  out.close();
  if (!out) return bad_input("{} cannot be written.", path.string());
  return {};
}

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace moeyard::model
