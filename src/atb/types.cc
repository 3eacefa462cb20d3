// Moeyard. SPDX-License-Identifier: Apache-2.0
// Types that go together, and what a descriptor must be.
#include "atb/built_in.h"
#include "atb/failure.h"
#include "atb/utils.h"
#include "moeyard/atb_backend.h"

namespace moeyard::atb_layer {
namespace {

constexpr std::uint64_t kLargest = std::uint64_t{256} << 30;  // bytes of a tensor

atb::Status check_desc(const char* name, std::size_t index, const atb::TensorDesc& desc) {
  const std::uint64_t rank = desc.shape.dimNum;
  if (rank == 0 || rank > atb::MAX_DIM)
    return fail(atb::ERROR_INVALID_TENSOR_DIM,
                "%s: inTensors[%zu] has dimNum %llu but must have 1 to 8 dimensions", name, index,
                static_cast<unsigned long long>(rank));
  for (std::uint64_t i = 0; i < rank; ++i)
    if (desc.shape.dims[i] <= 0)
      return fail(atb::ERROR_INVALID_TENSOR_SIZE,
                  "%s: inTensors[%zu] is %s but must not have a dimension below 1", name, index,
                  text_of(desc).c_str());
  const std::uint64_t bytes = bytes_of(desc);
  if (bytes == 0 || bytes > kLargest)
    return fail(atb::ERROR_INVALID_TENSOR_SIZE, "%s: inTensors[%zu] is %s but must have at most 256 GiB",
                name, index, text_of(desc).c_str());
  return atb::NO_ERROR;
}

// "FP16, FP16 -> FP16; BF16, BF16 -> BF16"
std::string describe(const char* types) {
  std::string text;
  bool first = true;
  for (; *types != '\0'; ++types) {
    if (*types == ' ' || *types == '>') {
      text += *types == ' ' ? "; " : " -> ";
      first = true;
      continue;
    }
    text += first ? "" : ", ";
    text += *types == '*' ? "any" : moeyardAtbNameOf(type_of_letter(*types));
    first = false;
  }
  return text;
}

std::string describe(const Descs& inputs) {
  std::string text;
  for (const atb::TensorDesc& desc : inputs) {
    text += text.empty() ? "" : ", ";
    text += desc.shape.dimNum == 0 ? "none" : moeyardAtbNameOf(desc.dtype);
  }
  return text;
}

}  // namespace

std::uint64_t bytes_of(const atb::TensorDesc& desc) { return atb::Utils::GetTensorSize(desc); }

aclDataType type_of_letter(char letter) {
  switch (letter) {
    case 'h':
      return ACL_FLOAT16;
    case 'b':
      return ACL_BF16;
    case 'f':
      return ACL_FLOAT;
    case 'c':
      return ACL_INT8;
    case 's':
      return ACL_INT16;
    case 'i':
      return ACL_INT32;
    case 'u':
      return ACL_UINT32;
    case 'l':
      return ACL_INT64;
    case 'q':
      return ACL_UINT64;
    default:
      return ACL_DT_UNDEFINED;
  }
}

const char* find_types(const Signature& signature, const Descs& inputs) {
  for (const char* row = signature.types; *row != '\0';) {
    bool fits = true;
    for (std::size_t i = 0; i < inputs.size(); ++i, ++row) {
      const bool absent = inputs[i].shape.dimNum == 0;
      fits = fits && (absent || *row == '*' || type_of_letter(*row) == inputs[i].dtype);
    }
    if (fits) return row + (*row == '>' ? 1 : 0);
    while (*row != '\0' && *row != ' ') ++row;
    if (*row == ' ') ++row;
  }
  return nullptr;
}

atb::Status BuiltIn::check_descs(const Signature& signature, const Descs& inputs) const {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool left_away = signature.optional[i] && inputs[i].shape.dimNum == 0;
    if (!left_away) MOEYARD_ATB_TRY(check_desc(name(), i, inputs[i]));
  }
  if (signature.types == nullptr) return atb::NO_ERROR;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].shape.dimNum != 0 && inputs[i].format != ACL_FORMAT_ND)
      return fail(atb::ERROR_INVALID_TENSOR_INI_MATCH,
                  "%s: inTensors[%zu] has format %d but must have ACL_FORMAT_ND", name(), i,
                  static_cast<int>(inputs[i].format));
  if (find_types(signature, inputs) == nullptr)
    return fail(atb::ERROR_INVALID_TENSOR_INI_MATCH,
                "%s: inTensors have the types %s but must have one of: %s", name(), describe(inputs).c_str(),
                describe(signature.types).c_str());
  return atb::NO_ERROR;
}

}  // namespace moeyard::atb_layer
