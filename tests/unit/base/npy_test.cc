// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "base/npy.h"

#include <gmock/gmock.h>

#include <numeric>

namespace moeyard {
namespace {

using testing::HasSubstr;

std::span<const std::byte> bytes_of_text(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST(Npy, HeadersAreThoseOfNumPy) {
  const std::int64_t shape[] = {2, 3};
  const std::string header = npy_header(ACL_FLOAT, shape);
  EXPECT_EQ(header.size() % 64, 0U);
  EXPECT_EQ(header.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_THAT(header, HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"));
  EXPECT_EQ(header.back(), '\n');
  EXPECT_THAT(npy_header(ACL_BF16, std::vector<std::int64_t>{5}),
              HasSubstr("'<u2', 'fortran_order': False, 'shape': (5,)"));
  EXPECT_THAT(npy_header(ACL_INT4, shape), HasSubstr("'|u1', 'fortran_order': False, 'shape': (3,)"));
  EXPECT_THAT(npy_header(ACL_BOOL, {}), HasSubstr("'|b1', 'fortran_order': False, 'shape': ()"));
}

TEST(Npy, ElementsAreFoundOrTheFileIsRefused) {
  const std::vector<std::int64_t> shape = {3};
  const std::string file = npy_header(ACL_INT8, shape) + "abc";
  const auto elements = npy_elements(bytes_of_text(file), ACL_INT8, shape);
  ASSERT_TRUE(elements);
  EXPECT_EQ(static_cast<char>((*elements)[1]), 'b');
  const auto refuse = [&](const std::string& damaged, aclDataType dtype, const std::string& part) {
    const auto refused = npy_elements(bytes_of_text(damaged), dtype, shape);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message(), HasSubstr(part));
  };
  refuse("", ACL_INT8, "no .npy file");
  refuse("PK", ACL_INT8, "no .npy file");
  refuse(file.substr(0, 40), ACL_INT8, "ends in its header");
  refuse(file + "d", ACL_INT8, "has 4 bytes of elements instead of 3");
  refuse(file.substr(0, file.size() - 1), ACL_INT8, "has 2 bytes");
  refuse(file, ACL_FLOAT, "other than {'descr': '<f4'");
  std::string many = file;
  many[8] = many[9] = '\xFF';
  refuse(many, ACL_INT8, "ends in its header, or has a very long one");
}

// As another program might write it: version 2, other quotes and blanks.
TEST(Npy, OtherWritersAreUnderstood) {
  const std::string text = "{\"descr\":\"<f4\",\"fortran_order\":False,\"shape\":(1,)}\n";
  std::string file = std::string("\x93NUMPY\x02\x00", 8);
  file += {static_cast<char>(text.size()), 0, 0, 0};
  file += text + "1234";
  EXPECT_TRUE(npy_elements(bytes_of_text(file), ACL_FLOAT, std::vector<std::int64_t>{1}));
}

// Every element of a view goes where plain loops put it, and back.
TEST(Npy, ViewsAreGatheredAndScattered) {
  std::vector<std::int32_t> memory(200), dense(24), back(200, -1);
  std::iota(memory.begin(), memory.end(), 0);
  const std::int64_t strides[][3] = {{12, 4, 1}, {1, 40, 8}, {-30, 7, 2}, {0, 4, 1}};
  for (const auto& s : strides) {
    TensorView view{reinterpret_cast<std::byte*>(memory.data()),
                    ACL_INT32,
                    ACL_FORMAT_ND,
                    3,
                    61,
                    {2, 3, 4},
                    {s[0], s[1], s[2]}};
    copy_elements_out(view, reinterpret_cast<std::byte*>(dense.data()));
    TensorView other = view;
    other.data = reinterpret_cast<std::byte*>(back.data());
    copy_elements_in(reinterpret_cast<const std::byte*>(dense.data()), other);
    std::size_t n = 0;
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 3; ++j)
        for (int k = 0; k < 4; ++k) {
          const auto at = static_cast<std::size_t>(61 + i * s[0] + j * s[1] + k * s[2]);
          EXPECT_EQ(dense[n++], memory[at]);
          EXPECT_EQ(back[at], memory[at]);
        }
  }
}

TEST(Npy, HalvesOfBytesAreKeptApart) {
  std::uint8_t memory[] = {0x21, 0x43, 0x65, 0x87}, dense[2] = {}, back[4] = {0xFF, 0xFF, 0xFF, 0xFF};
  TensorView view{reinterpret_cast<std::byte*>(memory), ACL_INT4, ACL_FORMAT_ND, 2, 1, {2, 2}, {4, 1}};
  copy_elements_out(view, reinterpret_cast<std::byte*>(dense));
  EXPECT_EQ(dense[0], 0x32);
  EXPECT_EQ(dense[1], 0x76);
  view.data = reinterpret_cast<std::byte*>(back);
  copy_elements_in(reinterpret_cast<const std::byte*>(dense), view);
  EXPECT_THAT(back, testing::ElementsAre(0x2F, 0xF3, 0x6F, 0xF7));
}

}  // namespace
}  // namespace moeyard
