// Moeyard. SPDX-License-Identifier: Apache-2.0
// The scenario of the dispatch and combine benchmarks and the lanes that race in it: two ranks with a thread each, 512
// tokens of 7168 BF16 elements per rank, 8 of 16 experts per token.
#pragma once
#include <barrier>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "hccl/hccl.h"

namespace bench::dispatch {

inline constexpr int kRanks = 2, kTokens = 512, kTopk = 8, kHidden = 7168, kExperts = 16;
inline constexpr std::int64_t kRowBytes = kHidden * 2;
inline constexpr std::int64_t kRowsInAll = std::int64_t{kRanks} * kTokens * kTopk;

// Which rank and row of its output a slot goes to.
struct Place {
  int rank;
  std::int64_t row;
};

// The same tokens, experts and weights for every lane, and by plain loops where the rows go.
struct Problem {
  Problem();
  std::vector<std::uint16_t> tokens[kRanks];  // [kTokens, kHidden] BF16
  std::vector<std::int32_t> ids[kRanks];      // [kTokens, kTopk]
  std::vector<float> weights[kRanks];         // [kTokens, kTopk]
  std::vector<Place> places[kRanks];          // [kTokens, kTopk]
  std::int64_t rows[kRanks] = {};             // that each rank receives
};
const Problem& problem();

// What quantMode and commQuantMode make of rows.
struct Mode {
  const char* name = "plain";
  std::int64_t quant = 0;
  aclDataType rows = ACL_BF16;
  std::int64_t row_bits = 16 * kHidden;
  aclDataType scale_type = ACL_FLOAT;
  std::int64_t scale_bytes = 4, scales_per_row = 0;
  std::int64_t comm = 0;
  std::int64_t row_bytes() const { return row_bits / 8; }
};

// One way to do the work: every rank's part on a thread of its own.
class Lane {
 public:
  virtual ~Lane() = default;
  virtual void dispatch(int rank) = 0;
  virtual void combine(int rank) = 0;
  // Whether the rows, or the sums, are what they must be; empty if so.
  virtual std::string wrong_rows() const = 0;
  virtual std::string wrong_sums() const = 0;
  // The rows that a rank has received.
  virtual const std::byte* rows(int rank) const = 0;
};
std::unique_ptr<Lane> moeyard_lane(const Mode& mode = {});
// The same where every rank is a process: this one's rank, found by the root info. Only its own part works.
std::unique_ptr<Lane> moeyard_process_lane(int rank, const HcclRootInfo& info);
std::unique_ptr<Lane>
streaming_copy_lane();  // the limit: rows copied to the same places past the caches; rows read, sums written
std::unique_ptr<Lane> memcpy_lane();

// Shared by lanes that keep rows in plain memory.
std::string compare_rows(const std::function<const std::uint16_t*(int rank, std::int64_t row)>& row_at);

// Keeps a thread per rank and runs parts of a lane on all of them at once.
class Team {
 public:
  Team();
  ~Team();
  // Seconds from the common start to the end of the last rank.
  double time(const std::function<void(int rank)>& part);

 private:
  std::barrier<> start_{kRanks + 1}, end_{kRanks + 1};
  const std::function<void(int)>* part_ = nullptr;
  std::vector<std::thread> threads_;
};

double median(std::vector<double> values);

}  // namespace bench::dispatch
