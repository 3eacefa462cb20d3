// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "base/trace.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include "base/log.h"
#include "base/settings.h"

namespace moeyard {
namespace {

constexpr std::size_t kMostEvents = 1 << 20;  // of a thread; what comes later is counted only

struct Event {
  const char* category;
  std::string name;
  std::int64_t began_ns, ended_ns;
};

// Filled by its thread, read when the file is written.
struct Buffer {
  const long thread = ::syscall(SYS_gettid);
  std::mutex mutex;
  std::string name = "host thread";
  std::vector<Event> events;
  std::size_t dropped = 0;
};

struct Trace {
  std::mutex mutex;
  std::vector<std::shared_ptr<Buffer>> buffers;
};

// Kept, as threads may outlive static objects.
Trace& trace() {
  static auto* made = new Trace;
  return *made;
}

// -1: this process is no rank.
std::atomic<int> rank_of_process{-1};

std::string file_name() {
  const std::string& wanted = settings().trace;
  std::string name = for_this_process(wanted);
  const int rank = rank_of_process;
  if (rank < 0 || name != wanted) return name;
  const std::size_t dot = name.find_last_of("./");
  const bool has_ending = dot != std::string::npos && name[dot] == '.';
  return name.insert(has_ending ? dot : name.size(), fmt::format(".rank{}", rank));
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Buffer& buffer() {
  thread_local const std::shared_ptr<Buffer> mine = [] {
    static const bool at_exit = std::atexit(write_trace) == 0;
    static_cast<void>(at_exit);
    auto made = std::make_shared<Buffer>();
    const std::lock_guard lock(trace().mutex);
    trace().buffers.push_back(made);
    return made;
  }();
  return *mine;
}

std::string in_json(std::string_view text) {
  std::string made;
  for (const char c : text) made += c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  return made;
}

void write_buffer(std::FILE* file, Buffer& buffer, bool& first) {
  const std::lock_guard lock(buffer.mutex);
  fmt::print(file,
             "{}{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":\"{}\"}}}}",
             first ? "" : ",\n", ::getpid(), buffer.thread, in_json(buffer.name));
  first = false;
  for (const Event& event : buffer.events)
    fmt::print(file,
               ",\n{{\"ph\":\"X\",\"cat\":\"{}\",\"name\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"dur\":"
               "{:.3f}}}",
               event.category, in_json(event.name), ::getpid(), buffer.thread,
               static_cast<double>(event.began_ns) * 1e-3,
               static_cast<double>(event.ended_ns - event.began_ns) * 1e-3);
  if (buffer.dropped > 0)
    log_warning("MOEYARD_TRACE: {} events of {} were left out", buffer.dropped, buffer.name);
}

}  // namespace

std::string for_this_process(std::string name) {
  for (std::size_t at; (at = name.find("%p")) != std::string::npos;)
    name.replace(at, 2, std::to_string(::getpid()));
  return name;
}

bool detail::trace_is_wanted() { return !settings().trace.empty(); }

void TraceSpan::begin(const char* category, std::string_view name) {
  category_ = category;
  name_ = name;
  began_ns_ = now_ns();
}

void TraceSpan::end() noexcept { trace_bar(category_, name_, began_ns_); }

std::int64_t trace_now() { return now_ns(); }

void trace_bar(const char* category, std::string_view name, std::int64_t began_ns) noexcept {
  const std::int64_t ended_ns = now_ns();
  try {
    Buffer& mine = buffer();
    const std::lock_guard lock(mine.mutex);
    if (mine.events.size() < kMostEvents)
      mine.events.push_back({category, std::string(name), began_ns, ended_ns});
    else
      ++mine.dropped;
  } catch (...) {  // out of memory: the picture lacks a bar
  }
}

void name_trace_thread(const std::string& name) {
  if (!tracing()) return;
  Buffer& mine = buffer();
  const std::lock_guard lock(mine.mutex);
  mine.name = name;
}

void name_trace_of_rank(int rank) { rank_of_process = rank; }

void write_trace() {
  if (!tracing()) return;
  const std::string name = file_name();
  std::FILE* file = std::fopen(name.c_str(), "w");
  if (file == nullptr) {
    log_error("MOEYARD_TRACE={}: the file cannot be written", name);
    return;
  }
  std::fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", file);
  const std::lock_guard lock(trace().mutex);
  bool first = true;
  for (const auto& one : trace().buffers) write_buffer(file, *one, first);
  std::fputs("\n]}\n", file);
  if (std::fclose(file) != 0) log_error("MOEYARD_TRACE={}: the file cannot be written", name);
}

}  // namespace moeyard
