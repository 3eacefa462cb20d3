// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/gate_step.h"

namespace moeyard::model {

// Sends each token to the ranks of its experts. What it leaves is what combine needs to find the way back.
class DispatchStep {
 public:
  static Result<DispatchStep> make(const Job& job, int rank);
  Status queue(const Job& job, Rank& rank, const GateStep& gate);

  const DeviceTensor& tokens() const { return tokens_; }                  // [T, H], as the experts get them
  const DeviceTensor& rows() const { return rows_; }                      // [capacity, H], sorted by expert
  const DeviceTensor& rows_of_expert() const { return rows_of_expert_; }  // INT64 [L]
  const DeviceTensor& assist_info() const { return assist_info_; }
  // INT32 [L * ranks]: running sums of the rows of (local instance, source rank)
  const DeviceTensor& recv_counts() const { return recv_counts_; }
  const DeviceTensor& row_weights() const { return row_weights_; }

 private:
  DispatchStep() = default;
  DeviceTensor tokens_, rows_, rows_of_expert_, assist_info_, recv_counts_, tp_counts_, row_weights_;
};

}  // namespace moeyard::model
