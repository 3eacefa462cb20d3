// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/rows.h"

#include "model/errors.h"
#include "model/safetensors.h"

namespace moeyard::model {
namespace {

std::string names_in(const SafetensorsFile& file) {
  constexpr std::size_t kMost = 8;
  std::string names;
  std::size_t shown = 0;
  for (const auto& [name, tensor] : file.tensors()) {
    if (++shown > kMost) return names + ", ...";
    names += (names.empty() ? "" : ", ") + in_quotes(name);
  }
  return names.empty() ? "nothing" : names;
}

}  // namespace

Result<Rows> read_rows(const std::filesystem::path& path, const std::string& name, std::int64_t width) {
  const SafetensorsFile file = MOEYARD_TRY(SafetensorsFile::open(path));
  const StoredTensor* tensor = file.find(name);
  if (tensor == nullptr)
    return bad_input("tensor {} is missing in {}, which has {}.", in_quotes(name), path.string(),
                     names_in(file));
  if (!is_real(tensor->type))
    return bad_input("tensor {} of {} has type {}, only F32, F16 and BF16 are supported.", in_quotes(name),
                     path.string(), info_of(tensor->type).name);
  const auto& shape = tensor->shape;
  if ((shape.size() != 2 && shape.size() != 3) || shape.back() != width)
    return bad_input("tensor {} of {} has shape {}, it must be [tokens, {}] or [batch, tokens, {}].",
                     in_quotes(name), path.string(), shape_text(shape), width, width);
  const std::int64_t at = find_not_finite(tensor->type, tensor->bytes.data(), tensor->elements());
  if (at >= 0)
    return bad_input("tensor {} of {} has NaN or infinity in row {}, column {}.", in_quotes(name),
                     path.string(), at / width, at % width);
  Rows rows{tensor->type, shape, tensor->elements() / width, width, std::vector<float>(tensor->elements())};
  widen(tensor->type, tensor->bytes.data(), tensor->elements(), rows.values.data());
  return rows;
}

}  // namespace moeyard::model
