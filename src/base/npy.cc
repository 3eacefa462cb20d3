// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "base/npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

namespace moeyard {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMostHeader = 4096;  // one of 25 sizes has 600
constexpr int kBadInput = 2;

// "<f4"; of a type without a name in NumPy that of its bits.
std::string_view description_of(aclDataType dtype) {
  switch (dtype) {
    case ACL_FLOAT:
      return "<f4";
    case ACL_FLOAT16:
      return "<f2";
    case ACL_DOUBLE:
      return "<f8";
    case ACL_INT8:
      return "|i1";
    case ACL_INT16:
      return "<i2";
    case ACL_INT32:
      return "<i4";
    case ACL_INT64:
      return "<i8";
    case ACL_BOOL:
      return "|b1";
    case ACL_COMPLEX64:
      return "<c8";
    case ACL_COMPLEX128:
      return "<c16";
    default:
      break;
  }
  const DtypeInfo* info = find_dtype(dtype);
  switch (info != nullptr ? info->bits : 0) {
    case 16:
      return "<u2";
    case 32:
      return "<u4";
    case 64:
      return "<u8";
    default:
      return "|u1";
  }
}

bool is_packed(aclDataType dtype) { return find_dtype(dtype)->bits < 8; }

// The shape in the file: bytes of packed elements lie in one dimension.
std::vector<std::int64_t> stored_shape(aclDataType dtype, std::span<const std::int64_t> shape) {
  if (!is_packed(dtype)) return {shape.begin(), shape.end()};
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return {bytes_of(dtype, count)};
}

std::string dictionary(aclDataType dtype, std::span<const std::int64_t> shape) {
  const auto stored = stored_shape(dtype, shape);
  return fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", description_of(dtype),
                     fmt::join(stored, ", "), stored.size() == 1 ? "," : "");
}

std::string without_blanks(std::string_view text) {
  std::string made;
  for (const char c : text)
    if (c != ' ' && c != '\n') made += c == '"' ? '\'' : c;
  // A comma before the end may be there or not.
  if (made.ends_with(",}")) made.erase(made.size() - 2, 1);
  return made;
}

// Visits the elements of a view in row-major order: visit(offset of the first, how many lie one after the other).
template <class Visit>
void for_each_run(const TensorView& view, Visit visit) {
  if (view.numel() == 0) return;
  if (view.contiguous()) return visit(view.offset, view.numel());
  const int inner = view.rank - 1;
  const std::int64_t run = view.strides[inner] == 1 ? view.shape[inner] : 1;
  std::int64_t index[kMaxRank] = {};
  while (true) {
    std::int64_t at = view.offset;
    for (int axis = 0; axis < view.rank; ++axis) at += index[axis] * view.strides[axis];
    visit(at, run);
    int axis = inner;
    index[axis] += run;
    while (index[axis] >= view.shape[axis]) {
      index[axis] = 0;
      if (axis == 0) return;
      ++index[--axis];
    }
  }
}

std::byte nibble(const std::byte* bytes, std::int64_t i) {
  return (i % 2 == 0 ? bytes[i / 2] : bytes[i / 2] >> 4) & std::byte{0x0F};
}
void set_nibble(std::byte* bytes, std::int64_t i, std::byte value) {
  std::byte& place = bytes[i / 2];
  place = i % 2 == 0 ? (place & std::byte{0xF0}) | value : (place & std::byte{0x0F}) | (value << 4);
}

}  // namespace

std::string npy_header(aclDataType dtype, std::span<const std::int64_t> shape) {
  std::string text = dictionary(dtype, shape);
  constexpr std::size_t kBefore = 10;
  while ((kBefore + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  std::string header(kMagic);
  header += {'\1', '\0', static_cast<char>(text.size() & 0xFF), static_cast<char>(text.size() >> 8)};
  return header + text;
}

Result<std::span<const std::byte>> npy_elements(std::span<const std::byte> file, aclDataType dtype,
                                                std::span<const std::int64_t> shape) {
  const std::string_view all(reinterpret_cast<const char*>(file.data()), file.size());
  if (all.size() < 12 || !all.starts_with(kMagic)) return Status(kBadInput, "is no .npy file");
  const bool is_first = all[6] == 1;
  std::size_t length = 0;
  for (int i = is_first ? 1 : 3; i >= 0; --i)
    length = length << 8 | static_cast<unsigned char>(all[8 + static_cast<std::size_t>(i)]);
  const std::size_t before = is_first ? 10 : 12;
  if (length > kMostHeader || all.size() < before + length)
    return Status(kBadInput, "ends in its header, or has a very long one");
  const std::string want = dictionary(dtype, shape);
  const std::string_view text = all.substr(before, length);
  if (without_blanks(text) != without_blanks(want))
    return Status(kBadInput, fmt::format("has elements or a shape other than {}", want));
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  const auto elements = file.subspan(before + length);
  if (static_cast<std::int64_t>(elements.size()) != bytes_of(dtype, count))
    return Status(kBadInput, fmt::format("has {} bytes of elements instead of {}", elements.size(),
                                         bytes_of(dtype, count)));
  return elements;
}

void copy_elements_out(const TensorView& view, std::byte* dense) {
  if (is_packed(view.dtype)) {
    std::int64_t to = 0;
    for_each_run(view, [&](std::int64_t at, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) set_nibble(dense, to++, nibble(view.data, at + i));
    });
    return;
  }
  for_each_run(view, [&](std::int64_t at, std::int64_t count) {
    const auto bytes = static_cast<std::size_t>(bytes_of(view.dtype, count));
    std::memcpy(dense, view.data + bytes_of(view.dtype, at), bytes);
    dense += bytes;
  });
}

void copy_elements_in(const std::byte* dense, const TensorView& view) {
  if (is_packed(view.dtype)) {
    std::int64_t from = 0;
    for_each_run(view, [&](std::int64_t at, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) set_nibble(view.data, at + i, nibble(dense, from++));
    });
    return;
  }
  for_each_run(view, [&](std::int64_t at, std::int64_t count) {
    const auto bytes = static_cast<std::size_t>(bytes_of(view.dtype, count));
    std::memcpy(view.data + bytes_of(view.dtype, at), dense, bytes);
    dense += bytes;
  });
}

}  // namespace moeyard
