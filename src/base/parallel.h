// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <type_traits>

namespace moeyard {

// A half-open range of rows, tokens, slots ...
struct Range {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};

// A reference to a callable that outlives the call: no allocation, no copy.
class RangeBody {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, RangeBody>) RangeBody(F&& body)
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(body)))),
        call_([](void* object, Range range) { (*static_cast<std::remove_reference_t<F>*>(object))(range); }) {
  }
  void operator()(Range range) const { call_(object_, range); }

 private:
  void* object_;
  void (*call_)(void*, Range);
};

// Calls body on disjoint pieces that cover [0, n), of about `grain` indices or more, on the threads of the
// process-wide arena; returns when all are done. Runs on the calling thread alone when n <= grain. A body
// never waits for a peer rank. The first exception of a body is thrown again here.
//
// Work that must give the same bits for every number of threads must not depend on where pieces begin.
void parallel_for(std::int64_t n, std::int64_t grain, RangeBody body);

// Threads that parallel_for spreads over: MOEYARD_THREADS, at most the cores by default.
int parallel_threads();

}  // namespace moeyard
