// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/afd/windows.h"

#include <algorithm>

#include "base/errors.h"
#include "comm/registry.h"

namespace moeyard::ops {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;

}  // namespace

Result<comm::Limits> find_workers(const char* function, const std::string& group, std::int64_t world_size) {
  const auto found = comm::find_group(group);
  if (!found)
    return fail(
        ACLNN_ERR_PARAM_INVALID, TextCode::operator_parameter,
        "{}: group not found: group is \"{}\" but must name a live communicator of this process; pass what "
        "HcclGetCommName gives and keep the communicator until the work is done",
        function, group);
  if (found->size != world_size)
    return fail(
        ACLNN_ERR_INNER_TILING_ERROR, TextCode::operator_parameter,
        "{}: worldSize is {} but must be {}, the ranks of group \"{}\"; pass what HcclGetRankSize gives",
        function, world_size, found->size, group);
  return found->limits;
}

Status check_window(const char* function, const comm::Limits& limits, std::uint64_t counted_bytes,
                    std::uint64_t layout_bytes) {
  const auto window_mb = static_cast<std::uint64_t>(limits.buffer_mb);
  const std::uint64_t needed_mb = std::max(counted_bytes / kMiB + 1, (layout_bytes + kMiB - 1) / kMiB);
  if (layout_bytes <= window_mb * kMiB && needed_mb <= window_mb) return {};
  return fail(
      ACLNN_ERR_INNER_TILING_ERROR, TextCode::operator_parameter,
      "{}: HCCL_BUFFSIZE is {} MiB but must be at least {} MiB for the windows of these shapes; set it "
      "before the "
      "communicator is made",
      function, window_mb, needed_mb);
}

Windows::Windows(std::shared_ptr<comm::Group> group, const runtime::Stream& stream)
    : work_(std::move(group)), patience_(stream, work_.group().limits().exec_timeout) {}

Result<Windows> Windows::open(const char* function, const std::string& group, const runtime::Stream& stream) {
  auto found = comm::find_rank(group, stream.device());
  if (found == nullptr)
    return fail(ACLNN_ERR_PARAM_INVALID, TextCode::operator_parameter,
                "{}: stream belongs to device {} but must belong to the device of a rank of group \"{}\"",
                function, stream.device(), group);
  return Windows(std::move(found), stream);
}

Result<std::byte*> Windows::of(const char* function, std::int64_t rank) const {
  const comm::Exposed window = MOEYARD_TRY(work_.group().window(static_cast<int>(rank)));
  if (window.data != nullptr) return window.data;
  return fail(
      stream_error::kInternal, TextCode::internal,
      "{}: the window of rank {} cannot be addressed from this process, which is not supported yet; run the "
      "workers on one host",
      function, rank);
}

}  // namespace moeyard::ops
