// Moeyard. SPDX-License-Identifier: Apache-2.0
// Dispatch against what a program does without it: rows packed by destination, MPI_Alltoallv between two processes, rows
// unpacked to their places. The program starts itself under mpirun for that; `of_rival` is MPI's median time over ours,
// with ranks that are threads, and with ranks that are processes as MPI's are.
#include <benchmark/benchmark.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench/dispatch/processes.h"
#include "bench/dispatch/scenario.h"

namespace bench::dispatch {
namespace {

constexpr int kExpertsPerRank = kExperts / kRanks;

// One rank's dispatch with MPI.
class MpiDispatch {
 public:
  explicit MpiDispatch(int rank)
      : rank_(rank),
        packed_(std::size_t{kTokens} * kTopk * kHidden),
        arrived_(static_cast<std::size_t>(problem().rows[rank]) * kHidden),
        rows_(arrived_.size()) {}

  void run() {
    // Rows per expert, to everybody.
    int sent[kExperts] = {}, received[kExperts];
    for (const std::int32_t expert : problem().ids[rank_]) ++sent[expert];
    MPI_Alltoall(sent, kExpertsPerRank, MPI_INT, received, kExpertsPerRank, MPI_INT, MPI_COMM_WORLD);
    // Pack by expert.
    std::size_t next[kExperts];
    for (std::size_t expert = 0, at = 0; expert < kExperts; at += static_cast<std::size_t>(sent[expert++]))
      next[expert] = at;
    for (std::size_t slot = 0; slot < problem().ids[rank_].size(); ++slot)
      std::memcpy(&packed_[next[problem().ids[rank_][slot]]++ * kHidden],
                  &problem().tokens[rank_][slot / kTopk * kHidden], kRowBytes);
    // Exchange; the elements are counted, as bytes overflow an int for larger problems.
    int send_counts[kRanks] = {}, send_at[kRanks] = {}, recv_counts[kRanks] = {}, recv_at[kRanks] = {};
    for (int i = 0; i < kExperts; ++i) {
      send_counts[i / kExpertsPerRank] += sent[i] * kHidden;
      recv_counts[i / kExpertsPerRank] += received[i] * kHidden;
    }
    for (int peer = 1; peer < kRanks; ++peer) {
      send_at[peer] = send_at[peer - 1] + send_counts[peer - 1];
      recv_at[peer] = recv_at[peer - 1] + recv_counts[peer - 1];
    }
    MPI_Alltoallv(packed_.data(), send_counts, send_at, MPI_UINT16_T, arrived_.data(), recv_counts, recv_at,
                  MPI_UINT16_T, MPI_COMM_WORLD);
    // Unpack: from (source, expert) to (expert, source).
    std::size_t to = 0;
    for (int local = 0; local < kExpertsPerRank; ++local)
      for (int source = 0; source < kRanks; ++source) {
        std::size_t from = static_cast<std::size_t>(recv_at[source]) / kHidden;
        for (int other = 0; other < local; ++other)
          from += static_cast<std::size_t>(received[source * kExpertsPerRank + other]);
        const auto count = static_cast<std::size_t>(received[source * kExpertsPerRank + local]);
        std::memcpy(&rows_[to * kHidden], &arrived_[from * kHidden], count * kRowBytes);
        to += count;
      }
  }

  bool wrong() const {
    for (int source = 0; source < kRanks; ++source)
      for (std::size_t slot = 0; slot < problem().places[source].size(); ++slot) {
        const Place& place = problem().places[source][slot];
        if (place.rank == rank_ &&
            std::memcmp(&rows_[static_cast<std::size_t>(place.row) * kHidden],
                        &problem().tokens[source][slot / kTopk * kHidden], kRowBytes) != 0)
          return true;
      }
    return false;
  }

 private:
  const int rank_;
  std::vector<std::uint16_t> packed_, arrived_, rows_;
};

int run_under_mpi(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MpiDispatch work(rank);
  work.run();
  int wrong = work.wrong() ? 1 : 0, any_wrong = 0;
  MPI_Allreduce(&wrong, &any_wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  std::vector<double> times;
  for (int i = 0; i < 15 && any_wrong == 0; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    work.run();
    double mine = MPI_Wtime() - begin, slowest = 0;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    times.push_back(slowest);
  }
  if (rank == 0 && any_wrong == 0) std::printf("median %.9f\n", median(times));
  MPI_Finalize();
  return any_wrong;
}

// Seconds of a dispatch with MPI; 0 if mpirun fails or its rows are wrong.
double mpi_time() {
  char program[PATH_MAX + 1] = {};
  if (readlink("/proc/self/exe", program, PATH_MAX) < 0) return 0;
  const std::string command =
      "mpirun --allow-run-as-root --oversubscribe -np 2 '" + std::string(program) + "' 2>/dev/null";
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return 0;
  double seconds = 0;
  char line[256];
  while (std::fgets(line, sizeof line, pipe) != nullptr) std::sscanf(line, "median %lf", &seconds);
  return pclose(pipe) == 0 ? seconds : 0;
}

void count_against(benchmark::State& state, double own, double other) {
  const double bytes = static_cast<double>(kRowsInAll * kRowBytes);
  state.counters["GB/s"] = bytes / own / 1e9;
  state.counters["rival_GB/s"] = bytes / other / 1e9;
  state.counters["of_rival"] = other / own;
}

void dispatch_against_mpi(benchmark::State& state) {
  const double before = mpi_time();
  if (before == 0) return state.SkipWithError("mpirun failed or its rows are wrong");
  std::vector<double> own;
  {
    Team team;
    const auto lane = moeyard_lane();
    const std::function<void(int)> part = [&](int rank) { lane->dispatch(rank); };
    team.time(part);
    if (const std::string wrong = lane->wrong_rows(); !wrong.empty())
      return state.SkipWithError(("wrong rows: " + wrong).c_str());
    for (auto _ : state) {
      own.push_back(team.time(part));
      state.SetIterationTime(own.back());
    }
  }
  count_against(state, median(own), (before + mpi_time()) / 2);
}
BENCHMARK(dispatch_against_mpi)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(30);

void processes_against_mpi(benchmark::State& state) {
  std::vector<double> own, other;
  for (auto _ : state) {  // turn by turn
    other.push_back(mpi_time());
    own.push_back(process_times().dispatch);
    if (other.back() == 0 || own.back() == 0)
      return state.SkipWithError("mpirun or a process failed, or rows are wrong");
    state.SetIterationTime(own.back());
  }
  count_against(state, median(own), median(other));
}
BENCHMARK(processes_against_mpi)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(3);

}  // namespace
}  // namespace bench::dispatch

int main(int argc, char** argv) {
  if (std::getenv("OMPI_COMM_WORLD_RANK") != nullptr) return bench::dispatch::run_under_mpi(argc, argv);
  if (bench::dispatch::asked_for_processes()) return bench::dispatch::run_processes();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
