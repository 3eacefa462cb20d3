// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul_tile/matmul_tile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/numbers.h"

namespace moeyard::kernels {
namespace {

struct Shape {
  const char* name;
  std::int64_t rows, columns, depth;
};

constexpr Shape kShapes[] = {
    {"one", 1, 1, 1},           {"no_depth", 3, 5, 0},
    {"below_vector", 2, 3, 3},  {"below_registers", 5, 15, 7},
    {"at_registers", 6, 16, 8}, {"above_registers", 7, 17, 9},
    {"few_rows", 12, 40, 300},  {"more_rows", 13, 100, 64},
    {"at_depth", 3, 33, 256},   {"above_depth", 25, 64, 257},
#ifndef MOEYARD_SANITIZED  // minutes there, and no other paths
    {"full", 96, 128, 256},     {"full_and_deep", 96, 127, 530},
#endif
};

enum class Order {
  rows,
  transposed,
  apart
};  // of w in memory: columns next to each other, k next to each other, neither

// Operands of any type with padded rows, and what the product is.
class MatmulProblem {
 public:
  MatmulProblem(const Shape& shape, aclDataType dtype, Order order)
      : shape_(shape), dtype_(dtype), order_(order) {
    std::mt19937 random(static_cast<unsigned>(shape.rows * 131 + shape.columns * 17 + shape.depth));
    x_step_ = order == Order::apart ? 2 : 1;
    x_row_ = x_step_ * shape.depth + 3;
    w_k_ = order == Order::transposed ? 1 : order == Order::rows ? shape.columns + 5 : 2 * shape.columns;
    w_column_ = order == Order::transposed ? shape.depth + 2 : order == Order::rows ? 1 : 2;
    x_ = draw(shape.rows * x_row_, random);
    w_ = draw(shape.depth * w_k_ + shape.columns * w_column_, random);
    x_bytes_ = stored(x_), w_bytes_ = stored(w_);
    for (std::int64_t r = 0; r < shape.rows; ++r)
      x_rows_.push_back(reinterpret_cast<const std::byte*>(x_bytes_.data()) + bytes_of(dtype, r * x_row_));
  }

  // Sums of rows [begin, end), as their bits.
  std::vector<std::uint32_t> run(MatmulTileFn matmul, std::int64_t begin, std::int64_t end) const {
    alignas(64) static std::byte scratch[kMatmulScratchBytes];
    std::vector<std::uint32_t> sum(static_cast<std::size_t>((end - begin) * kMatmulColumns), 0x5A5A5A5Au);
    matmul({x_rows_.data() + begin, x_step_, reinterpret_cast<const std::byte*>(w_bytes_.data()), w_k_,
            w_column_, dtype_, end - begin, shape_.columns, shape_.depth, sum.data(), scratch});
    std::vector<std::uint32_t> wanted;
    for (std::int64_t r = 0; r < end - begin; ++r)
      for (std::int64_t c = 0; c < shape_.columns; ++c)
        wanted.push_back(sum[static_cast<std::size_t>(r * kMatmulColumns + c)]);
    return wanted;
  }

  double product(std::int64_t r, std::int64_t c) const {
    double sum = 0;
    for (std::int64_t k = 0; k < shape_.depth; ++k) sum += term(r, c, k);
    return sum;
  }
  double magnitude(std::int64_t r, std::int64_t c) const {
    double sum = 0;
    for (std::int64_t k = 0; k < shape_.depth; ++k) sum += std::fabs(term(r, c, k));
    return sum;
  }
  float chain(std::int64_t r, std::int64_t c, bool fused) const {  // the documented order
    float sum = 0;
    for (std::int64_t k = 0; k < shape_.depth; ++k) {
      const float x = x_at(r, k), w = w_at(k, c);
      sum = fused ? std::fma(x, w, sum) : sum + x * w;
    }
    return sum;
  }

 private:
  float x_at(std::int64_t r, std::int64_t k) const {
    return x_[static_cast<std::size_t>(r * x_row_ + k * x_step_)];
  }
  float w_at(std::int64_t k, std::int64_t c) const {
    return w_[static_cast<std::size_t>(k * w_k_ + c * w_column_)];
  }
  double term(std::int64_t r, std::int64_t c, std::int64_t k) const {
    return double{x_at(r, k)} * double{w_at(k, c)};
  }

  std::vector<float> draw(std::int64_t n, std::mt19937& random) const {
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<std::size_t>(n));
    for (float& value : values) {
      if (dtype_ == ACL_INT8) value = random() % 3 == 0 ? -128.0f : static_cast<float>(random() % 256) - 128;
      if (dtype_ == ACL_FLOAT) value = normal(random);
      if (dtype_ == ACL_FLOAT16) value = to_float(to_fp16(normal(random)));
      if (dtype_ == ACL_BF16) value = to_float(to_bf16(normal(random)));
    }
    return values;
  }
  std::vector<std::uint8_t> stored(const std::vector<float>& values) const {
    std::vector<std::uint8_t> bytes(
        static_cast<std::size_t>(bytes_of(dtype_, static_cast<std::int64_t>(values.size()))));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (dtype_ == ACL_INT8) bytes[i] = static_cast<std::uint8_t>(static_cast<std::int8_t>(values[i]));
      const std::uint16_t half = dtype_ == ACL_BF16 ? to_bf16(values[i]).bits : to_fp16(values[i]).bits;
      if (dtype_ == ACL_FLOAT) std::memcpy(&bytes[4 * i], &values[i], 4);
      if (dtype_ == ACL_FLOAT16 || dtype_ == ACL_BF16) std::memcpy(&bytes[2 * i], &half, 2);
    }
    return bytes;
  }

  const Shape shape_;
  const aclDataType dtype_;
  const Order order_;
  std::int64_t x_step_, x_row_, w_k_, w_column_;
  std::vector<float> x_, w_;
  std::vector<std::uint8_t> x_bytes_, w_bytes_;
  std::vector<const std::byte*> x_rows_;
};

class MatmulTileTest
    : public testing::TestWithParam<std::tuple<Variant<MatmulTileFn>, Shape, aclDataType, Order>> {};

TEST_P(MatmulTileTest, AddsInTheDocumentedOrder) {
  const auto& [variant, shape, dtype, order] = GetParam();
  const MatmulProblem problem(shape, dtype, order);
  const std::vector<std::uint32_t> got = problem.run(variant.run, 0, shape.rows);
  const bool fused =
      variant.name.starts_with("AVX") || variant.name.starts_with("SVE") || variant.name == "NEON";
  for (std::int64_t r = 0; r < shape.rows; ++r)
    for (std::int64_t c = 0; c < shape.columns; ++c) {
      const std::uint32_t bits = got[static_cast<std::size_t>(r * shape.columns + c)];
      if (dtype == ACL_INT8) {
        ASSERT_EQ(static_cast<std::int32_t>(bits), problem.product(r, c)) << "row " << r << " column " << c;
        continue;
      }
      const auto value = std::bit_cast<float>(bits);
      ASSERT_EQ(value, problem.chain(r, c, fused)) << "row " << r << " column " << c;
      const double bound = static_cast<double>(shape.depth + 1) * 0x1p-24 * problem.magnitude(r, c);
      ASSERT_NEAR(value, problem.product(r, c), bound) << "row " << r << " column " << c;
    }
}

TEST_P(MatmulTileTest, GivesARowTheSameBitsInEveryTile) {
  const auto& [variant, shape, dtype, order] = GetParam();
  const MatmulProblem problem(shape, dtype, order);
  const std::vector<std::uint32_t> whole = problem.run(variant.run, 0, shape.rows);
  for (const std::int64_t tile : {1, 4, 11}) {
    std::vector<std::uint32_t> parts;
    for (std::int64_t r = 0; r < shape.rows; r += tile) {
      const auto part = problem.run(variant.run, r, std::min(shape.rows, r + tile));
      parts.insert(parts.end(), part.begin(), part.end());
    }
    ASSERT_EQ(parts, whole) << "tiles of " << tile << " rows";
  }
}

std::string name_of(const testing::TestParamInfo<MatmulTileTest::ParamType>& info) {
  const auto& [variant, shape, dtype, order] = info.param;
  constexpr const char* kOrders[] = {"rows", "transposed", "apart"};
  const char* type = dtype == ACL_INT8    ? "int8"
                     : dtype == ACL_FLOAT ? "fp32"
                     : dtype == ACL_BF16  ? "bf16"
                                          : "fp16";
  return std::string(variant.name) + "_" + shape.name + "_" + type + "_" + kOrders[static_cast<int>(order)];
}

INSTANTIATE_TEST_SUITE_P(
    EveryTarget, MatmulTileTest,
    testing::Combine(testing::ValuesIn(matmul_tile_variants().begin(), matmul_tile_variants().end()),
                     testing::ValuesIn(kShapes), testing::Values(ACL_FLOAT, ACL_FLOAT16, ACL_BF16, ACL_INT8),
                     testing::Values(Order::rows, Order::transposed, Order::apart)),
    name_of);

}  // namespace
}  // namespace moeyard::kernels
