// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "hccl/group_calls.h"

#include <algorithm>

#include "base/errors.h"
#include "base/log.h"
#include "hccl/environment.h"
#include "hccl/handles.h"

namespace moeyard::hccl {
namespace {

// A call that waits for HcclGroupEnd.
struct Pending {
  Place place;
  runtime::Task task;                 // of a collective
  std::vector<comm::Transfer> items;  // of sends and receives
};

struct GroupCalls {
  int depth = 0;
  std::vector<Pending> pending;
};

GroupCalls& mine() {
  thread_local GroupCalls calls;
  return calls;
}

// The runtime's failure in HCCL's codes.
Status in_hccl_code(const Status& failure) {
  if (failure.ok()) return failure;
  return Status(failure.code() == ACL_ERROR_RT_INVALID_HANDLE ? HCCL_E_PARA : HCCL_E_RUNTIME,
                failure.message());
}

void log_entry(const Place& place) {
  if (!logs_entries()) return;
  log_line(LogLevel::info,
           fmt::format("{}: group {}, rank {} of {}, stream {}", place.function, place.group->name(),
                       place.group->rank(), place.group->size(), place.stream->id()));
}

runtime::Task make_task(const Place& place, std::vector<comm::Transfer> items) {
  return {place.function,
          [function = place.function, work = comm::Group::Work(place.group),
           items = std::move(items)]() mutable -> Status {
            Status status = work.group().transfer(function, items);
            work.end();  // before the stream counts the task as done
            return status;
          }};
}

}  // namespace

Result<std::shared_ptr<comm::Group>> find_working_comm(const char* function, HcclComm comm) {
  auto group = MOEYARD_TRY(find_comm(function, comm));
  if (group->suspended)
    return fail(HCCL_E_SUSPENDING, TextCode::hccl_parameter,
                "{}: rank {} of {} is suspended; call HcclCommResume first", function, group->rank(),
                group->name());
  if (const Status fault = group->fault(); !fault.ok()) return Status(HCCL_E_REMOTE, fault.message());
  return group;
}

Result<Place> find_place(const char* function, std::shared_ptr<comm::Group> group, aclrtStream stream) {
  auto found = runtime::find_stream(stream, function);
  if (!found) return in_hccl_code(found.error());
  return Place{function, std::move(group), *std::move(found)};
}

Status submit_collective(const Place& place, CollectiveBody body) {
  log_entry(place);
  std::lock_guard lock(place.group->submission);
  runtime::Task task{place.function,
                     [exchange = comm::Exchange(place.group, place.function),
                      body = std::move(body)]() mutable -> Status { return body(exchange); }};
  if (in_group()) {
    mine().pending.push_back({place, std::move(task), {}});
    return {};
  }
  return in_hccl_code(place.stream->submit(std::move(task)));
}

Status submit_transfers(const Place& place, std::vector<comm::Transfer> items) {
  log_entry(place);
  if (!in_group()) return in_hccl_code(place.stream->submit(make_task(place, std::move(items))));
  auto& pending = mine().pending;
  const auto batch = std::ranges::find_if(pending, [&](const Pending& call) {
    return !call.items.empty() && call.place.group == place.group && call.place.stream == place.stream;
  });
  if (batch == pending.end()) {
    pending.push_back({place, {}, std::move(items)});
  } else {
    batch->items.insert(batch->items.end(), items.begin(), items.end());
  }
  return {};
}

Status group_start() {
  ++mine().depth;
  return {};
}

Status group_end(const char* function) {
  GroupCalls& calls = mine();
  if (calls.depth == 0)
    return fail(HCCL_E_PARA, TextCode::hccl_parameter,
                "{}: this thread has no open group; call HcclGroupStart first", function);
  if (--calls.depth > 0) return {};
  std::vector<Pending> pending = std::exchange(calls.pending, {});
  Status first;
  for (Pending& call : pending) {
    runtime::Task task =
        call.items.empty() ? std::move(call.task) : make_task(call.place, std::move(call.items));
    const Status status = call.place.stream->submit(std::move(task));
    if (first.ok()) first = in_hccl_code(status);
  }
  return first;
}

bool in_group() { return mine().depth > 0; }

}  // namespace moeyard::hccl
