// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/status.h"
#include "runtime/shared_memory.h"

namespace moeyard::comm {

// Names a process; no two ever have the same.
using ProcessId = std::array<std::uint64_t, 2>;
ProcessId this_process();

// A process of this host whose shared memory is mapped here, or this process itself.
class PeerProcess {
 public:
  // This process, which from now on can be known by others. 207001: the system has no memory to share.
  static Result<std::shared_ptr<const PeerProcess>> self(std::string_view function);
  // Another one by the descriptor of its shared memory, which is taken. Mapped once however often it is named.
  static Result<std::shared_ptr<const PeerProcess>> adopt(const ProcessId& id, int descriptor,
                                                          std::uint64_t bytes);

  const ProcessId& id() const { return id_; }
  const runtime::MappedFile& memory() const { return *memory_; }
  // False once it has ended, however. Then it does not touch memory any more.
  bool alive() const;

  PeerProcess(const ProcessId& id, std::optional<runtime::MappedFile> mapped, const runtime::MappedFile* own);

 private:
  const ProcessId id_;
  const std::optional<runtime::MappedFile> mapped_;  // of another process
  const runtime::MappedFile* memory_;
};

}  // namespace moeyard::comm
