// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/moe_layer.h"

#include "model/errors.h"

namespace moeyard::model {
namespace {

using Shape = std::vector<std::int64_t>;

// A tensor that is there and has the shape and kind the layer needs.
Result<const StoredTensor*> find_real(Checkpoint& checkpoint, const std::string& name, const Shape& shape) {
  const StoredTensor* tensor = MOEYARD_TRY(checkpoint.find(name));
  if (tensor == nullptr)
    return bad_input("tensor {} is missing in {}.", in_quotes(name), checkpoint.directory().string());
  if (!is_real(tensor->type))
    return bad_input("tensor {} has type {}, only F32, F16 and BF16 are supported{}.", in_quotes(name),
                     info_of(tensor->type).name,
                     info_of(tensor->type).bytes == 1 ? " yet (quantised weights?)" : "");
  if (tensor->shape != shape)
    return bad_input("tensor {} has shape {}, config.json needs {}.", in_quotes(name),
                     shape_text(tensor->shape), shape_text(shape));
  return tensor;
}

Matrix whole(const StoredTensor& tensor, std::int64_t rows, std::int64_t cols) {
  return {tensor.name, tensor.type, tensor.bytes.data(), rows, cols};
}

// Part `index` of a tensor that has several matrices one after the other; `what` says which, for messages.
Matrix part_of(const StoredTensor& tensor, std::int64_t index, std::int64_t rows, std::int64_t cols,
               const std::string& what) {
  return {fmt::format("{}, {}", tensor.name, what), tensor.type,
          tensor.bytes.data() + index * rows * cols * info_of(tensor.type).bytes, rows, cols};
}

Result<Matrix> find_matrix(Checkpoint& checkpoint, const std::string& name, std::int64_t rows,
                           std::int64_t cols) {
  const StoredTensor* tensor = MOEYARD_TRY(find_real(checkpoint, name, {rows, cols}));
  return whole(*tensor, rows, cols);
}

Status check_finite(const Matrix& matrix) {
  const std::int64_t at = find_not_finite(matrix.type, matrix.data, matrix.elements());
  if (at < 0) return {};
  return bad_input("tensor {} has NaN or infinity at row {}, column {}.", in_quotes(matrix.name),
                   at / matrix.cols, at % matrix.cols);
}

Status check_finite(const Mlp& mlp) {
  MOEYARD_TRY(check_finite(mlp.gate));
  MOEYARD_TRY(check_finite(mlp.up));
  return check_finite(mlp.down);
}

// Reads one layer; `block` is "model.layers.3.mlp" or what the files have in its place.
class LayerReader {
 public:
  LayerReader(MoeLayer& layer, const Progress& progress) : layer_(layer), progress_(progress) {}

  Status read() {
    MOEYARD_TRY(find_block());
    const LayerConfig& config = layer_.config;
    layer_.router =
        MOEYARD_TRY(find_matrix(layer_.checkpoint, block_ + ".gate.weight", config.experts, config.hidden));
    MOEYARD_TRY(check_finite(layer_.router));
    if (config.routing.choice == Choice::two_best_of_groups_with_bias) MOEYARD_TRY(read_bias());
    MOEYARD_TRY(find_experts());
    if (config.shared_intermediate > 0) MOEYARD_TRY(read_shared());
    return check_experts();
  }

 private:
  Status find_block() {
    std::string tried;
    for (const char* prefix : {"model.layers.", "layers."})
      for (const std::string_view block : layer_.config.family->blocks) {
        block_ = fmt::format("{}{}.{}", prefix, layer_.config.layer, block);
        if (layer_.checkpoint.has(block_ + ".gate.weight")) return {};
        tried += fmt::format("{}{}", tried.empty() ? "" : ", ", in_quotes(block_ + ".gate.weight"));
      }
    return bad_input("the router of layer {} is missing in {}: none of {} is there.", layer_.config.layer,
                     layer_.checkpoint.directory().string(), tried);
  }

  Status read_bias() {
    const std::string name = block_ + ".gate.e_score_correction_bias";
    const StoredTensor* tensor = MOEYARD_TRY(find_real(layer_.checkpoint, name, {layer_.config.experts}));
    const Matrix bias = whole(*tensor, 1, layer_.config.experts);
    MOEYARD_TRY(check_finite(bias));
    layer_.bias = bias.widened();
    return {};
  }

  Result<Mlp> find_mlp(const std::string& path, const MlpNames& names, std::int64_t intermediate) {
    const std::int64_t hidden = layer_.config.hidden;
    const auto named = [&](std::string_view name) { return fmt::format("{}.{}.weight", path, name); };
    Mlp mlp;
    mlp.gate = MOEYARD_TRY(find_matrix(layer_.checkpoint, named(names.gate), intermediate, hidden));
    mlp.up = MOEYARD_TRY(find_matrix(layer_.checkpoint, named(names.up), intermediate, hidden));
    mlp.down = MOEYARD_TRY(find_matrix(layer_.checkpoint, named(names.down), hidden, intermediate));
    return mlp;
  }

  Status find_experts() {
    layer_.fused = layer_.checkpoint.has(block_ + ".experts.gate_up_proj");
    if (layer_.fused) return find_fused_experts();
    for (std::int64_t e = 0; e < layer_.config.experts; ++e) {
      const std::string path = fmt::format("{}.experts.{}", block_, e);
      layer_.experts.push_back(
          MOEYARD_TRY(find_mlp(path, layer_.config.family->expert, layer_.config.intermediate)));
    }
    const std::string more = fmt::format("{}.experts.{}.", block_, layer_.config.experts);
    if (const std::string name = layer_.checkpoint.first_with(more); !name.empty())
      return bad_input("tensor {} belongs to an expert that config.json, with {} experts, does not have.",
                       in_quotes(name), layer_.config.experts);
    return {};
  }

  Status find_fused_experts() {
    const std::int64_t experts = layer_.config.experts, hidden = layer_.config.hidden;
    const std::int64_t size = layer_.config.intermediate;
    const StoredTensor* both = MOEYARD_TRY(
        find_real(layer_.checkpoint, block_ + ".experts.gate_up_proj", {experts, 2 * size, hidden}));
    const StoredTensor* down =
        MOEYARD_TRY(find_real(layer_.checkpoint, block_ + ".experts.down_proj", {experts, hidden, size}));
    for (std::int64_t e = 0; e < experts; ++e) {
      const std::string expert = fmt::format("expert {}", e);
      layer_.experts.push_back({part_of(*both, 2 * e, size, hidden, expert + " gate"),
                                part_of(*both, 2 * e + 1, size, hidden, expert + " up"),
                                part_of(*down, e, hidden, size, expert)});
    }
    return {};
  }

  Status read_shared() {
    const Family& family = *layer_.config.family;
    const std::string path = fmt::format("{}.{}", block_, family.shared);
    layer_.shared = MOEYARD_TRY(find_mlp(path, family.expert, layer_.config.shared_intermediate));
    MOEYARD_TRY(check_finite(*layer_.shared));
    if (family.shared_gate.empty()) return {};
    const std::string gate = fmt::format("{}.{}.weight", block_, family.shared_gate);
    layer_.shared_gate = MOEYARD_TRY(find_matrix(layer_.checkpoint, gate, 1, layer_.config.hidden));
    return check_finite(*layer_.shared_gate);
  }

  Status check_experts() {
    for (std::int64_t e = 0; e < layer_.config.experts; ++e) {
      progress_("checking weights of experts", e, layer_.config.experts);
      MOEYARD_TRY(check_finite(layer_.experts[e]));
    }
    return {};
  }

  MoeLayer& layer_;
  const Progress& progress_;
  std::string block_;
};

}  // namespace

std::vector<float> Matrix::widened() const {
  std::vector<float> values(elements());
  widen(type, data, elements(), values.data());
  return values;
}

Result<MoeLayer> load_layer(const std::filesystem::path& directory, std::int64_t layer,
                            const Progress& progress) {
  const LayerConfig config = MOEYARD_TRY(read_layer_config(directory, layer));
  auto checkpoint = MOEYARD_TRY(Checkpoint::open(directory));
  MoeLayer read{config, std::move(checkpoint), false, {}, {}, {}, {}, {}};
  MOEYARD_TRY(LayerReader(read, progress).read());
  return read;
}

}  // namespace moeyard::model
