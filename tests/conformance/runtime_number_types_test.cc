// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "aclnn/opdev/bfloat16.h"
#include "aclnn/opdev/float4_e1m2.h"
#include "aclnn/opdev/float4_e2m1.h"
#include "aclnn/opdev/float6_e2m3.h"
#include "aclnn/opdev/float6_e3m2.h"
#include "aclnn/opdev/float8_e4m3fn.h"
#include "aclnn/opdev/float8_e5m2.h"
#include "aclnn/opdev/float8_e8m0.h"
#include "aclnn/opdev/fp16_t.h"
#include "aclnn/opdev/hifloat8.h"

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

static_assert(sizeof(op::fp16_t) == 2 && sizeof(op::bfloat16) == 2 && sizeof(op::Float4E2M1) == 1 &&
              sizeof(op::HiFloat8) == 1 && sizeof(op::Float8E8M0) == 1);

TEST(Fp16, TakesBitsFromTheConstructorAndNumbersFromTheAssignment) {
  EXPECT_EQ(op::fp16_t().val, 0);
  EXPECT_EQ(op::fp16_t(std::uint16_t(0x3C00)).toFloat(), 1.0f);
  EXPECT_EQ(op::fp16_t(1).val, 0x3C00);
  EXPECT_EQ(op::fp16_t(1.0f).val, 0x3C00);
  EXPECT_EQ(op::fp16_t(0.1).val, 0x2E66);
  EXPECT_EQ(op::fp16_t(std::int8_t{-2}).val, 0xC000);
  EXPECT_EQ(op::fp16_t(true).val, 0x3C00);
  op::fp16_t half;
  half = std::uint16_t(3);
  EXPECT_EQ(half.toFloat(), 3.0f);
  half = -0.5;
  EXPECT_EQ(half.toFloat(), -0.5f);
  const std::vector<op::fp16_t> ones(4, 1), mixed = {1, 2.5f, 3.0};
  EXPECT_EQ(ones[3], 1);
  EXPECT_EQ(mixed[1], 2.5f);
}

TEST(Fp16, SaturatesAndRoundsToEven) {
  for (const double large :
       {65504.0, 65519.0, 65520.0, 1e9, static_cast<double>(kInfinity), static_cast<double>(kNan)})
    EXPECT_EQ(op::fp16_t(large).val, 0x7BFF) << large;
  EXPECT_EQ(op::fp16_t(-1e9f).val, 0xFBFF);
  EXPECT_EQ(op::fp16_t(INT64_MIN).val, 0xFBFF);
  EXPECT_EQ(op::fp16_t(1 + 0x1p-11).val, 0x3C00);
  EXPECT_EQ(op::fp16_t(1 + 0x1p-11 + 0x1p-40).val, 0x3C01) << "from double at once, not through float";
  EXPECT_EQ(op::fp16_t(0x1p-25).val, 0);
  EXPECT_EQ(op::fp16_t(0x1.8p-25).val, 1);
  for (int bits = 0; bits < 0x7C00; ++bits)
    ASSERT_EQ(op::fp16_t(op::fp16_t(static_cast<std::uint16_t>(bits)).toFloat()).val, bits);
}

TEST(Fp16, ConvertsAndComputes) {
  const op::fp16_t a = 2.5f, b = -1.5f;
  const float as_float = a;
  EXPECT_EQ(as_float, 2.5f);
  EXPECT_EQ(static_cast<double>(a), 2.5);
  EXPECT_EQ(static_cast<std::int32_t>(a), 2);
  EXPECT_EQ(static_cast<long long>(b), -1);
  EXPECT_EQ(static_cast<std::uint8_t>(b), 0) << "to the range of the type";
  EXPECT_EQ(static_cast<std::int8_t>(op::fp16_t(300)), 127);
  EXPECT_EQ(a + b, 1.0f);
  EXPECT_EQ(a - b, 4);
  EXPECT_EQ(a * b, -3.75f);
  EXPECT_EQ(a / b, op::fp16_t(2.5 / -1.5));
  EXPECT_EQ(2.0f * a, 5.0f);
  EXPECT_EQ(a + 1, 3.5f);
  EXPECT_EQ(-a, -2.5f);
  EXPECT_TRUE(b < a && a > b && a >= 2.5f && a <= 2.5 && a != b && 3 > a);
  op::fp16_t sum = 1;
  sum += 2;
  sum *= a;
  sum -= b;
  sum /= 3.0f;
  EXPECT_EQ(sum, 3.0f);
  EXPECT_TRUE(static_cast<bool>(a));
  EXPECT_FALSE(static_cast<bool>(op::fp16_t(-0.0f)));
}

TEST(Bf16, IsTheUpperHalfRoundedToEven) {
  EXPECT_EQ(op::bfloat16(1.0f).value, 0x3F80);
  EXPECT_EQ(op::bfloat16(1 + 0x1p-8f).value, 0x3F80);
  EXPECT_EQ(op::bfloat16(1 + 0x1.8p-7f).value, 0x3F82);
  EXPECT_EQ(op::bfloat16(kNan).value, 0x7FC0);
  EXPECT_EQ(op::bfloat16(-kNan).value, 0x7FC0);
  EXPECT_EQ(op::bfloat16(kInfinity).value, 0x7F80);
  EXPECT_EQ(static_cast<float>(op::bfloat16(0xC040, op::bfloat16::from_bits())), -3.0f);
}

// Every number of a format comes back from its value; the bits that are not numbers are counted.
template <class T>
int check_round_trip(int bits_in_use) {
  int not_finite = 0;
  for (int bits = 0; bits < 1 << bits_in_use; ++bits) {
    const float value = T(static_cast<std::uint8_t>(bits), typename T::FromBits());
    if (!std::isfinite(value))
      ++not_finite;
    else
      EXPECT_EQ(T(value).value, bits) << value;
  }
  return not_finite;
}

TEST(SmallFloats, RoundTrip) {
  EXPECT_EQ(check_round_trip<op::Float4E2M1>(4), 0);
  EXPECT_EQ(check_round_trip<op::Float4E1M2>(4), 0);
  EXPECT_EQ(check_round_trip<op::Float6E3M2>(6), 0);
  EXPECT_EQ(check_round_trip<op::Float6E2M3>(6), 0);
  EXPECT_EQ(check_round_trip<op::Float8E5M2>(8), 8);    // two infinities and six NaN
  EXPECT_EQ(check_round_trip<op::Float8E4M3FN>(8), 2);  // two NaN
  EXPECT_EQ(check_round_trip<op::Float8E8M0>(8), 1);    // one NaN
  EXPECT_EQ(check_round_trip<op::HiFloat8>(8), 3);      // two infinities and a NaN
}

TEST(Float4E2M1, RoundsToEvenAndSaturates) {
  const float values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (std::uint8_t bits = 0; bits < 8; ++bits) {
    EXPECT_EQ(static_cast<float>(op::Float4E2M1(bits, op::Float4E2M1::FromBits())), values[bits]);
    EXPECT_EQ(op::Float4E2M1(-values[bits]).value, bits | 8);
  }
  EXPECT_EQ(static_cast<float>(op::Float4E2M1(0.25f)), 0.0f);
  EXPECT_EQ(static_cast<float>(op::Float4E2M1(2.5f)), 2.0f);
  EXPECT_EQ(static_cast<float>(op::Float4E2M1(3.5f)), 4.0f);
  EXPECT_EQ(static_cast<float>(op::Float4E2M1(5.0f)), 4.0f);
  EXPECT_EQ(static_cast<float>(op::Float4E2M1(100.0f)), 6.0f);
  EXPECT_EQ(static_cast<float>(op::Float4E2M1(-kInfinity)), -6.0f);
}

TEST(OtherFormats, HaveTheirRanges) {
  EXPECT_EQ(static_cast<float>(op::Float4E1M2(100)), 1.75f);
  EXPECT_EQ(static_cast<float>(op::Float6E3M2(100)), 28.0f);
  EXPECT_EQ(static_cast<float>(op::Float6E2M3(100)), 7.5f);
  EXPECT_EQ(static_cast<float>(op::Float8E4M3FN(1000)), 448.0f);
  EXPECT_EQ(op::Float8E4M3FN(kNan).value, 0x7F);
  EXPECT_EQ(static_cast<float>(op::Float8E5M2(1e6)), 57344.0f);
  EXPECT_EQ(op::Float8E5M2(kInfinity).value, 0x7C);
  EXPECT_TRUE(std::isnan(static_cast<float>(op::Float8E5M2(kNan))));
  EXPECT_EQ(static_cast<float>(op::Float8E8M0(1.0f)), 1.0f);
  EXPECT_EQ(static_cast<float>(op::Float8E8M0(1.4f)), 1.0f);
  EXPECT_EQ(static_cast<float>(op::Float8E8M0(1.5f)), 2.0f);
  EXPECT_EQ(op::Float8E8M0(0.0f).value, 0);
  EXPECT_EQ(op::Float8E8M0(-1.0f).value, 0xFF);
  EXPECT_EQ(op::Float8E8M0(kNan).value, 0xFF);
}

TEST(HiFloat8, HasItsSpecialNumbers) {
  const auto value = [](std::uint8_t bits) {
    return static_cast<float>(op::HiFloat8(bits, op::HiFloat8::FromBits()));
  };
  EXPECT_EQ(value(0x00), 0.0f);
  EXPECT_TRUE(std::isnan(value(0x80)));
  EXPECT_EQ(value(0x6F), kInfinity);
  EXPECT_EQ(value(0xEF), -kInfinity);
  EXPECT_EQ(value(0x6E), 32768.0f);
  EXPECT_EQ(value(0x08), 1.0f);             // 0001 000: D 0, exponent 0
  EXPECT_EQ(value(0x0C), 1.5f);             // 0001 100
  EXPECT_EQ(value(0x10), 2.0f);             // 001 0 000: exponent +1
  EXPECT_EQ(value(0x18), 0.5f);             // 001 1 000: exponent -1
  EXPECT_EQ(value(0x20), 4.0f);             // 01 00 000: exponent +2
  EXPECT_EQ(value(0x7F), 0x1p-15f * 1.5f);  // 11 1111 1: exponent -15
  EXPECT_EQ(value(0x01), 0x1p-22f);
  EXPECT_EQ(value(0x07), 0x1p-16f);
  std::set<float> different;
  for (int bits = 0; bits < 0x80; ++bits) different.insert(value(static_cast<std::uint8_t>(bits)));
  EXPECT_EQ(different.size(), 128u);

  EXPECT_EQ(op::HiFloat8(1.0625f).value, 0x09) << "a tie goes away from zero";
  EXPECT_EQ(op::HiFloat8(-1.0625f).value, 0x89);
  EXPECT_EQ(op::HiFloat8(1e9f).value, 0x6E);
  EXPECT_EQ(op::HiFloat8(kInfinity).value, 0x6E);
  EXPECT_EQ(op::HiFloat8(kNan).value, 0x80);
  EXPECT_EQ(op::HiFloat8(0x1p-23f).value, 0x01);
  EXPECT_EQ(op::HiFloat8(0x1.fffffep-24f).value, 0x00);
  EXPECT_EQ(op::HiFloat8(-0.0f).value, 0x00);
}

}  // namespace
