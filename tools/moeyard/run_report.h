// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "model/compare.h"
#include "model/layer_run.h"
#include "moeyard/run_options.h"

namespace moeyard::tool {

// A phase's figures over all ranks.
struct PhaseReport {
  model::Phase phase;
  const char* name;
  double ms;           // of the slowest rank, the median of all passes
  std::int64_t bytes;  // moved by all ranks, see docs/run-json.md
  double gb_per_s() const { return ms > 0 ? static_cast<double>(bytes) / ms * 1e-6 : 0; }
};

// Everything that the summary and the JSON file tell; made before either is written.
struct RunReport {
  const RunOptions& options;
  const model::Job& job;
  const model::LayerRun& run;
  std::vector<model::Check> checks;
  std::int64_t ties = 0;  // tokens where the dense check took the router's equally good choice
  std::vector<std::string> warnings;
  std::vector<PhaseReport> phases;
  double layer_ms = 0;  // whole layer, the median of all passes

  bool passed() const;
  std::int64_t rows_of(int source, std::int64_t instance) const;
  std::int64_t rows_to(std::int64_t instance) const;  // from all ranks
  std::int64_t rows_to_rank(int rank) const;
  std::int64_t rows() const;
  std::int64_t shared_rows() const;  // those of the shared expert
  // Bytes of the rows of experts that one rank sent to another.
  std::int64_t bytes_between(int source, int target) const;
};

// Fills phases and layer_ms.
void measure(RunReport& report);

const char* dtype_name(model::StoredType type);  // "bf16", "fp16", "fp32"

void print_summary(const RunReport& report);
std::string json_of(const RunReport& report);

}  // namespace moeyard::tool
