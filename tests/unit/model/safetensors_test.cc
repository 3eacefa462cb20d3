// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/safetensors.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <limits>

#include "support/model_files.h"

namespace moeyard::model {
namespace {

using test::safetensors_bytes;
using test::TemporaryFolder;
using testing::HasSubstr;

Result<StoredTensors> parse(const std::string& bytes) {
  return parse_safetensors(std::as_bytes(std::span(bytes)), "x.safetensors");
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape, offsets);
}

TEST(Safetensors, ReadsTensorsInAnyOrderWithMetadataAndPadding) {
  const std::string header =
      fmt::format(R"({{{},"__metadata__":{{"format":"pt"}},{},{},{}}}   )",
                  entry("b", "F32", "[2]", "[2,10]"), entry("a", "BF16", "[1,1]", "[0,2]"),
                  entry("none", "I64", "[3,0]", "[10,10]"), entry("scalar", "U8", "[]", "[10,11]"));
  const std::string bytes = safetensors_bytes(header, "0123456789A");
  const auto tensors = parse(bytes);
  ASSERT_TRUE(tensors) << tensors.error().message();
  ASSERT_EQ(tensors->size(), 4u);
  const StoredTensor& b = tensors->at("b");
  EXPECT_EQ(b.type, StoredType::f32);
  EXPECT_THAT(b.shape, testing::ElementsAre(2));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(b.bytes.data()), b.bytes.size()), "23456789");
  EXPECT_EQ(tensors->at("none").elements(), 0);
  EXPECT_EQ(tensors->at("scalar").elements(), 1);
}

TEST(Safetensors, AFileWithoutTensorsIsAFile) { EXPECT_TRUE(parse(safetensors_bytes("{}", ""))); }

struct BadFile {
  const char* name;
  std::string bytes;
  const char* says;
};

std::string with_length(std::uint64_t length, const std::string& rest) {
  return std::string(reinterpret_cast<const char*>(&length), 8) + rest;
}

std::string with_entries(const std::vector<std::string>& entries, std::size_t data = 0) {
  return safetensors_bytes(fmt::format("{{{}}}", fmt::join(entries, ",")), std::string(data, 'x'));
}

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets,
                std::size_t data) {
  return with_entries({entry("t", dtype, shape, offsets)}, data);
}

std::string two(const std::string& first, const std::string& second, std::size_t data) {
  return with_entries({entry("a", "U8", "[4]", first), entry("b", "U8", "[4]", second)}, data);
}

std::string header_of(const std::string& header) { return safetensors_bytes(header, ""); }

class BadSafetensors : public testing::TestWithParam<BadFile> {};

TEST_P(BadSafetensors, IsRefusedWithItsReason) {
  const auto tensors = parse(GetParam().bytes);
  ASSERT_FALSE(tensors);
  EXPECT_EQ(tensors.error().code(), 2);
  EXPECT_THAT(tensors.error().message(), HasSubstr("x.safetensors"));
  EXPECT_THAT(tensors.error().message(), HasSubstr(GetParam().says));
  EXPECT_LT(tensors.error().message().size(), 400u);
}

const BadFile kBadFiles[] = {
    {"empty", "", "0 bytes are less than the 8"},
    {"short", "1234567", "7 bytes are less than the 8"},
    {"no_header", with_length(0, "{}"), "header is empty"},
    {"header_too_long", with_length(100'000'001, "{}"), "100000001 bytes is announced"},
    {"header_beyond_file", with_length(3, "{}"), "the most is 2"},
    {"length_of_all_ones", with_length(~std::uint64_t{0}, "{}"), "18446744073709551615 bytes is announced"},
    {"not_json", header_of("{]"), "not valid JSON at byte 2"},
    {"cut_json", header_of("{\"a\":"), "not valid JSON"},
    {"not_utf8", header_of("{\"\xff\":{}}"), "not valid JSON"},
    {"text_after", header_of("{} x"), "not valid JSON at byte 4"},
    {"zero_byte_after", header_of(std::string("{}\0\0", 4)), "not valid JSON at byte 3"},
    {"blank_before", header_of(" {}"), "not valid JSON at byte 1"},
    {"array", header_of("[]"), "not valid JSON at byte 1"},
    {"member_no_object", header_of("{\"a\":1}"), "value of 'a' is not an object"},
    {"member_array", header_of("{\"a\":[]}"), "value of 'a' is not an object"},
    {"metadata_no_object", header_of("{\"__metadata__\":\"x\"}"), "value of '__metadata__' is not an object"},
    {"metadata_number", header_of("{\"__metadata__\":{\"a\":1}}"),
     "__metadata__ has a value that is not a string"},
    {"metadata_object", header_of("{\"__metadata__\":{\"a\":{}}}"),
     "__metadata__ has a value that is not a string"},
    {"metadata_twice", header_of("{\"__metadata__\":{},\"__metadata__\":{}}"), "'__metadata__' comes twice"},
    {"unknown_field", header_of("{\"a\":{\"strides\":[1]}}"), "unknown field 'strides'"},
    {"field_twice", header_of("{\"a\":{\"shape\":[],\"shape\":[]}}"), "has its shape twice"},
    {"no_dtype", header_of("{\"a\":{\"shape\":[],\"data_offsets\":[0,0]}}"), "has no dtype"},
    {"no_shape", header_of("{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,0]}}"), "has no shape"},
    {"no_offsets", header_of("{\"a\":{\"dtype\":\"U8\",\"shape\":[0]}}"), "has no data_offsets"},
    {"dtype_number", header_of("{\"a\":{\"dtype\":1}}"), "a dtype of the wrong kind"},
    {"dtype_unknown", one("F33", "[1]", "[0,4]", 4), "unknown type 'F33'"},
    {"dtype_lower_case", one("f32", "[1]", "[0,4]", 4), "unknown type 'f32'"},
    {"shape_no_list", one("U8", "4", "[0,4]", 4), "a shape of the wrong kind"},
    {"shape_object", one("U8", "{}", "[0,4]", 4), "a shape of the wrong kind"},
    {"shape_nested", one("U8", "[[4]]", "[0,4]", 4), "a shape of the wrong kind"},
    {"shape_string", one("U8", "[\"4\"]", "[0,4]", 4), "a shape of the wrong kind"},
    {"shape_true", one("U8", "[true]", "[0,1]", 1), "a shape of the wrong kind"},
    {"shape_null", one("U8", "[null]", "[0,1]", 1), "a shape of the wrong kind"},
    {"shape_negative", one("U8", "[-4]", "[0,4]", 4), "negative number -4 in its shape"},
    {"shape_float", one("U8", "[4.0]", "[0,4]", 4), "'4.0' in its shape"},
    {"shape_exponent", one("U8", "[4e0]", "[0,4]", 4), "'4e0' in its shape"},
    {"shape_huge", one("U8", "[99999999999999999999]", "[0,4]", 4), "not an integer of 64 bits"},
    {"shape_above_63_bits", one("U8", "[9223372036854775808]", "[0,4]", 4), "overflows 63 bits"},
    {"shape_product_overflows", one("U8", "[4294967296,4294967296]", "[0,0]", 0), "overflows 63 bits"},
    {"shape_bytes_overflow", one("F64", "[2305843009213693952]", "[0,0]", 0), "overflows 63 bits"},
    {"offsets_one", one("U8", "[4]", "[4]", 4), "1 data_offsets, there must be 2"},
    {"offsets_three", one("U8", "[4]", "[0,2,4]", 4), "3 data_offsets, there must be 2"},
    {"offsets_negative", one("U8", "[4]", "[-4,0]", 4), "negative number -4 in its data_offsets"},
    {"offsets_reversed", one("U8", "[4]", "[4,0]", 4), "begins at 4, after its end 0"},
    {"bytes_too_few", one("F32", "[2]", "[0,4]", 4), "has 4 bytes, its shape needs 8"},
    {"bytes_too_many", one("U8", "[2]", "[0,4]", 4), "has 4 bytes, its shape needs 2"},
    {"cut_off", one("U8", "[4]", "[0,4]", 3), "take 4 bytes, but 3 bytes are there (cut off?)"},
    {"rest_unused", one("U8", "[4]", "[0,4]", 5), "take 4 bytes, but 5 bytes are there"},
    {"data_without_tensors", safetensors_bytes("{}", "x"), "take 0 bytes, but 1 bytes are there"},
    {"overlap", two("[0,4]", "[2,6]", 6), "'b' begins at byte 2 of the data, inside another one"},
    {"same_range", two("[0,4]", "[0,4]", 4), "inside another one"},
    {"hole", two("[0,4]", "[5,9]", 9), "leaves a hole after 4"},
    {"hole_at_begin", one("U8", "[4]", "[1,5]", 5), "leaves a hole after 0"},
    {"far_beyond", one("U8", "[9223372036854775807]", "[0,9223372036854775807]", 4), "(cut off?)"},
    {"name_twice", with_entries({entry("a", "U8", "[0]", "[0,0]"), entry("a", "U8", "[0]", "[0,0]")}),
     "'a' comes twice"},
    {"deep", header_of("{\"a\":" + std::string(200'000, '[')), "value of 'a' is not an object"},
    {"deep_metadata", header_of("{\"__metadata__\":{\"a\":" + std::string(200'000, '{')), "not a string"},
    {"long_name", header_of("{\"" + std::string(100'000, 'n') + "\":1}"), "nnn...'"},
    {"name_with_newline", header_of("{\"a\\nb\":1}"), "'a?b'"},
};

INSTANTIATE_TEST_SUITE_P(Files, BadSafetensors, testing::ValuesIn(kBadFiles),
                         [](const auto& info) { return info.param.name; });

TEST(Safetensors, MissingFileAndFolderAreRefused) {
  const TemporaryFolder folder;
  for (const auto& path : {folder.path() / "nothing", folder.path()}) {
    const auto file = SafetensorsFile::open(path);
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code(), 2);
  }
}

TEST(Safetensors, WhatIsWrittenReadsBack) {
  const TemporaryFolder folder;
  const std::vector<std::uint16_t> halves = {1, 2, 3};
  const std::vector<std::int32_t> ids = {-1, 7, 1 << 30, 0};
  const StoredTensor tensors[] = {
      {"halves \"quoted\"", StoredType::f16, {3}, std::as_bytes(std::span(halves))},
      {"ids", StoredType::i32, {2, 2}, std::as_bytes(std::span(ids))},
      {"nothing", StoredType::bf16, {0, 8}, {}}};
  const auto path = folder.path() / "out.safetensors";
  ASSERT_TRUE(write_safetensors(path, tensors).ok());
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file) << file.error().message();
  for (const StoredTensor& wrote : tensors) {
    const StoredTensor* read = file->find(wrote.name);
    ASSERT_NE(read, nullptr) << wrote.name;
    EXPECT_EQ(read->type, wrote.type);
    EXPECT_EQ(read->shape, wrote.shape);
    EXPECT_TRUE(std::equal(read->bytes.begin(), read->bytes.end(), wrote.bytes.begin(), wrote.bytes.end()));
    const std::size_t past_alignment =
        reinterpret_cast<std::uintptr_t>(read->bytes.data()) % info_of(wrote.type).bytes;
    EXPECT_TRUE(wrote.bytes.empty() || past_alignment == 0) << wrote.name << " is not aligned";
  }
  EXPECT_EQ(file->find("other"), nullptr);
}

TEST(Safetensors, WritingWhereNoFileCanBeIsRefused) {
  const TemporaryFolder folder;
  EXPECT_EQ(write_safetensors(folder.path() / "no" / "file", {}).code(), 2);
}

TEST(StoredTypes, WidenExactlyAtAnyAlignment) {
  const float values[] = {1.5f, -0x1p-20f, 65504.0f, 0.0f};
  std::vector<std::byte> bytes(1 + sizeof values);
  std::memcpy(bytes.data() + 1, values, sizeof values);
  float wide[4];
  widen(StoredType::f32, bytes.data() + 1, 4, wide);
  EXPECT_THAT(wide, testing::ElementsAreArray(values));
  for (const StoredType type : {StoredType::bf16, StoredType::f16}) {
    std::uint16_t halves[4];
    narrow(values, type, halves);
    std::memcpy(bytes.data() + 1, halves, sizeof halves);
    widen(type, bytes.data() + 1, 4, wide);
    EXPECT_EQ(wide[0], 1.5f);
    EXPECT_EQ(wide[2], type == StoredType::f16 ? 65504.0f : 65536.0f);
  }
}

TEST(StoredTypes, FindTheFirstValueThatIsNotFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> values(9, 3e4f);
    values[5] = values[8] = bad;
    EXPECT_EQ(find_not_finite(StoredType::f32, std::as_bytes(std::span(values)).data(), 9), 5);
    EXPECT_EQ(find_not_finite(StoredType::f32, std::as_bytes(std::span(values)).data(), 5), -1);
    for (const StoredType type : {StoredType::bf16, StoredType::f16}) {
      std::uint16_t halves[9];
      narrow(values, type, halves);
      EXPECT_EQ(find_not_finite(type, std::as_bytes(std::span(halves)).data(), 9), 5);
    }
  }
}

}  // namespace
}  // namespace moeyard::model
