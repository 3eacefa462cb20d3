// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "comm/create.h"
#include "hccl/environment.h"
#include "hccl/hccl_types.h"

namespace moeyard::hccl {

// What the environment and, if given, the caller's HcclCommConfig say of a new communicator. Structs of older
// and newer callers are understood: only members inside the caller's own size are read. HCCL_E_PARA: a config
// that HcclCommConfigInit has not prepared, or a member with a value that it must not have.
Result<comm::Spec> make_spec(std::string_view function, const Environment& environment,
                             const HcclCommConfig* config);

// What HcclSetConfig and HcclGetConfig keep for the process.
Status set_deterministic(std::string_view function, std::int32_t value);
Result<std::int32_t> get_deterministic(std::string_view function);

}  // namespace moeyard::hccl
