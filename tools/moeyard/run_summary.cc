// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// What `moeyard run` prints, at most 100 columns wide.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "moeyard/run_report.h"
#include "moeyard/terminal.h"

namespace moeyard::tool {
namespace {

constexpr int kMostLines = 32;    // of the chart
constexpr int kMostColumns = 40;  // of one line's experts
constexpr int kBarWidth = 24;

std::string plural(std::int64_t n, const char* word) {
  return fmt::format("{} {}{}", n, word, n == 1 ? "" : "s");
}

std::string shortened(const std::string& path, std::size_t width) {
  return path.size() <= width ? path : "..." + path.substr(path.size() - width + 3);
}

std::string size_text(std::int64_t bytes) {
  if (bytes < 1'000'000) return fmt::format("{:.1f} kB", static_cast<double>(bytes) * 1e-3);
  if (bytes < 1'000'000'000) return fmt::format("{:.1f} MB", static_cast<double>(bytes) * 1e-6);
  return fmt::format("{:.1f} GB", static_cast<double>(bytes) * 1e-9);
}

void print_head(const RunReport& report) {
  const auto& job = report.job;
  const auto& config = job.layer.config;
  const std::string shared = config.shared_intermediate == 0
                                 ? std::string()
                                 : fmt::format(" + shared expert of {}", config.shared_intermediate);
  fmt::print("{}, layer {}, from {}\n\n", config.family->model_type, config.layer,
             shortened(report.options.model, 60));
  fmt::print("  layer     {} experts, {} per token; hidden {}, intermediate {}{}; {} weights{}\n",
             config.experts, config.topk, config.hidden, config.intermediate, shared,
             dtype_name(job.layer.stored_type()), job.layer.fused ? ", fused" : "");
  fmt::print("  tokens    {} in {} from {}\n", job.tokens.count, dtype_name(job.tokens.stored),
             shortened(report.options.input, 60));
  const std::string each =
      plural(job.local_instances(), job.placement.table.empty() ? "expert" : "expert instance");
  const std::string passes =
      report.run.passes.size() > 1 ? fmt::format(", medians of {} passes", report.run.passes.size()) : "";
  if (!job.afd) {
    fmt::print("  ranks     {} with {} each, computing in {}{}\n", plural(job.ranks, "rank"), each,
               dtype_name(job.type), passes);
    return;
  }
  fmt::print("  ranks     {}, {} with {} each\n", plural(job.token_ranks(), "attention worker"),
             plural(job.expert_ranks(), "FFN worker"), each);
  fmt::print("  batches   up to {} of {} under way per attention worker, computing in {}{}\n",
             job.afd->micro_batches, plural(job.afd->micro_batch_tokens, "token"), dtype_name(job.type),
             passes);
}

// Neighbouring values added up, so that at most `most` are left.
std::vector<std::int64_t> squeezed(const std::vector<std::int64_t>& values, std::int64_t most) {
  const auto size = static_cast<std::int64_t>(values.size()), kept = std::min(size, most);
  std::vector<std::int64_t> sums(kept);
  for (std::int64_t i = 0; i < size; ++i) sums[i * kept / size] += values[i];
  return sums;
}

// One line per rank, or per some neighbouring ranks.
struct ChartLine {
  std::string label;
  std::int64_t tokens = 0, rows = 0;
  std::vector<std::int64_t> experts;
};

std::vector<ChartLine> chart_lines(const RunReport& report) {
  const auto& job = report.job;
  const std::int64_t count = std::min(job.ranks, kMostLines);
  std::vector<ChartLine> lines(count);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto first = static_cast<int>(i * job.ranks / count),
               end = static_cast<int>((i + 1) * job.ranks / count);
    ChartLine& line = lines[i];
    line.label =
        end - first == 1 ? fmt::format("rank {}", first) : fmt::format("ranks {}-{}", first, end - 1);
    if (job.afd)
      line.label += end <= job.token_ranks() ? " attention" : first < job.token_ranks() ? "" : " FFN";
    std::vector<std::int64_t> instances;
    for (int r = first; r < end; ++r) {
      line.tokens += job.tokens_of(r);
      line.rows += report.rows_to_rank(r);
      for (std::int64_t l = 0; r >= job.first_expert_rank() && l < job.local_instances(); ++l)
        instances.push_back(report.rows_to((r - job.first_expert_rank()) * job.local_instances() + l));
    }
    line.experts = squeezed(instances, kMostColumns);
  }
  return lines;
}

void print_chart(const RunReport& report, Style style) {
  const std::vector<ChartLine> lines = chart_lines(report);
  std::int64_t most_rows = 0, most_of_expert = 0;
  std::size_t label_width = 0;
  for (const ChartLine& line : lines) {
    most_rows = std::max(most_rows, line.rows);
    for (const std::int64_t rows : line.experts) most_of_expert = std::max(most_of_expert, rows);
    label_width = std::max(label_width, line.label.size());
  }
  std::int64_t busiest = 0;
  for (int r = 0; r < report.job.ranks; ++r) busiest = std::max(busiest, report.rows_to_rank(r));
  const double mean = static_cast<double>(report.rows()) / report.job.expert_ranks();
  fmt::print("\n  {} rows (a row is a token at one of its experts); the busiest rank has {:.2f} x the mean\n",
             report.rows(), static_cast<double>(busiest) / mean);
  fmt::print("  {:<{}} {:>8} {:>8}  {:<{}}  {}\n", "", label_width, "tokens", "rows", "", kBarWidth,
             report.job.placement.table.empty() ? "by expert" : "by expert instance");
  for (const ChartLine& line : lines)
    fmt::print("  {:<{}} {:>8} {:>8}  {}  {}\n", line.label, label_width, line.tokens, line.rows,
               bar(style, static_cast<double>(line.rows), static_cast<double>(most_rows), kBarWidth),
               columns(style, line.experts, most_of_expert));
}

void print_phases(const RunReport& report) {
  const char* note = report.run.passes.size() > 1 ? "" : "   one cold pass; --repeat N gives medians";
  fmt::print("\n  {:<10} {:>12} {:>12} {:>12}   slowest rank, bytes of all ranks\n", "phase", "time", "moved",
             "rate");
  for (const PhaseReport& phase : report.phases)
    fmt::print("  {:<10} {:>9.3f} ms {:>12} {:>7.2f} GB/s\n", phase.name, phase.ms, size_text(phase.bytes),
               phase.gb_per_s());
  fmt::print("  {:<10} {:>9.3f} ms{}\n", "layer", report.layer_ms, note);
}

void print_checks(const RunReport& report) {
  fmt::print("\n  {:<11} {:>13} {:>9}  {}\n", "check", "tokens", "max error",
             "worst value at [token, column]");
  for (const model::Check& check : report.checks) {
    const std::int64_t all = report.job.tokens.count;
    const std::string tokens =
        check.tokens < all ? fmt::format("{} of {}", check.tokens, all) : std::to_string(all);
    fmt::print("  {:<11} {:>13} {:>9.2e}  ", check.against, tokens, check.largest_error);
    if (check.tokens == 0)
      fmt::print("-\n");
    else
      fmt::print("[{}, {}]: {:.5g} for {:.5g}, limit {:.2e}\n", check.worst.token, check.worst.column,
                 check.worst.got, check.worst.want, check.worst.limit);
  }
}

std::string verdict_text(const RunReport& report) {
  double used = 0;
  std::int64_t too_far = 0;
  std::string against;
  for (const model::Check& check : report.checks) {
    if (check.tokens > 0) used = std::max(used, check.worst.error / check.worst.limit);
    too_far += check.too_far;
    against += fmt::format("{}{}", against.empty() ? "" : " and ", check.against);
  }
  if (too_far > 0)
    return fmt::format("{} differ by more than their limit from {}", plural(too_far, "value"), against);
  return fmt::format("every value within its limit, the worst at {:.0f} %, against {}", 100 * used, against);
}

}  // namespace

void print_summary(const RunReport& report) {
  const Style style = style_of_output();
  print_head(report);
  if (report.job.tokens.count > 0) {
    print_chart(report, style);
    print_phases(report);
  }
  print_checks(report);
  for (const std::string& warning : report.warnings) fmt::print("\n  warning: {}\n", warning);
  fmt::print("\n{} {}\n", report.passed() ? in_green(style, "PASS") : in_red(style, "FAIL"),
             verdict_text(report));
}

}  // namespace moeyard::tool
