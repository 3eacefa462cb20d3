// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// moeyard run: a mixture-of-experts layer over several ranks, checked.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "acl/acl.h"
#include "base/settings.h"
#include "base/trace.h"
#include "hccl/environment.h"
#include "model/dense.h"
#include "model/disaggregated.h"
#include "model/errors.h"
#include "model/expert_parallel.h"
#include "model/launched.h"
#include "model/processes.h"
#include "model/safetensors.h"
#include "moeyard/command.h"
#include "moeyard/launched.h"
#include "moeyard/meeting_place.h"
#include "moeyard/run_report.h"
#include "moeyard/terminal.h"

namespace moeyard::tool {
namespace {

using model::bad_input;
using model::Ending;
using model::StoredType;

StoredType run_type(const RunOptions& options, StoredType stored) {
  if (options.dtype == "bf16") return StoredType::bf16;
  if (options.dtype == "fp16") return StoredType::f16;
  return stored == StoredType::f16 ? StoredType::f16 : StoredType::bf16;
}

// UpdateExpert can pick by rank only among as many instances as there are ranks, and not for one rank alone.
Status check_balance(const RunOptions& options, const model::Placement& placement) {
  const std::int64_t most = placement.columns - 1;
  if (options.balance != "rank" || options.afd || placement.table.empty() ||
      (options.ranks > 1 && most <= options.ranks))
    return {};
  return bad_input(
      "--balance rank needs at least {} ranks, as an expert has {} instance(s): use --balance token.",
      std::max<std::int64_t>(2, most), most);
}

// What needs no file to be wrong.
Status check_options(const RunOptions& options) {
  if (options.with_topk && (options.output_name == "topk_ids" || options.output_name == "topk_weights"))
    return bad_input("--output-name {} is the name of a tensor that --with-topk writes.",
                     options.output_name);
  if (options.with_topk && options.output.empty())
    return bad_input("--with-topk needs --output, the file to write to.");
  return {};
}

// Instances lie evenly on `ranks`, which the option `name` sets.
Status check_share(const char* name, int ranks, const model::Placement& placement) {
  if (ranks >= 1 && placement.instances() % ranks == 0) return {};
  return bad_input("{} {} does not divide the {} {}s of this layer: {} work.", name, ranks,
                   placement.instances(), placement.table.empty() ? "expert" : "expert instance",
                   model::fitting_ranks(placement.instances()));
}

Status check_ranks(const RunOptions& options, const model::Job& job) {
  const char* name = options.afd              ? "--ffn-workers"
                     : options.processes != 0 ? "--processes"
                     : options.ranks_given    ? "--ranks"
                                              : "The number of ranks";
  MOEYARD_TRY(check_share(name, job.expert_ranks(), job.placement));
  if (job.afd) MOEYARD_TRY(model::check_disaggregation(job));
  MOEYARD_TRY(check_balance(options, job.placement));
  // A device per rank; whoever set a number of devices meant it.
  setenv("MOEYARD_DEVICES", std::to_string(std::clamp(job.ranks, 16, 1024)).c_str(), /*overwrite*/ 0);
  if (options.processes != 0 || options.is_one_rank) return {};  // each asks for its own
  std::uint32_t devices = 0;
  MOEYARD_TRY(model::checked(aclrtGetDeviceCount(&devices), "aclrtGetDeviceCount"));
  if (static_cast<std::uint32_t>(job.ranks) > devices)
    return bad_input("{} {} needs {} devices, there are {}: set MOEYARD_DEVICES (at most 1024).", name,
                     job.expert_ranks(), job.ranks, devices);
  return {};
}

// What the options say of the ranks.
model::Job job_of(const RunOptions& options, const model::MoeLayer& layer, const model::Rows& tokens,
                  const model::Placement& placement) {
  model::Job job{
      layer,         tokens,
      placement,     run_type(options, layer.stored_type()),
      options.ranks, options.balance == "rank" ? model::Balance::by_rank : model::Balance::by_token,
      std::nullopt};
  if (options.afd) {
    job.afd = model::Disaggregation{options.attention_workers, options.ffn_workers, options.micro_batches,
                                    options.micro_batch_tokens};
    job.ranks = job.afd->ranks();
  }
  return job;
}

Result<model::Placement> read_placement(const RunOptions& options, const model::LayerConfig& config) {
  if (options.placement.empty()) return model::place_in_order(config.experts);
  return model::read_placement(options.placement, config.experts, config.layer);
}

Result<model::Rows> read_expectation(const RunOptions& options, const model::Rows& tokens) {
  model::Rows rows = MOEYARD_TRY(model::read_rows(options.expect, options.expect_name, tokens.width));
  if (rows.count != tokens.count)
    return bad_input("{} expects {} tokens, {} has {}.", options.expect, rows.count, options.input,
                     tokens.count);
  return rows;
}

std::vector<float> widened(const model::Job& job, const model::LayerRun& run) {
  std::vector<float> values(run.output.size());
  widen(job.type, reinterpret_cast<const std::byte*>(run.output.data()),
        static_cast<std::int64_t>(values.size()), values.data());
  return values;
}

void check_expectation(const model::Rows& expected, std::span<const float> got, RunReport& report) {
  model::Check check{.against = "expectation"};
  for (std::int64_t t = 0; t < expected.count; ++t)
    compare_row(report.job.type, t, got.subspan(t * expected.width, expected.width), expected.row(t), check);
  report.checks.push_back(check);
}

void check_dense(std::span<const float> got, const model::Progress& progress, RunReport& report) {
  const model::Job& job = report.job;
  const auto sample = model::sample_tokens(job.layer.config, job.tokens.count);
  const auto dense = compute_dense(job.layer, job.tokens, sample, report.run.experts, progress);
  model::Check check{.against = "dense fp32"};
  for (const model::DenseRow& row : dense.rows)
    compare_row(job.type, row.token, got.subspan(row.token * job.tokens.width, job.tokens.width), row.y,
                check);
  report.checks.push_back(check);
  report.ties = dense.ties;
  if (dense.ties > 0)
    report.warnings.push_back(fmt::format(
        "{} token(s) have experts of equal score (within 1e-5), where another sum chooses otherwise.",
        dense.ties));
}

// Older code of DeepSeek-V3 gives experts of dropped groups the score 0 where GatingTopK excludes them.
void warn_of_masks(RunReport& report) {
  const model::LayerConfig& config = report.job.layer.config;
  if (report.run.scores.empty() || config.routing.kept_groups == config.routing.groups) return;
  std::int64_t tokens = 0;
  for (std::int64_t t = 0; t < report.job.tokens.count; ++t)
    for (std::int64_t k = 0; k < config.topk; ++k) {
      const std::int32_t expert = report.run.experts[t * config.topk + k];
      if (report.run.scores[t * config.experts + expert] + report.job.layer.bias[expert] > 0) continue;
      ++tokens;
      break;
    }
  if (tokens > 0)
    report.warnings.push_back(fmt::format(
        "{} token(s) chose an expert whose biased score is not above 0; code that masks dropped groups\n"
        "  with 0 instead of minus infinity, as older Hugging Face code does, chooses otherwise there.",
        tokens));
}

Status write_output(const RunOptions& options, const model::Job& job, const model::LayerRun& run) {
  if (options.output.empty()) return {};
  const std::int64_t topk = job.layer.config.topk;
  std::vector<model::StoredTensor> tensors = {
      {options.output_name, job.type, job.tokens.shape, std::as_bytes(std::span(run.output))}};
  if (options.with_topk) {
    const std::vector<std::int64_t> shape = {job.tokens.count, topk};
    tensors.push_back({"topk_ids", StoredType::i32, shape, std::as_bytes(std::span(run.experts))});
    tensors.push_back({"topk_weights", StoredType::f32, shape, std::as_bytes(std::span(run.weights))});
  }
  return model::write_safetensors(options.output, tensors);
}

Status write_json(const RunReport& report) {
  if (report.options.json.empty()) return {};
  std::ofstream out(report.options.json);
  out << json_of(report);
  out.close();
  if (!out) return bad_input("{} cannot be written.", report.options.json);
  return {};
}

struct Inputs {
  model::MoeLayer layer;
  model::Placement placement;
  model::Rows tokens;
  std::optional<model::Rows> expected;
};

Result<Inputs> read_inputs(const RunOptions& options, bool with_expectation,
                           const model::Progress& progress) {
  MOEYARD_TRY(check_options(options));
  Inputs inputs{MOEYARD_TRY(model::load_layer(options.model, options.layer, progress)), {}, {}, {}};
  inputs.placement = MOEYARD_TRY(read_placement(options, inputs.layer.config));
  inputs.tokens =
      MOEYARD_TRY(model::read_rows(options.input, options.input_name, inputs.layer.config.hidden));
  if (with_expectation && !options.expect.empty())
    inputs.expected = MOEYARD_TRY(read_expectation(options, inputs.tokens));
  return inputs;
}

// Checks what the ranks came up with, and tells it.
Result<Ending> report_run(const RunOptions& options, const model::Job& job,
                          const std::optional<model::Rows>& expected, const model::LayerRun& run,
                          const model::Progress& progress) {
  RunReport report{options, job, run};
  measure(report);
  const std::vector<float> got = widened(job, run);
  if (expected) check_expectation(*expected, got, report);
  check_dense(got, progress, report);
  warn_of_masks(report);
  clear_progress_line();
  MOEYARD_TRY(write_output(options, job, run));
  MOEYARD_TRY(write_json(report));
  print_summary(report);
  return report.passed() ? Ending::pass : Ending::mismatch;
}

Result<Ending> run_layer(const RunOptions& options) {
  const model::Progress progress = progress_line();
  const Inputs inputs = MOEYARD_TRY(read_inputs(options, true, progress));
  const model::Job job = job_of(options, inputs.layer, inputs.tokens, inputs.placement);
  MOEYARD_TRY(check_ranks(options, job));
  const auto run_on_ranks = options.processes != 0 ? model::run_in_processes
                            : job.afd              ? model::run_disaggregated
                                                   : model::run_expert_parallel;
  const auto run = MOEYARD_TRY(run_on_ranks(job, options.repeat, progress));
  return report_run(options, job, inputs.expected, run, progress);
}

// ---- One rank of a run that somebody else has started ----

Result<model::World> join(const Launched& launched) {
  const model::Place& place = launched.place;
  // A device per rank of this host; whoever set a number of devices meant it.
  setenv("MOEYARD_DEVICES", std::to_string(std::clamp(place.device + 1, 16, 1024)).c_str(), /*overwrite*/ 0);
  if (!launched.rank_table.empty()) return model::World::join(place, launched.rank_table);
  const auto environment = hccl::read_environment("moeyard run");
  if (!environment) return bad_input("{}", environment.error().message());
  const MeetingPlace meeting{launched.host, launched.port, settings().secret, place.ranks};
  std::unique_ptr<Handout> handout;
  return model::World::join(place, [&](HcclRootInfo& info) -> Status {
    const std::span bytes(info.internal);
    if (place.rank != 0) return receive_handout(meeting, place.rank, environment->connect_timeout, bytes);
    if (place.ranks > 1) handout = MOEYARD_TRY(Handout::begin(meeting, bytes));
    return {};
  });
}

template <class T>
Status status_of(const Result<T>& result) {
  return result ? Status() : result.error();
}

Result<Ending> run_rank(const RunOptions& options, const Launched& launched) {
  const bool tells = launched.place.rank == 0;
  const model::Progress progress =
      tells ? progress_line() : [](std::string_view, std::int64_t, std::int64_t) {};
  model::World world = MOEYARD_TRY(join(launched));
  const auto inputs = read_inputs(options, tells, progress);
  MOEYARD_TRY(world.agree(status_of(inputs)));
  const model::Job job = job_of(options, inputs->layer, inputs->tokens, inputs->placement);
  MOEYARD_TRY(world.agree(check_ranks(options, job)));
  const model::LayerConfig& config = inputs->layer.config;
  MOEYARD_TRY(world.compare({{"--layer", config.layer},
                             {"--repeat", options.repeat},
                             {"experts per rank:", job.local_instances()},
                             {"experts per token:", config.topk},
                             {"hidden size", config.hidden},
                             {"tokens:", job.tokens.count},
                             {"--dtype number", static_cast<std::int64_t>(job.type)},
                             {"--balance number", static_cast<std::int64_t>(job.balance)},
                             {"attention workers:", job.afd ? job.afd->attention_workers : 0},
                             {"--micro-batches", job.afd ? job.afd->micro_batches : 0},
                             {"--micro-batch-tokens", job.afd ? job.afd->micro_batch_tokens : 0}}));
  const auto run = MOEYARD_TRY(model::run_launched(job, world, options.repeat, progress));
  Result<Ending> ending = Ending::pass;
  if (tells) ending = report_run(options, job, inputs->expected, run, progress);
  // All end alike, with a mismatch, too.
  Status told = status_of(ending);
  if (ending && *ending != Ending::pass) told = Status(static_cast<int>(*ending), "");
  MOEYARD_TRY(world.agree(told));
  return ending;
}

// With a given number of ranks, what one kind of workers leaves is for the other.
Status share_workers(RunOptions& options, int ranks) {
  if (!options.afd) return {};
  if (!options.ffn_workers_given)
    options.ffn_workers = ranks - options.attention_workers;
  else if (!options.attention_workers_given)
    options.attention_workers = ranks - options.ffn_workers;
  const int both = options.attention_workers + options.ffn_workers;
  if (both == ranks && options.attention_workers > 0 && options.ffn_workers > 0) return {};
  return bad_input(
      "--attention-workers {} and --ffn-workers {} do not make {} ranks, with one of each at least.",
      options.attention_workers, options.ffn_workers, ranks);
}

// The launcher's variables, and what they make of the options.
Result<std::optional<Launched>> find_launcher(RunOptions& options) {
  const auto variable = [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  auto launched = MOEYARD_TRY(read_launched(variable, options.meet_at));
  if (!launched) {
    if (!options.meet_at.empty())
      return bad_input(
          "--meet-at is for ranks that a launcher has started, and no variable says that one has.");
    return launched;
  }
  if (options.ranks_given || options.processes != 0) {
    // A script of a Slurm job is rank 0 by its variables, too, but no step.
    if (launched->variables.starts_with("SLURM") && std::getenv("SLURM_STEP_NODELIST") == nullptr)
      return std::optional<Launched>();
    return bad_input(
        "{} say that this process is rank {} of {} already: leave out --{}, or start it without these "
        "variables.",
        launched->variables, launched->place.rank, launched->place.ranks,
        options.ranks_given ? "ranks" : "processes");
  }
  options.ranks = launched->place.ranks;
  options.is_one_rank = true;
  MOEYARD_TRY(share_workers(options, options.ranks));
  name_trace_of_rank(launched->place.rank);
  return launched;
}

int run(RunOptions options) {
  const auto launched = find_launcher(options);
  Result<Ending> ending = Ending::pass;
  if (!launched) {
    ending = launched.error();
  } else if (*launched) {
    ending = run_rank(options, **launched);
  } else {
    if (options.processes != 0) options.ranks = options.processes;
    const Status shared = options.processes != 0 ? share_workers(options, options.processes) : Status();
    ending = shared.ok() ? run_layer(options) : shared;
  }
  if (ending) return static_cast<int>(*ending);
  clear_progress_line();
  const std::string& message = ending.error().message();
  if (!message.empty()) fmt::print(stderr, "moeyard run: {}\n", message);
  return ending.error().code();
}

void add_options(Command& command, RunOptions& options) {
  command.option("--model", options.model, "Folder with config.json and safetensors files")
      .type("DIR")
      .required();
  command.option("--layer", options.layer, "Number of the layer, from 0").required();
  command.option("--input", options.input, "Safetensors file with hidden states [T,H] or [B,S,H]")
      .type("FILE")
      .required();
  command.option("--expect", options.expect, "Safetensors file with the output to compare with").type("FILE");
  command.option("--ranks", options.ranks, "Ranks, as threads of this process").tells(options.ranks_given);
  command.option("--processes", options.processes, "Ranks, as processes of this host")
      .between(1, 1024)
      .excludes("--ranks");
  command.option("--afd", options.afd, "Attention workers and FFN workers").excludes("--ranks");
  command.option("--attention-workers", options.attention_workers, "Ranks with tokens")
      .needs("--afd")
      .tells(options.attention_workers_given);
  command.option("--ffn-workers", options.ffn_workers, "Ranks with experts")
      .needs("--afd")
      .tells(options.ffn_workers_given);
  command.option("--micro-batches", options.micro_batches, "Under way at a time, of an attention worker")
      .needs("--afd");
  command.option("--micro-batch-tokens", options.micro_batch_tokens, "Tokens of a micro-batch at most")
      .needs("--afd");
  command.option("--meet-at", options.meet_at, "Where ranks of torchrun or Slurm find rank 0")
      .type("HOST:PORT");
  command.option("--placement", options.placement, "JSON file with phy2log: the expert of each instance")
      .type("FILE");
  command.option("--balance", options.balance, "What picks the instance of an expert")
      .type("NAME")
      .one_of({"token", "rank"});
  command.option("--dtype", options.dtype, "Type to compute in; default: that of the weights, bf16 for fp32")
      .type("NAME")
      .one_of({"bf16", "fp16"});
  command.option("--repeat", options.repeat, "Passes to time").between(1, 1'000'000);
  command.option("--output", options.output, "Safetensors file to write the result to").type("FILE");
  command.option("--with-topk", options.with_topk, "Write topk_ids and topk_weights to it as well");
  command.option("--json", options.json, "File to write the summary to, for machines").type("FILE");
  command.option("--input-name", options.input_name, "Tensor of --input").type("NAME");
  command.option("--expect-name", options.expect_name, "Tensor of --expect").type("NAME");
  command.option("--output-name", options.output_name, "Tensor of --output").type("NAME");
}

}  // namespace

Command run_command() {
  auto options = std::make_shared<RunOptions>();
  Command command{"run", "Run a mixture-of-experts layer over several ranks and check its result",
                  "Exit code: 0 pass, 1 mismatch, 2 bad input or usage, 3 failure at run time."};
  add_options(command, *options);
  command.run = [options] { return run(*options); };
  return command;
}

}  // namespace moeyard::tool
