// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/afd/context.h"

#include <cstring>

#include "base/errors.h"
#include "base/settings.h"
#include "runtime/memory.h"

namespace moeyard::ops {
namespace {

// Copies the bytes [begin, end) of a context.
void copy_part(ScheduleContext* to, const std::byte* from, std::size_t begin, std::size_t end) {
  std::memcpy(reinterpret_cast<std::byte*>(to) + begin, from + begin, end - begin);
}

// The word at an offset in one piece.
template <class T>
std::size_t copy_word(ScheduleContext* to, const std::byte* from, std::size_t offset) {
  const T value = __atomic_load_n(reinterpret_cast<const T*>(from + offset), __ATOMIC_ACQUIRE);
  std::memcpy(reinterpret_cast<std::byte*>(to) + offset, &value, sizeof value);
  return offset + sizeof value;
}

}  // namespace

ScheduleContext ContextRef::load() const {
  constexpr std::size_t kRunFlag = offsetof(ScheduleContext, control.run_flag);
  constexpr std::size_t kMicroBatch = offsetof(ScheduleContext, attention.micro_batch_id);
  constexpr std::size_t kPolling = offsetof(ScheduleContext, ffn.polling_index);
  constexpr std::size_t kOutNum = offsetof(ScheduleContext, ffn.out_num);
  ScheduleContext copy;
  copy_part(&copy, base_, 0, kRunFlag);
  std::size_t at = copy_word<std::int32_t>(&copy, base_, kRunFlag);
  copy_part(&copy, base_, at, kMicroBatch);
  at = copy_word<std::uint32_t>(&copy, base_, kMicroBatch);
  copy_part(&copy, base_, at, kPolling);
  at = copy_word<std::uint64_t>(&copy, base_, kPolling);
  copy_part(&copy, base_, at, kOutNum);
  at = copy_word<std::uint32_t>(&copy, base_, kOutNum);
  copy_part(&copy, base_, at, sizeof copy);
  return copy;
}

Status ContextReader::wrong(const std::string& text) const {
  return fail(code, TextCode::operator_parameter, "{}: in the schedule context {}", function, text);
}

Result<ScheduleContext> ContextReader::load(const TensorView& tensor, ScheduleUse use) const {
  if (!is_context_aligned(tensor))
    return fail(
        code, TextCode::operator_parameter,
        "{}: the schedule context lies at {} but must be aligned to 8 bytes; allocate it with aclrtMalloc",
        function, static_cast<const void*>(tensor.begin()));
  const ScheduleContext context = ContextRef(tensor).load();
  const std::string problem = schedule_context_problem(context, use);
  if (!problem.empty()) return wrong(problem);
  return context;
}

Status ContextReader::check_memory(const char* field, std::uint64_t address, std::uint64_t bytes) const {
  if (address % 4 != 0) return wrong(fmt::format("{} is {:#x} but must be a multiple of 4", field, address));
  if (bytes == 0 || settings().strict_memory == 0) return {};
  const void* begin = words_at(address);
  const std::string why = runtime::why_not_device_memory(begin, bytes);
  if (!why.empty())
    return wrong(
        fmt::format("{} is {:#x} but must be device memory of {} bytes: it {}", field, address, bytes, why));
  const int owner = runtime::find_block(begin)->device;
  if (owner == device) return {};
  return wrong(fmt::format("{} is {:#x}, memory of device {}, but must be memory of device {}, the stream's",
                           field, address, owner, device));
}

}  // namespace moeyard::ops
