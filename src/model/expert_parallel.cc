// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/expert_parallel.h"

#include <chrono>
#include <functional>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <thread>

#include "model/combine_step.h"
#include "model/errors.h"

namespace moeyard::model {
namespace {

using Clock = std::chrono::steady_clock;

double ms_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double, std::milli>(end - begin).count();
}

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

// Calls body(r) on a thread for each rank, and returns the failure that came first, if any.
template <class Body>
Status each_rank(int ranks, Body body) {
  std::mutex mutex;
  Status first;
  const auto guarded = [&](int r) {
    Status status;
    try {
      status = body(r);
    } catch (const std::bad_alloc&) {
      status = run_failed("out of memory");
    }
    const std::lock_guard lock(mutex);
    if (!first.ok() || status.ok()) return;
    const bool of_rank = status.code() == static_cast<int>(Ending::failed);
    first = of_rank ? run_failed("rank {}: {}", r, status.message()) : status;
  };
  {
    std::vector<std::jthread> threads;
    for (int r = 0; r < ranks; ++r) threads.emplace_back(guarded, r);
  }
  return first;
}

Result<std::vector<Communicator>> make_communicators(int ranks) {
  std::vector<std::int32_t> devices(ranks);
  std::iota(devices.begin(), devices.end(), 0);
  std::vector<HcclComm> made(ranks);
  MOEYARD_TRY(checked(HcclCommInitAll(static_cast<std::uint32_t>(ranks), devices.data(), made.data()),
                      "HcclCommInitAll"));
  std::vector<Communicator> owned;
  for (HcclComm communicator : made) owned.emplace_back(communicator);
  return owned;
}

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
    result.ms_of_rank.push_back(MOEYARD_TRY(seat.rank->milliseconds()));
    first = std::min(first, seat.began);
    last = std::max(last, seat.ended);
  }
  result.ms = ms_between(first, last);
  return result;
}

// Copies rank r's rows of a [T, width] result to their place.
template <class T>
Status collect(const Job& job, int r, const DeviceTensor& tensor, std::vector<T>& all) {
  if (all.empty()) return {};
  const auto width = static_cast<std::int64_t>(all.size()) / job.tokens.count;
  return tensor.download(
      std::as_writable_bytes(std::span(all).subspan(job.first_token(r) * width, job.tokens_of(r) * width)));
}

Status collect_rows(const Job& job, int r, const Seat& seat, std::vector<std::int64_t>& rows) {
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
  const LayerConfig& config = job.layer.config;
  const std::int64_t tokens = job.tokens.count;
  run.output.resize(tokens * config.hidden);
  run.experts.resize(tokens * config.topk);
  run.weights.resize(tokens * config.topk);
  if (!job.layer.bias.empty()) run.scores.resize(tokens * config.experts);
  for (int r = 0; r < job.ranks; ++r) {
    const Seat& seat = seats[r];
    MOEYARD_TRY(seat.rank->enter());
    MOEYARD_TRY(collect(job, r, seat.combine->out(), run.output));
    MOEYARD_TRY(collect(job, r, seat.gate->experts(), run.experts));
    MOEYARD_TRY(collect(job, r, seat.gate->weights(), run.weights));
    MOEYARD_TRY(collect(job, r, seat.gate->scores(), run.scores));
    MOEYARD_TRY(collect_rows(job, r, seat, run.rows));
  }
  return {};
}

}  // namespace

Result<LayerRun> run_expert_parallel(const Job& job, int repeat, const Progress& progress) {
  LayerRun run{};
  run.rows.resize(job.ranks * job.placement.instances());
  if (job.tokens.count == 0) return run;  // no rank has anything to do, so none is started
  const auto begin = Clock::now();
  auto communicators = MOEYARD_TRY(make_communicators(job.ranks));
  std::vector<Seat> seats(job.ranks);
  std::mutex mutex;
  std::int64_t instances = 0;
  const auto loaded = [&] {
    const std::lock_guard lock(mutex);
    progress("loading expert instances", ++instances, job.placement.instances());
  };
  MOEYARD_TRY(each_rank(
      job.ranks, [&](int r) { return set_up(job, r, std::move(communicators[r]), loaded, seats[r]); }));
  run.load_ms = ms_between(begin, Clock::now());
  for (int i = 0; i < repeat; ++i) {
    progress("running the layer, pass", i + 1, repeat);
    run.passes.push_back(MOEYARD_TRY(run_pass(job, seats)));
  }
  MOEYARD_TRY(collect_all(job, seats, run));
  return run;
}

}  // namespace moeyard::model
