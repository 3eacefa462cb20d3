// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// The file of --json. Its fields are described in docs/run-json.md; whoever changes one changes kSchema.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "moeyard/run_report.h"

namespace moeyard::tool {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchema = 1;

Json model_of(const RunReport& report) {
  const auto& layer = report.job.layer;
  const auto& config = layer.config;
  return {{"directory", report.options.model},
          {"model_type", config.family->model_type},
          {"layer", config.layer},
          {"hidden", config.hidden},
          {"intermediate", config.intermediate},
          {"experts", config.experts},
          {"experts_per_token", config.topk},
          {"shared_intermediate", config.shared_intermediate},
          {"stored_dtype", dtype_name(layer.stored_type())},
          {"fused_experts", layer.fused}};
}

Json setup_of(const RunReport& report) {
  const auto& job = report.job;
  const bool balanced = !report.options.placement.empty() && !job.afd;
  Json setup = {{"tokens", job.tokens.count},
                {"ranks", job.ranks},
                {"instances", job.placement.instances()},
                {"placement", report.options.placement},
                {"balance", balanced ? report.options.balance : ""},
                {"dtype", dtype_name(job.type)},
                {"passes", report.run.passes.size()}};
  if (job.afd)
    setup["afd"] = {{"attention_workers", job.afd->attention_workers},
                    {"ffn_workers", job.afd->ffn_workers},
                    {"micro_batches", job.afd->micro_batches},
                    {"micro_batch_tokens", job.afd->micro_batch_tokens}};
  return setup;
}

Json load_of(const RunReport& report) {
  const auto& job = report.job;
  std::vector<std::int64_t> tokens_of_rank, rows_of_rank, rows_of_instance;
  std::vector<std::int64_t> rows_of_expert(job.layer.config.experts);
  for (int r = 0; r < job.ranks; ++r) {
    tokens_of_rank.push_back(job.tokens_of(r));
    rows_of_rank.push_back(report.rows_to_rank(r));
  }
  for (std::int64_t p = 0; p < job.placement.instances(); ++p) {
    rows_of_instance.push_back(report.rows_to(p));
    rows_of_expert[job.placement.expert_of_instance[p]] += rows_of_instance.back();
  }
  Json rows_from_rank = Json::array();
  for (int source = 0; source < job.token_ranks(); ++source) {
    Json row = Json::array();
    for (std::int64_t p = 0; p < job.placement.instances(); ++p) row.push_back(report.rows_of(source, p));
    rows_from_rank.push_back(std::move(row));
  }
  return {{"tokens_of_rank", tokens_of_rank},
          {"rows_of_rank", rows_of_rank},
          {"rows_of_expert", rows_of_expert},
          {"rows_of_instance", rows_of_instance},
          {"expert_of_instance", job.placement.expert_of_instance},
          {"rows_from_rank_to_instance", rows_from_rank}};
}

Json bytes_of(const RunReport& report) {
  Json matrix = Json::array();
  for (int source = 0; source < report.job.ranks; ++source) {
    Json row = Json::array();
    for (int target = 0; target < report.job.ranks; ++target)
      row.push_back(report.bytes_between(source, target));
    matrix.push_back(std::move(row));
  }
  return matrix;
}

// Clocks count nanoseconds.
double milliseconds(double ms) { return std::round(ms * 1e6) / 1e6; }

Json phases_of(const RunReport& report) {
  Json phases = Json::array();
  for (const PhaseReport& phase : report.phases) {
    Json passes = Json::array();
    for (const model::Pass& pass : report.run.passes) {
      Json ranks = Json::array();
      for (const auto& times : pass.ms_of_rank)
        ranks.push_back(milliseconds(times[static_cast<int>(phase.phase)]));
      passes.push_back(std::move(ranks));
    }
    phases.push_back({{"name", phase.name},
                      {"ms", milliseconds(phase.ms)},
                      {"bytes", phase.bytes},
                      {"gb_per_s", phase.gb_per_s()},
                      {"ms_of_pass_and_rank", std::move(passes)}});
  }
  return phases;
}

// JSON has no infinity: an error that is not a number is null.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json checks_of(const RunReport& report) {
  Json checks = Json::array();
  for (const model::Check& check : report.checks)
    checks.push_back({{"against", check.against},
                      {"passed", check.passed()},
                      {"tokens", check.tokens},
                      {"values_beyond_limit", check.too_far},
                      {"largest_error", number(check.largest_error)},
                      {"worst",
                       {{"token", check.worst.token},
                        {"column", check.worst.column},
                        {"got", number(check.worst.got)},
                        {"want", number(check.worst.want)},
                        {"error", number(check.worst.error)},
                        {"limit", check.worst.limit}}}});
  return checks;
}

// One member a line: short enough to read, and still easy to compare with other tools.
std::string line_by_member(const Json& object) {
  std::string text;
  for (const auto& [name, value] : object.items())
    text += fmt::format("{}\n {}: {}", text.empty() ? "{" : ",", Json(name).dump(),
                        value.dump(-1, ' ', false, Json::error_handler_t::replace));
  return text + "\n}\n";
}

}  // namespace

std::string json_of(const RunReport& report) {
  Json passes = Json::array();
  for (const model::Pass& pass : report.run.passes) passes.push_back(milliseconds(pass.ms));
  const Json all = {{"schema", kSchema},
                    {"moeyard", MOEYARD_VERSION},
                    {"verdict", report.passed() ? "pass" : "fail"},
                    {"model", model_of(report)},
                    {"setup", setup_of(report)},
                    {"load", load_of(report)},
                    {"bytes_from_rank_to_rank", bytes_of(report)},
                    {"load_weights_ms", milliseconds(report.run.load_ms)},
                    {"layer_ms", milliseconds(report.layer_ms)},
                    {"layer_ms_of_pass", passes},
                    {"phases", phases_of(report)},
                    {"checks", checks_of(report)},
                    {"ties", report.ties},
                    {"warnings", report.warnings}};
  return line_by_member(all);
}

}  // namespace moeyard::tool
