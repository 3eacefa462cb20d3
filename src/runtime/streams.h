// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "runtime/stream.h"

namespace moeyard::runtime {

// All streams of the process by their handles.

Result<aclrtStream> create_stream(std::string_view function, const Stream::Options& options);
std::shared_ptr<Stream> find_live_stream(aclrtStream handle);  // null: not alive
std::vector<std::shared_ptr<Stream>> all_streams();

// Takes the handle out of use and closes the stream. Errors: 107017.
Status destroy_stream(std::string_view function, aclrtStream handle, bool force);

// Waits for every stream of a device and takes their errors; returns the first one.
Status synchronize_device(std::string_view function, int device, Deadline deadline);

// Closes all streams of a context, the default stream included.
Status close_streams_of(std::string_view function, std::uint64_t context);

// A stream for work that must belong to the current context. Errors: 107002, 107017, 107003.
Result<std::shared_ptr<Stream>> find_own_stream(std::string_view function, aclrtStream handle);

}  // namespace moeyard::runtime
