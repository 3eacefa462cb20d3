// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/part.h"

#include "model/seat.h"

namespace moeyard::model {
namespace {

class ExpertParallelPart final : public Part {
 public:
  explicit ExpertParallelPart(const Job& job) : job_(job) {}

  Status set_up(const Place& place, Communicator communicator, const std::function<void()>& loaded) override {
    return model::set_up(job_, place.rank, place.device, std::move(communicator), loaded, seat_);
  }
  Status pass(World&, TimedPass& timed) override {
    const Status status = model::pass(job_, seat_);
    if (!status.ok()) {
      seat_.rank->leave();  // else its peers would wait until their time is up
      return status;
    }
    timed.began = ns_of(seat_.began);
    timed.ended = ns_of(seat_.ended);
    return seat_.rank->add_times(timed.ms);
  }
  Status collect(LayerRun& run, int) override {
    MOEYARD_TRY(seat_.rank->enter());
    return model::collect(job_, seat_.rank->number(), seat_, run);
  }

 private:
  const Job& job_;
  Seat seat_;
};

}  // namespace

std::int64_t ns_of(Clock::time_point at) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
}

std::unique_ptr<Part> make_part(const Job& job) {
  if (job.afd) return make_disaggregated_part(job);
  return std::make_unique<ExpertParallelPart>(job);
}

Status run_part(Part& part, World& world, const std::function<void()>& began, Record& record) {
  for (TimedPass& timed : record.passes) {
    began();
    MOEYARD_TRY(part.begin());
    MOEYARD_TRY(world.meet());  // as passes begin together
    MOEYARD_TRY(part.pass(world, timed));
  }
  return part.collect(record.run, static_cast<int>(record.passes.size()));
}

}  // namespace moeyard::model
