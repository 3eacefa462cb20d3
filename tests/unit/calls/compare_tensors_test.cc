// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "calls/compare.h"

#include <gmock/gmock.h>

#include <cmath>

#include "base/numbers.h"
#include "base/small_float.h"

namespace moeyard::calls {
namespace {

template <class T>
Difference differ(aclDataType dtype, const std::vector<T>& got, const std::vector<T>& want,
                  const std::vector<T>& other = {}, std::int64_t elements = -1) {
  return compare(dtype, elements < 0 ? std::ssize(got) : elements, std::as_bytes(std::span(got)),
                 std::as_bytes(std::span(want)), std::as_bytes(std::span(other)));
}

TEST(Compare, CountsUnitsInTheLastPlace) {
  const float one = 1, next = std::nextafterf(1, 2), third = std::nextafterf(std::nextafterf(next, 2), 2);
  const Difference d = differ<float>(ACL_FLOAT, {one, next, third, 8, -1e-45F}, {one, one, one, 8, 1e-45F});
  EXPECT_EQ(d.different, 3);
  EXPECT_EQ(d.ulps[0], 2);
  EXPECT_EQ(d.ulps[1], 1);
  EXPECT_EQ(d.ulps[2], 1);  // across zero
  EXPECT_EQ(d.ulps[3], 1);
  EXPECT_EQ(d.first, 1);
  EXPECT_EQ(d.first_got, next);
  EXPECT_EQ(d.most_ulps, 3U);
  EXPECT_FLOAT_EQ(static_cast<float>(d.largest_error), third - one);
  EXPECT_TRUE(d.within(3));
  EXPECT_FALSE(d.within(2));
}

TEST(Compare, ZerosAreAlikeAndNoNumbersAreAlikeButNotLikeNumbers) {
  const Difference d = differ<float>(ACL_FLOAT, {0.F, NAN, NAN, 1}, {-0.F, -NAN, 1, NAN});
  EXPECT_EQ(d.different, 2);
  EXPECT_EQ(d.no_number, 2);
  EXPECT_FALSE(d.within(1'000'000));
}

TEST(Compare, LeavesOutWhatWasNotWritten) {
  const Difference d = differ<std::int32_t>(ACL_INT32, {1, 2, 3, 4}, {1, 9, 8, 4}, {1, 7, 3, 4});
  EXPECT_EQ(d.unwritten, 1);
  EXPECT_EQ(d.different, 1);
  EXPECT_EQ(d.first, 2);
  EXPECT_EQ(d.first_want, 8);
}

TEST(Compare, KnowsIntegersOfAllSizes) {
  EXPECT_EQ(differ<std::int64_t>(ACL_INT64, {INT64_MIN}, {INT64_MAX}).most_ulps, UINT64_MAX);
  EXPECT_EQ(differ<std::int8_t>(ACL_INT8, {-1}, {1}).most_ulps, 2U);
  EXPECT_EQ(differ<std::uint8_t>(ACL_UINT8, {255}, {1}).most_ulps, 254U);
  const Difference packed = differ<std::uint8_t>(ACL_INT4, {0x2F, 0x03}, {0x21, 0xF3}, {}, 3);
  EXPECT_EQ(packed.different, 1);  // -1 and 1; the last half of a byte is none of the three
  EXPECT_EQ(packed.first_got, -1);
}

// Each value of a small type is that which rounds to it.
TEST(Compare, KnowsValuesOfSmallTypes) {
  const auto value = [](aclDataType dtype, int bits) {
    return differ<std::uint8_t>(dtype, {static_cast<std::uint8_t>(bits)},
                                {static_cast<std::uint8_t>(bits ^ 1)})
        .first_got;
  };
  for (int bits = 1; bits < 256; ++bits) {
    const double e4 = value(ACL_FLOAT8_E4M3FN, bits), e5 = value(ACL_FLOAT8_E5M2, bits),
                 hif8 = value(ACL_HIFLOAT8, bits);
    if (std::isfinite(e4) && e4 != 0) {
      EXPECT_EQ(E4m3::round(static_cast<float>(e4)).bits, bits);
    }
    if (std::isfinite(e5) && e5 != 0) {
      EXPECT_EQ(E5m2::round(static_cast<float>(e5)).bits, bits);
    }
    if (std::isfinite(hif8) && hif8 != 0) {
      EXPECT_EQ(Hif8::round(static_cast<float>(hif8)).bits, bits) << hif8;
    }
  }
  EXPECT_EQ(value(ACL_FLOAT4_E2M1, 7), 6);
  EXPECT_EQ(value(ACL_FLOAT4_E1M2, 0xF), -1.75);
  EXPECT_EQ(value(ACL_FLOAT8_E8M0, 130), 8);
  for (int bits = 0; bits < 65536; bits += 17) {
    const auto half = static_cast<std::uint16_t>(bits), other = static_cast<std::uint16_t>(bits ^ 1);
    const double f16 = differ<std::uint16_t>(ACL_FLOAT16, {half}, {other}).first_got;
    const double b16 = differ<std::uint16_t>(ACL_BF16, {half}, {other}).first_got;
    if (std::isfinite(f16) && f16 != 0) {
      EXPECT_EQ(f16, to_float(Fp16{half}));
    }
    if (std::isfinite(b16) && b16 != 0) {
      EXPECT_EQ(b16, to_float(Bf16{half}));
    }
  }
}

TEST(Compare, LargeTensorsAreComparedPieceByPiece) {
  std::vector<std::uint16_t> got(10001, 0x3F80), want = got;
  want[5000] = 0x3F81;
  want[10000] = 0x3F90;
  const Difference d = differ(ACL_BF16, got, want);
  EXPECT_EQ(d.different, 2);
  EXPECT_EQ(d.first, 5000);
  EXPECT_EQ(d.ulps[0], 9999);
  EXPECT_EQ(d.ulps[1], 1);
  EXPECT_EQ(d.ulps[5], 1);
  EXPECT_EQ(name_of_bin(5), "9-16");
  EXPECT_EQ(name_of_bin(3), "3-4");
  EXPECT_EQ(index_text(5000, std::vector<std::int64_t>{2, 73, 137}), "[0, 36, 68]");
}

}  // namespace
}  // namespace moeyard::calls
