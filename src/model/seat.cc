// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/seat.h"

namespace moeyard::model {
namespace {

// Running sums of the rows per (local instance, source rank), as dispatch counted them.
Result<std::vector<std::int32_t>> received(const Job& job, const Seat& seat) {
  std::vector<std::int32_t> sums(job.placement.instances());
  MOEYARD_TRY(seat.dispatch->recv_counts().download(std::as_writable_bytes(std::span(sums))));
  return sums;
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

}  // namespace

Status set_up(const Job& job, int r, int device, Communicator communicator,
              const std::function<void()>& loaded, Seat& seat) {
  seat.rank = MOEYARD_TRY(Rank::make(r, job.ranks, device, std::move(communicator)));
  seat.gate = MOEYARD_TRY(GateStep::make(job, r));
  seat.dispatch = MOEYARD_TRY(DispatchStep::make(job, r));
  seat.experts = MOEYARD_TRY(ExpertsStep::make(job, r, loaded));
  seat.combine = MOEYARD_TRY(CombineStep::make(job, r));
  return {};
}

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

Status collect(const Job& job, int r, const Seat& seat, LayerRun& run) {
  MOEYARD_TRY(collect_rows_of(job, r, seat.combine->out(), run.output));
  MOEYARD_TRY(collect_rows_of(job, r, seat.gate->experts(), run.experts));
  MOEYARD_TRY(collect_rows_of(job, r, seat.gate->weights(), run.weights));
  MOEYARD_TRY(collect_rows_of(job, r, seat.gate->scores(), run.scores));
  MOEYARD_TRY(count_rows(job, r, seat, run.rows));
  return {};
}

void count_reads(const Job& job, LayerRun& run) {
  for (int r = 0; r < job.ranks; ++r)
    if (job.layer.shared && job.tokens_of(r) > 0) ++run.shared_reads;
  for (std::int64_t p = 0; p < job.placement.instances(); ++p) {
    std::int64_t rows = 0;
    for (int source = 0; source < job.ranks; ++source)
      rows += run.rows[source * job.placement.instances() + p];
    if (rows > 0) ++run.instance_reads;
  }
}

}  // namespace moeyard::model
