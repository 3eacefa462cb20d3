// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace moeyard::calls {

// What a return code, or the bracketed code of a message, means to the person who gets it.
struct CodeAdvice {
  std::string_view code;  // "161001", "EI0006"; those of HCCL by name, "HCCL_E_TIMEOUT"
  std::string_view meaning;
  std::string_view way_out;
};

std::span<const CodeAdvice> all_advice();

// By number, by name ("ACLNN_ERR_PARAM_INVALID", "HCCL_E_PARA") or by the code in a message; null: none.
const CodeAdvice* find_advice(std::string_view code);

// "ACLNN_ERR_PARAM_INVALID" for 161002; empty for a number that has no name.
std::string name_of_code(std::int32_t code);

}  // namespace moeyard::calls
