// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/tensor_view.h"

// Tensors as NumPy's .npy files. Types that NumPy does not know are there as their bits: BF16 as 16-bit integers, types of 8
// bits as bytes, those of 4 bits packed, two to a byte, in one dimension.
namespace moeyard {

// What comes before the elements of a dense tensor.
std::string npy_header(aclDataType dtype, std::span<const std::int64_t> shape);

// The elements in a file, which must be one that npy_header would begin for this type and shape, in any of the format's
// versions; else what is wrong, as a sentence without its subject ("has ...") and the code 2.
Result<std::span<const std::byte>> npy_elements(std::span<const std::byte> file, aclDataType dtype,
                                                std::span<const std::int64_t> shape);

// The elements of a view in row-major order, and back.
void copy_elements_out(const TensorView& view, std::byte* dense);
void copy_elements_in(const std::byte* dense, const TensorView& view);

}  // namespace moeyard
