// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/disaggregated.h"

#include <atomic>
#include <cstdlib>
#include <optional>

#include "model/attention_worker.h"
#include "model/ffn_worker.h"
#include "model/part.h"

namespace moeyard::model {
namespace {

// A rank with its worker, of one kind or the other.
struct Seat {
  std::unique_ptr<Rank> rank;
  std::optional<AttentionWorker> attention;
  std::optional<FfnWorker> ffn;
  Clock::time_point began, ended;
  PhaseTimes times{};

  WorkerContext& context() { return attention ? attention->context() : ffn->context(); }

  // Memory is given back in the context it came from, and not under the hands of queued work.
  ~Seat() {
    if (rank == nullptr || !rank->enter().ok()) return;
    (void)rank->synchronize();
  }
};

Status set_up(const Job& job, int r, int device, Communicator communicator,
              const std::function<void()>& loaded, Seat& seat) {
  seat.rank = MOEYARD_TRY(Rank::make(r, job.ranks, device, std::move(communicator)));
  if (r < job.first_expert_rank())
    seat.attention = MOEYARD_TRY(AttentionWorker::make(job, *seat.rank));
  else
    seat.ffn = MOEYARD_TRY(FfnWorker::make(job, *seat.rank, loaded));
  return {};
}

Status begin_pass(std::vector<Seat>& seats) {
  for (Seat& seat : seats) {
    MOEYARD_TRY(seat.rank->enter());
    MOEYARD_TRY(seat.context().begin());
    seat.times = {};
  }
  return {};
}

// The layer, once: FFN workers are stopped when the last attention worker has all its results, and everybody when one
// fails, as nobody may wait for it.
Status pass(const Job& job, std::vector<Seat>& seats) {
  std::atomic<int> at_work = job.token_ranks();
  const auto stop = [&seats](int first) {
    for (std::size_t r = first; r < seats.size(); ++r) (void)seats[r].context().stop();
  };
  const auto work = [&](Seat& seat) -> Status {
    MOEYARD_TRY(seat.rank->enter());
    seat.began = Clock::now();
    MOEYARD_TRY(seat.attention ? seat.attention->pass(job, *seat.rank, seat.times)
                               : seat.ffn->pass(*seat.rank, seat.times));
    seat.ended = Clock::now();
    return {};
  };
  return each_rank(job.ranks, [&](int r) {
    Status status = work(seats[r]);
    if (!status.ok()) {
      stop(0);
      for (Seat& seat : seats) seat.rank->abort();
    } else if (seats[r].attention && --at_work == 0) {
      stop(job.first_expert_rank());
    }
    return status;
  });
}

Result<Pass> run_pass(const Job& job, std::vector<Seat>& seats) {
  MOEYARD_TRY(begin_pass(seats));
  MOEYARD_TRY(pass(job, seats));
  Pass result{{}, 0};
  Clock::time_point first = seats[0].began, last = seats[0].ended;
  for (int r = 0; r < job.ranks; ++r) {
    const Seat& seat = seats[r];
    result.ms_of_rank.push_back(seat.times);
    if (r >= job.token_ranks()) continue;  // FFN workers end later, when they are told to
    first = std::min(first, seat.began);
    last = std::max(last, seat.ended);
  }
  result.ms = ms_between(first, last);
  return result;
}

Status collect_attention(const Job& job, int r, const Seat& seat, LayerRun& run) {
  MOEYARD_TRY(seat.rank->enter());
  MOEYARD_TRY(collect_rows_of(job, r, seat.attention->out(), run.output));
  MOEYARD_TRY(collect_rows_of(job, r, seat.attention->gate().experts(), run.experts));
  MOEYARD_TRY(collect_rows_of(job, r, seat.attention->gate().weights(), run.weights));
  return collect_rows_of(job, r, seat.attention->gate().scores(), run.scores);
}

// Every pass takes the same rows.
void count_rows(const Job& job, int r, const FfnWorker& worker, int passes, LayerRun& run) {
  const std::int64_t local = job.local_instances(), first = (r - job.first_expert_rank()) * local;
  for (int source = 0; source < job.token_ranks(); ++source)
    for (std::int64_t l = 0; l < local; ++l)
      run.rows[source * job.placement.instances() + first + l] = worker.rows_of(source, l) / passes;
  run.instance_reads += worker.instance_reads() / passes;
  run.shared_reads += worker.shared_reads() / passes;
}

// Windows as large as needed; whoever set a size meant it.
void fit_windows(const Job& job) {
  setenv("HCCL_BUFFSIZE",
         std::to_string(std::max<std::int64_t>(WorkerShape(job).window_mebibytes(), 1)).c_str(),
         /*overwrite*/ 0);
}

class DisaggregatedPart final : public Part {
 public:
  explicit DisaggregatedPart(const Job& job) : job_(job) { fit_windows(job); }

  Status set_up(const Place& place, Communicator communicator, const std::function<void()>& loaded) override {
    return model::set_up(job_, place.rank, place.device, std::move(communicator), loaded, seat_);
  }
  Status begin() override {
    MOEYARD_TRY(seat_.rank->enter());
    seat_.times = {};
    return seat_.context().begin();
  }
  Status pass(World& world, TimedPass& timed) override {
    MOEYARD_TRY(seat_.rank->enter());
    seat_.began = Clock::now();
    MOEYARD_TRY(seat_.attention ? attend(world) : serve(world));
    timed = {ns_of(seat_.began), ns_of(seat_.ended), seat_.times};
    return {};
  }
  Status collect(LayerRun& run, int passes) override {
    const int r = seat_.rank->number();
    if (seat_.attention) return collect_attention(job_, r, seat_, run);
    count_rows(job_, r, *seat_.ffn, passes, run);
    return {};
  }

 private:
  // All ranks meet once the last attention worker has its results.
  Status attend(World& world) {
    MOEYARD_TRY(seat_.attention->pass(job_, *seat_.rank, seat_.times));
    seat_.ended = Clock::now();
    return world.meet();
  }
  // A thread waits for that, or for the loss of a rank, and stops the worker.
  Status serve(World& world) {
    Status met;
    Status status;
    {
      const std::jthread watcher([&] {
        met = world.meet();
        (void)seat_.context().stop();
      });
      status = seat_.ffn->pass(*seat_.rank, seat_.times);
      seat_.ended = Clock::now();
      if (!status.ok()) world.abort();
    }
    return status.ok() ? met : status;
  }

  const Job& job_;
  Seat seat_;
};

}  // namespace

std::unique_ptr<Part> make_disaggregated_part(const Job& job) {
  return std::make_unique<DisaggregatedPart>(job);
}

Status check_disaggregation(const Job& job) {
  const Disaggregation& afd = *job.afd;
  constexpr std::int64_t kRow = 256, kMostSlots = 64;
  if (afd.attention_workers < 1 || afd.attention_workers > 1024)
    return bad_input("--attention-workers {} must be from 1 to 1024.", afd.attention_workers);
  if (afd.micro_batches < 1 || afd.micro_batches > 64)
    return bad_input("--micro-batches {} must be from 1 to 64.", afd.micro_batches);
  if (afd.micro_batch_tokens < 1 || afd.micro_batch_tokens > 512)
    return bad_input("--micro-batch-tokens {} must be from 1 to 512.", afd.micro_batch_tokens);
  const LayerConfig& config = job.layer.config;
  if (config.hidden % kRow != 0)
    return bad_input(
        "--afd needs a hidden size that is a multiple of {}, as rows lie in slots of 512 bytes; it is {}.",
        kRow, config.hidden);
  if (const std::int64_t slots = WorkerShape(job).slots; slots > kMostSlots)
    return bad_input("--afd takes {} experts per token at the most, this layer has {}.", kMostSlots, slots);
  return {};
}

Result<LayerRun> run_disaggregated(const Job& job, int repeat, const Progress& progress) {
  LayerRun run = LayerRun::of(job);
  if (job.tokens.count == 0) return run;  // no rank has anything to do, so none is started
  fit_windows(job);
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
  for (int r = 0; r < job.ranks; ++r) {
    if (seats[r].attention) MOEYARD_TRY(collect_attention(job, r, seats[r], run));
    if (seats[r].ffn) count_rows(job, r, *seats[r].ffn, repeat, run);
  }
  return run;
}

}  // namespace moeyard::model
