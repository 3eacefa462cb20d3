// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/launched.h"

#include "model/part.h"
#include "model/seat.h"

namespace moeyard::model {

Result<LayerRun> run_launched(const Job& job, World& world, int repeat, const Progress& progress) {
  LayerRun run = LayerRun::of(job);
  if (job.tokens.count == 0) return run;  // no rank has anything to do
  const auto begin = Clock::now();
  const int r = world.place().rank;
  Record record = Record::of(job, repeat);
  const auto part = make_part(job);
  std::int64_t loaded = 0;
  const auto set_up = [&]() -> Status {
    auto communicator = MOEYARD_TRY(world.communicator());
    return part->set_up(world.place(), std::move(communicator),
                        [&] { progress("loading expert instances", ++loaded, job.local_instances()); });
  };
  MOEYARD_TRY(world.agree(set_up()));
  record.load_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
  int pass = 0;
  MOEYARD_TRY(run_part(
      *part, world, [&] { progress("running the layer, pass", ++pass, repeat); }, record));
  std::vector<std::int64_t> bytes;
  for (int other = 0; other < job.ranks; ++other) bytes.push_back(record_bytes(job, other, repeat));
  const auto records = MOEYARD_TRY(world.gather(pack_record(job, r, record), bytes));
  if (r != 0) return run;
  run = join_records(job, repeat, {records.begin(), records.end()}, /*one_clock*/ false);
  if (!job.afd) count_reads(job, run);
  return run;
}

}  // namespace moeyard::model
