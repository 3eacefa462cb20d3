// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "hccl/config.h"

#include <atomic>
#include <cstddef>
#include <cstring>

#include "base/errors.h"
#include "hccl/hccl_comm.h"

namespace moeyard::hccl {
namespace {

constexpr int kMostDeterministic = 2;

struct ConfigInfo {  // the first bytes of an HcclCommConfig
  std::size_t size;
  std::uint32_t magic_word;
  std::uint32_t version;
  std::uint64_t reserved;
};
static_assert(sizeof(ConfigInfo) == HCCL_COMM_CONFIG_INFO_BYTES && sizeof(HcclCommConfig) == 2240);

// Where members end, one after the other: the next one's offset.
constexpr std::size_t kMemberEnds[] = {offsetof(HcclCommConfig, hcclDeterministic),
                                       offsetof(HcclCommConfig, hcclCommName),
                                       offsetof(HcclCommConfig, hcclUdi),
                                       offsetof(HcclCommConfig, hcclOpExpansionMode),
                                       offsetof(HcclCommConfig, hcclRdmaTrafficClass),
                                       offsetof(HcclCommConfig, hcclRdmaServiceLevel),
                                       offsetof(HcclCommConfig, hcclWorldRankID),
                                       offsetof(HcclCommConfig, hcclJobID),
                                       offsetof(HcclCommConfig, aclGraphZeroCopyEnable),
                                       offsetof(HcclCommConfig, hcclExecTimeOut),
                                       offsetof(HcclCommConfig, hcclAlgo),
                                       offsetof(HcclCommConfig, hcclRetryEnable),
                                       offsetof(HcclCommConfig, hcclRetryParams),
                                       offsetof(HcclCommConfig, hcclBufferName),
                                       offsetof(HcclCommConfig, hcclQos),
                                       offsetof(HcclCommConfig, hcclSymWinMaxMemSizePerRank),
                                       sizeof(HcclCommConfig)};

template <class... Args>
Status wrong(fmt::format_string<Args...> format, Args&&... args) {
  return fail(HCCL_E_PARA, TextCode::hccl_parameter, format, std::forward<Args>(args)...);
}

// The config with "not set" in what lies beyond the caller's struct.
Result<HcclCommConfig> complete(std::string_view function, const HcclCommConfig* config) {
  ConfigInfo info;
  std::memcpy(&info, config->reserved, sizeof(info));
  if (info.magic_word != HCCL_COMM_CONFIG_MAGIC_WORD)
    return wrong("{}: config was not initialised; call HcclCommConfigInit on it first", function);
  if (info.size < sizeof(ConfigInfo))
    return wrong("{}: config says that it has {} bytes, at least {} are needed", function, info.size,
                 sizeof(ConfigInfo));
  HcclCommConfig full;
  HcclCommConfigInit(&full);
  std::size_t known = sizeof(info);
  for (const std::size_t end : kMemberEnds)
    if (end <= info.size) known = end;
  std::memcpy(reinterpret_cast<char*>(&full) + sizeof(info),
              reinterpret_cast<const char*>(config) + sizeof(info), known - sizeof(info));
  return full;
}

std::atomic<std::int32_t> process_deterministic{-1};  // -1: as HCCL_DETERMINISTIC says

}  // namespace

Result<comm::Spec> make_spec(std::string_view function, const Environment& environment,
                             const HcclCommConfig* config) {
  comm::Spec spec;
  spec.limits.buffer_mb = environment.buffer_mb;
  spec.limits.exec_timeout = peer_timeout(environment.exec_timeout);
  spec.deterministic = environment.deterministic;
  if (config == nullptr) return spec;

  const HcclCommConfig full = MOEYARD_TRY(complete(function, config));
  const std::size_t name_length = strnlen(full.hcclCommName, COMM_NAME_MAX_LENGTH);
  if (name_length == COMM_NAME_MAX_LENGTH)
    return wrong("{}: hcclCommName has no end; at most {} characters are allowed", function,
                 COMM_NAME_MAX_LENGTH - 1);
  spec.name.assign(full.hcclCommName, name_length);
  if (full.hcclBufferSize == 0) return wrong("{}: hcclBufferSize is 0, it must be 1 (MiB) or more", function);
  if (full.hcclBufferSize != HCCL_COMM_BUFFSIZE_CONFIG_NOT_SET) spec.limits.buffer_mb = full.hcclBufferSize;
  if (full.hcclDeterministic != HCCL_COMM_DETERMINISTIC_CONFIG_NOT_SET) {
    if (full.hcclDeterministic > kMostDeterministic)
      return wrong("{}: hcclDeterministic is {}, it must be 0, 1 or 2", function, full.hcclDeterministic);
    spec.deterministic = static_cast<int>(full.hcclDeterministic);
  }
  if (full.hcclOpExpansionMode > HCCL_OP_EXPANSION_AIV_ONLY)
    return wrong("{}: hcclOpExpansionMode is {}, it must be in [0, {}]", function, full.hcclOpExpansionMode,
                 static_cast<int>(HCCL_OP_EXPANSION_AIV_ONLY));
  if (full.hcclExecTimeOut < HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET)
    return wrong("{}: hcclExecTimeOut is {} s, it must be 0 (never), more, or -1 (not set)", function,
                 full.hcclExecTimeOut);
  if (full.hcclExecTimeOut != HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET)
    spec.limits.exec_timeout = peer_timeout(std::chrono::seconds(full.hcclExecTimeOut));
  return spec;
}

Status set_deterministic(std::string_view function, std::int32_t value) {
  if (value < 0 || value > kMostDeterministic)
    return wrong("{}: the value of HCCL_DETERMINISTIC is {}, it must be 0, 1 or 2", function, value);
  process_deterministic = value;
  return {};
}

Result<std::int32_t> get_deterministic(std::string_view function) {
  const std::int32_t value = process_deterministic.load();
  if (value >= 0) return value;
  const Environment environment = MOEYARD_TRY(read_environment(function));
  return environment.deterministic;
}

}  // namespace moeyard::hccl
