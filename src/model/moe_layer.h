// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/checkpoint.h"
#include "model/layer_config.h"
#include "model/progress.h"
#include "model/stored_type.h"

namespace moeyard::model {

// A matrix in a file: dense, row-major, at any alignment.
struct Matrix {
  std::string name;  // of the tensor it is in
  StoredType type;
  const std::byte* data;
  std::int64_t rows, cols;

  std::int64_t elements() const { return rows * cols; }
  std::vector<float> widened() const;
};

// y = down * (silu(gate * x) * (up * x))
struct Mlp {
  Matrix gate, up, down;  // [I, H], [I, H], [H, I]
};

// A mixture-of-experts layer as its files have it; every weight is known to be finite.
struct MoeLayer {
  LayerConfig config;
  Checkpoint checkpoint;    // keeps the files that the matrices lie in mapped
  bool fused;               // the files have one tensor for all experts
  Matrix router;            // [E, H]
  std::vector<float> bias;  // [E] of the router, or none
  std::vector<Mlp> experts;
  std::optional<Mlp> shared;
  std::optional<Matrix> shared_gate;  // [1, H]

  StoredType stored_type() const { return experts.front().gate.type; }
};

// Finds the layer's tensors in DIR under any of the names its family has, and checks shapes, types and
// values.
Result<MoeLayer> load_layer(const std::filesystem::path& directory, std::int64_t layer,
                            const Progress& progress);

}  // namespace moeyard::model
