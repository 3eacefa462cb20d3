// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "moeyard/run_report.h"

#include <algorithm>

namespace moeyard::tool {
namespace {

using model::LayerConfig;
using model::Phase;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Bytes in and out of an MLP of this size for `rows` rows: input, gate and up (written, read), their product
// (written, read), output.
std::int64_t mlp_bytes(std::int64_t rows, std::int64_t hidden, std::int64_t size) {
  return rows * (2 * hidden + 6 * size) * 2;
}

std::int64_t gate_bytes(const RunReport& report) {
  const LayerConfig& config = report.job.layer.config;
  const std::int64_t tokens = report.job.tokens.count;
  std::int64_t busy_ranks = 0;
  for (int r = 0; r < report.job.ranks; ++r) busy_ranks += report.job.tokens_of(r) > 0 ? 1 : 0;
  return 4 * (tokens * config.hidden + busy_ranks * config.experts * config.hidden +
              2 * tokens * config.experts + 2 * tokens * config.topk);
}

std::int64_t expert_bytes(const RunReport& report) {
  const LayerConfig& config = report.job.layer.config;
  const std::int64_t weights = 3 * config.hidden * 2;
  std::int64_t bytes = mlp_bytes(report.rows(), config.hidden, config.intermediate) +
                       report.run.instance_reads * weights * config.intermediate;
  if (config.shared_intermediate == 0) return bytes;
  return bytes + mlp_bytes(report.shared_rows(), config.hidden, config.shared_intermediate) +
         report.run.shared_reads * weights * config.shared_intermediate;
}

std::int64_t row_bytes(const RunReport& report) { return report.job.layer.config.hidden * 2; }

std::int64_t combine_bytes(const RunReport& report) {
  return (report.rows() + report.shared_rows() + report.job.tokens.count) * row_bytes(report);
}

// Of the slowest rank, the median of all passes.
double median_ms(const RunReport& report, Phase phase) {
  std::vector<double> slowest;
  for (const model::Pass& pass : report.run.passes) {
    double ms = 0;
    for (const auto& times : pass.ms_of_rank) ms = std::max(ms, times[static_cast<int>(phase)]);
    slowest.push_back(ms);
  }
  return median(std::move(slowest));
}

}  // namespace

bool RunReport::passed() const {
  return std::all_of(checks.begin(), checks.end(), [](const model::Check& check) { return check.passed(); });
}

std::int64_t RunReport::rows_of(int source, std::int64_t instance) const {
  return run.rows[source * job.placement.instances() + instance];
}

std::int64_t RunReport::rows_to(std::int64_t instance) const {
  std::int64_t rows = 0;
  for (int source = 0; source < job.token_ranks(); ++source) rows += rows_of(source, instance);
  return rows;
}

std::int64_t RunReport::rows_to_rank(int rank) const {
  const int worker = rank - job.first_expert_rank();
  std::int64_t rows = 0;
  for (std::int64_t l = 0; worker >= 0 && l < job.local_instances(); ++l)
    rows += rows_to(worker * job.local_instances() + l);
  return rows;
}

std::int64_t RunReport::rows() const {
  std::int64_t rows = 0;
  for (const std::int64_t part : run.rows) rows += part;
  return rows;
}

std::int64_t RunReport::shared_rows() const { return job.layer.shared ? job.tokens.count : 0; }

std::int64_t RunReport::bytes_between(int source, int target) const {
  const int worker = target - job.first_expert_rank();
  if (source >= job.token_ranks() || worker < 0) return 0;
  std::int64_t rows = 0;
  for (std::int64_t l = 0; l < job.local_instances(); ++l)
    rows += rows_of(source, worker * job.local_instances() + l);
  return rows * job.layer.config.hidden * 2;
}

void measure(RunReport& report) {
  const auto add = [&](Phase phase, const char* name, std::int64_t bytes) {
    report.phases.push_back({phase, name, median_ms(report, phase), bytes});
  };
  const std::int64_t rows = report.rows() * row_bytes(report);
  add(Phase::gate, "gate", gate_bytes(report));
  if (report.job.afd) {
    const std::int64_t all_rows = rows + report.shared_rows() * row_bytes(report);
    add(Phase::dispatch, "send", all_rows);
    add(Phase::batch, "batch", 2 * all_rows);
    add(Phase::experts, "experts", expert_bytes(report));
    add(Phase::send_back, "send back", all_rows);
  } else {
    add(Phase::dispatch, "dispatch", rows);
    add(Phase::experts, "experts", expert_bytes(report));
  }
  add(Phase::combine, "combine", combine_bytes(report));
  std::vector<double> times;
  for (const model::Pass& pass : report.run.passes) times.push_back(pass.ms);
  report.layer_ms = median(times);
}

const char* dtype_name(model::StoredType type) {
  return type == model::StoredType::bf16 ? "bf16" : type == model::StoredType::f16 ? "fp16" : "fp32";
}

}  // namespace moeyard::tool
