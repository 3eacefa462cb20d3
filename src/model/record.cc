// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/record.h"

#include <algorithm>
#include <cstring>

namespace moeyard::model {
namespace {

// Calls visit(bytes) for each stretch of a record that is rank r's.
template <class Visit>
void visit_own(const Job& job, int r, Record& record, Visit visit) {
  const auto values = [&](auto& vector, std::int64_t first, std::int64_t count) {
    visit(std::as_writable_bytes(
        std::span(vector).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count))));
  };
  const std::int64_t first = job.first_token(r), tokens = job.tokens_of(r);
  const auto of_tokens = [&](auto& vector) {
    if (tokens == 0) return;
    const auto width = static_cast<std::int64_t>(vector.size()) / job.tokens.count;
    values(vector, first * width, tokens * width);
  };
  of_tokens(record.run.output);
  of_tokens(record.run.experts);
  of_tokens(record.run.weights);
  of_tokens(record.run.scores);
  const std::int64_t local = job.local_instances(), worker = r - job.first_expert_rank();
  for (int source = 0; worker >= 0 && source < job.token_ranks(); ++source)
    values(record.run.rows, source * job.placement.instances() + worker * local, local);
  visit(std::as_writable_bytes(std::span(record.passes)));
  for (std::int64_t* number : {&record.load_ns, &record.run.instance_reads, &record.run.shared_reads})
    visit(std::as_writable_bytes(std::span(number, 1)));
}

Pass pass_of(const Job& job, const std::vector<TimedPass>& ranks, bool one_clock) {
  Pass pass{{}, 0};
  std::int64_t first = ranks[0].began, last = ranks[0].ended, longest = 0;
  for (int r = 0; r < job.ranks; ++r) {
    const TimedPass& rank = ranks[static_cast<std::size_t>(r)];
    pass.ms_of_rank.push_back(rank.ms);
    if (r >= job.token_ranks()) continue;  // FFN workers end later, when they are told to
    first = std::min(first, rank.began);
    last = std::max(last, rank.ended);
    longest = std::max(longest, rank.ended - rank.began);
  }
  pass.ms = static_cast<double>(one_clock ? last - first : longest) * 1e-6;
  return pass;
}

}  // namespace

Record Record::of(const Job& job, int repeat) {
  return {LayerRun::of(job), std::vector<TimedPass>(static_cast<std::size_t>(repeat)), 0};
}

std::int64_t record_bytes(const Job& job, int r, int repeat) {
  const std::int64_t experts = job.layer.config.experts, topk = job.layer.config.topk;
  const std::int64_t token =
      2 * job.layer.config.hidden + 8 * topk + (job.layer.bias.empty() ? 0 : 4 * experts);
  const std::int64_t rows = r < job.first_expert_rank() ? 0 : job.token_ranks() * job.local_instances();
  return job.tokens_of(r) * token + 8 * rows + repeat * static_cast<std::int64_t>(sizeof(TimedPass)) + 3 * 8;
}

std::vector<std::byte> pack_record(const Job& job, int r, Record& record) {
  std::vector<std::byte> packed;
  visit_own(job, r, record,
            [&](std::span<std::byte> part) { packed.insert(packed.end(), part.begin(), part.end()); });
  return packed;
}

LayerRun join_records(const Job& job, int repeat, const std::vector<std::span<const std::byte>>& records,
                      bool one_clock) {
  Record joined = Record::of(job, repeat);
  std::vector<std::vector<TimedPass>> passes(static_cast<std::size_t>(repeat));  // each by rank
  std::int64_t load_ns = 0, instance_reads = 0, shared_reads = 0;
  for (int r = 0; r < job.ranks; ++r) {
    std::span<const std::byte> left = records[static_cast<std::size_t>(r)];
    visit_own(job, r, joined, [&](std::span<std::byte> part) {
      std::copy_n(left.begin(), part.size(), part.begin());
      left = left.subspan(part.size());
    });
    for (std::size_t i = 0; i < passes.size(); ++i) passes[i].push_back(joined.passes[i]);
    load_ns = std::max(load_ns, joined.load_ns);
    instance_reads += joined.run.instance_reads;
    shared_reads += joined.run.shared_reads;
  }
  LayerRun run = std::move(joined.run);
  run.instance_reads = instance_reads;
  run.shared_reads = shared_reads;
  run.load_ms = static_cast<double>(load_ns) * 1e-6;
  for (const auto& ranks : passes) run.passes.push_back(pass_of(job, ranks, one_clock));
  return run;
}

}  // namespace moeyard::model
