// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/convert/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/numbers.h"

namespace moeyard::kernels {
namespace {

class ConvertTest : public testing::TestWithParam<Variant<ConvertFn>> {
 protected:
  template <class To, class From>
  std::vector<To> run(const std::vector<From>& from, aclDataType from_dtype, aclDataType to_dtype) {
    std::vector<To> to(from.size());
    const auto n = static_cast<std::int64_t>(from.size());
    GetParam().run({reinterpret_cast<const std::byte*>(from.data()), from_dtype,
                    reinterpret_cast<std::byte*>(to.data()), to_dtype},
                   {0, n});
    return to;
  }
};

std::vector<std::uint16_t> every_half() {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  return all;
}

// Values next to every rounding boundary, both sides of zero, and random bit patterns.
std::vector<std::uint32_t> telling_floats() {
  std::vector<std::uint32_t> bits = {0,           0x80000000u, 0x7F800000u, 0xFF800000u,
                                     0x7FC00000u, 0xFFA00001u, 0x7F800001u};
  for (std::uint32_t high = 0; high < 0x10000u; high += 7)
    for (const std::uint32_t low :
         {0x0000u, 0x0FFFu, 0x1000u, 0x1001u, 0x2FFFu, 0x3000u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu})
      bits.push_back(high << 16 | low);
  std::mt19937 random(5489);
  for (int i = 0; i < 100003; ++i) bits.push_back(random());
  return bits;
}

// IEEE binary16 by its definition, independent of base/numbers.h: sign * mantissa * 2^exponent.
double half_by_definition(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const double mantissa = bits & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST_P(ConvertTest, WidensEveryFp16ByItsDefinition) {
  const auto halves = every_half();
  const auto floats = run<float>(halves, ACL_FLOAT16, ACL_FLOAT);
  for (std::size_t i = 0; i < halves.size(); ++i) {
    const bool special = ((halves[i] >> 10) & 31) == 31;
    if (!special)
      ASSERT_EQ(floats[i], half_by_definition(halves[i])) << i;
    else if ((halves[i] & 1023) == 0)
      ASSERT_TRUE(std::isinf(floats[i]) && std::signbit(floats[i]) == ((halves[i] & 0x8000) != 0)) << i;
    else
      ASSERT_TRUE(std::isnan(floats[i])) << i;
  }
}

TEST_P(ConvertTest, WidensEveryBf16AsTheHighHalfOfAFloat) {
  const auto halves = every_half();
  const auto floats = run<std::uint32_t>(halves, ACL_BF16, ACL_FLOAT);
  for (std::size_t i = 0; i < halves.size(); ++i)
    ASSERT_EQ(floats[i], static_cast<std::uint32_t>(halves[i]) << 16);
}

TEST_P(ConvertTest, HasTheBitsOfTheScalarConversions) {
  const auto bits = telling_floats();
  const auto to_half = run<std::uint16_t>(bits, ACL_FLOAT, ACL_FLOAT16);
  const auto to_brain = run<std::uint16_t>(bits, ACL_FLOAT, ACL_BF16);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    ASSERT_EQ(to_half[i], to_fp16(std::bit_cast<float>(bits[i])).bits) << std::hex << bits[i];
    ASSERT_EQ(to_brain[i], to_bf16(std::bit_cast<float>(bits[i])).bits) << std::hex << bits[i];
  }
  const auto halves = every_half();
  const auto widened = run<std::uint32_t>(halves, ACL_FLOAT16, ACL_FLOAT);
  for (std::size_t i = 0; i < halves.size(); ++i)
    ASSERT_EQ(widened[i], std::bit_cast<std::uint32_t>(to_float(Fp16{halves[i]}))) << i;
}

TEST_P(ConvertTest, RoundsToTheNearestFp16WithTiesToEven) {
  // Between neighbours a < b: below the middle a, above it b, in the middle the even one.
  std::vector<float> between;
  std::vector<std::uint16_t> expected;
  for (std::uint16_t a = 0; a < 0x7BFF; ++a) {
    const double low = half_by_definition(a), high = half_by_definition(static_cast<std::uint16_t>(a + 1));
    const auto middle = static_cast<float>((low + high) / 2);
    between.insert(between.end(), {std::nextafter(middle, 0.0f), middle, std::nextafter(middle, 1e9f)});
    const auto up = static_cast<std::uint16_t>(a + 1);
    expected.insert(expected.end(), {a, (a & 1) == 0 ? a : up, up});
  }
  EXPECT_EQ(run<std::uint16_t>(between, ACL_FLOAT, ACL_FLOAT16), expected);
}

TEST_P(ConvertTest, LeavesWhatIsOutsideTheRangeAlone) {
  const std::vector<float> from(64, 1.5f);
  std::vector<std::uint16_t> to(64, 0xABCD);
  GetParam().run({reinterpret_cast<const std::byte*>(from.data()), ACL_FLOAT,
                  reinterpret_cast<std::byte*>(to.data()), ACL_BF16},
                 {3, 40});
  for (std::size_t i = 0; i < to.size(); ++i) ASSERT_EQ(to[i], 3 <= i && i < 40 ? 0x3FC0 : 0xABCD) << i;
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, ConvertTest,
                         testing::ValuesIn(convert_variants().begin(), convert_variants().end()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace moeyard::kernels
