// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace moeyard {

// A record of what threads did when, written to the file MOEYARD_TRACE at the end of the process in the format of
// Chrome's trace viewer, which Perfetto and other viewers read. Without that variable a span costs one test of a flag.

namespace detail {
bool trace_is_wanted();
}
inline bool tracing() {
  static const bool wanted = detail::trace_is_wanted();
  return wanted;
}

// One bar in the picture: from here to the end of the block.
class TraceSpan {
 public:
  // The category is a literal: "phase two", "stream", "wait".
  TraceSpan(const char* category, std::string_view name) {
    if (tracing()) [[unlikely]]
      begin(category, name);
  }
  ~TraceSpan() {
    if (category_ != nullptr) [[unlikely]]
      end();
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  void begin(const char* category, std::string_view name);
  void end() noexcept;

  const char* category_ = nullptr;
  std::string_view name_;
  std::int64_t began_ns_ = 0;
};

// A bar whose beginning and end are known in different places: trace_now() and, later, trace_bar().
std::int64_t trace_now();
void trace_bar(const char* category, std::string_view name, std::int64_t began_ns) noexcept;

// What the picture calls the calling thread; "host thread" without it.
void name_trace_thread(const std::string& name);

// The name of a file or folder with the process's number for %p, for programs of several.
std::string for_this_process(std::string name);

// For processes that are ranks and were given one MOEYARD_TRACE: unless its name has %p, this one's file is NAME.rank3.json
// for NAME.json.
void name_trace_of_rank(int rank);

// Writes what has been recorded so far; at the end of the process it happens by itself.
void write_trace();

}  // namespace moeyard
