// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/expert_parallel.h"

#include "model/seat.h"

namespace moeyard::model {
namespace {

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

Status collect_all(const Job& job, std::vector<Seat>& seats, LayerRun& run) {
  for (int r = 0; r < job.ranks; ++r) {
    const Seat& seat = seats[r];
    MOEYARD_TRY(seat.rank->enter());
    MOEYARD_TRY(collect(job, r, seat, run));
  }
  count_reads(job, run);
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
    return set_up(job, r, r, std::move(communicators[r]), std::ref(loaded), seats[r]);
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
