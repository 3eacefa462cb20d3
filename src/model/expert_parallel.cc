// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/expert_parallel.h"

#include <optional>

#include "model/combine_step.h"

namespace moeyard::model {
namespace {

// A rank with the tensors of its steps.
struct Seat {
  std::unique_ptr<Rank> rank;
  std::optional<GateStep> gate;
  std::optional<DispatchStep> dispatch;
  std::optional<ExpertsStep> experts;
  std::optional<CombineStep> combine;
  Clock::time_point began, ended;

  // Memory is given back in the context it came from, and not under the hands of queued work.
  ~Seat() {
    if (rank == nullptr || !rank->enter().ok()) return;
    (void)rank->synchronize();
  }
};

Status set_up(const Job& job, int r, Communicator communicator, const std::function<void()>& loaded,
              Seat& seat) {
  seat.rank = MOEYARD_TRY(Rank::make(r, job.ranks, std::move(communicator)));
  seat.gate = MOEYARD_TRY(GateStep::make(job, r));
  seat.dispatch = MOEYARD_TRY(DispatchStep::make(job, r));
  seat.experts = MOEYARD_TRY(ExpertsStep::make(job, r, loaded));
  seat.combine = MOEYARD_TRY(CombineStep::make(job, r));
  return {};
}

// Running sums of the rows per (local instance, source rank), as dispatch counted them.
Result<std::vector<std::int32_t>> received(const Job& job, const Seat& seat) {
  std::vector<std::int32_t> sums(job.placement.instances());
  MOEYARD_TRY(seat.dispatch->recv_counts().download(std::as_writable_bytes(std::span(sums))));
  return sums;
}

// The layer, once, on one rank.
Status pass(const Job& job, Seat& seat) {
  Rank& rank = *seat.rank;
  MOEYARD_TRY(rank.enter());
  seat.began = Clock::now();
  MOEYARD_TRY(seat.gate->queue(job, rank));
  MOEYARD_TRY(seat.dispatch->queue(job, rank, *seat.gate));
  MOEYARD_TRY(rank.synchronize());  // the number of rows is known to the device only
  const std::int64_t rows = MOEYARD_TRY(received(job, seat)).back();
  MOEYARD_TRY(seat.experts->queue(job, rank, *seat.dispatch, rows));
  MOEYARD_TRY(seat.combine->queue(job, rank, *seat.gate, *seat.dispatch, *seat.experts));
  MOEYARD_TRY(rank.synchronize());
  seat.ended = Clock::now();
  return {};
}

Result<Pass> run_pass(const Job& job, std::vector<Seat>& seats) {
  MOEYARD_TRY(each_rank(job.ranks, [&](int r) {
    Status status = pass(job, seats[r]);
    if (!status.ok()) seats[r].rank->leave();  // else its peers would wait until their time is up
    return status;
  }));
  Pass result{{}, 0};
  Clock::time_point first = seats[0].began, last = seats[0].ended;
  for (const Seat& seat : seats) {
    MOEYARD_TRY(seat.rank->enter());
    MOEYARD_TRY(seat.rank->add_times(result.ms_of_rank.emplace_back()));
    first = std::min(first, seat.began);
    last = std::max(last, seat.ended);
  }
  result.ms = ms_between(first, last);
  return result;
}

Status count_rows(const Job& job, int r, const Seat& seat, std::vector<std::int64_t>& rows) {
  const auto sums = MOEYARD_TRY(received(job, seat));
  const std::int64_t local = job.local_instances(), first = r * local;
  for (std::int64_t l = 0; l < local; ++l)
    for (int source = 0; source < job.ranks; ++source) {
      const std::int64_t at = l * job.ranks + source;
      rows[source * job.placement.instances() + first + l] = sums[at] - (at == 0 ? 0 : sums[at - 1]);
    }
  return {};
}

Status collect_all(const Job& job, std::vector<Seat>& seats, LayerRun& run) {
  for (int r = 0; r < job.ranks; ++r) {
    const Seat& seat = seats[r];
    MOEYARD_TRY(seat.rank->enter());
    MOEYARD_TRY(collect_rows_of(job, r, seat.combine->out(), run.output));
    MOEYARD_TRY(collect_rows_of(job, r, seat.gate->experts(), run.experts));
    MOEYARD_TRY(collect_rows_of(job, r, seat.gate->weights(), run.weights));
    MOEYARD_TRY(collect_rows_of(job, r, seat.gate->scores(), run.scores));
    MOEYARD_TRY(count_rows(job, r, seat, run.rows));
    if (job.layer.shared && job.tokens_of(r) > 0) ++run.shared_reads;
  }
  for (std::int64_t p = 0; p < job.placement.instances(); ++p) {
    std::int64_t rows = 0;
    for (int source = 0; source < job.ranks; ++source)
      rows += run.rows[source * job.placement.instances() + p];
    if (rows > 0) ++run.instance_reads;
  }
  return {};
}

}  // namespace

Result<LayerRun> run_expert_parallel(const Job& job, int repeat, const Progress& progress) {
  LayerRun run = LayerRun::of(job);
  if (job.tokens.count == 0) return run;  // no rank has anything to do, so none is started
  const auto begin = Clock::now();
  auto communicators = MOEYARD_TRY(make_communicators(job.ranks));
  std::vector<Seat> seats(job.ranks);
  LoadProgress loaded(job, progress);
  MOEYARD_TRY(each_rank(job.ranks, [&](int r) {
    return set_up(job, r, std::move(communicators[r]), std::ref(loaded), seats[r]);
  }));
  run.load_ms = ms_between(begin, Clock::now());
  for (int i = 0; i < repeat; ++i) {
    progress("running the layer, pass", i + 1, repeat);
    run.passes.push_back(MOEYARD_TRY(run_pass(job, seats)));
  }
  MOEYARD_TRY(collect_all(job, seats, run));
  return run;
}

}  // namespace moeyard::model
