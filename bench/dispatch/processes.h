// Moeyard. SPDX-License-Identifier: Apache-2.0
// The scenario with ranks that are processes. As these fork, which a program that has used the library must not, the
// program starts itself for them:
//
//   int main(int argc, char** argv) {
//     if (asked_for_processes()) return run_processes();
//     ...
#pragma once

namespace bench::dispatch {

struct ProcessTimes {
  double dispatch = 0, combine = 0;  // seconds, medians; 0: a process failed, or rows are wrong
};
ProcessTimes process_times();

bool asked_for_processes();
int run_processes();

}  // namespace bench::dispatch
