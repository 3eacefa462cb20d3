// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "aclnn/aclnn_base.h"
#include "contract/contract.h"

// The operators' C functions as a table, so that a call can be made by names. The table is generated from include/aclnnop
// while building (generate_table.py): a new header is all that it needs.
namespace moeyard::calls {

enum class Kind : std::uint8_t {
  tensor,
  tensor_list,
  integers,
  numbers,
  flags,
  scalar,
  text,
  integer,
  number,
  flag
};

// A parameter of phase one, in the order of the prototype; workspaceSize and executor are left out.
struct Parameter {
  std::string_view name;
  Kind kind;
  std::string_view type;  // "const aclTensor*"
};

// Its value; the member that its kind says.
union Argument {
  aclTensor* tensor = nullptr;
  aclTensorList* tensor_list;
  aclIntArray* integers;
  aclFloatArray* numbers;
  aclBoolArray* flags;
  aclScalar* scalar;
  const char* text;
  std::int64_t integer;  // flags, too
  double number;
};

struct Function {
  std::string_view name;     // "aclnnMoeUpdateExpert"
  std::string_view header;   // "aclnnop/aclnn_moe_update_expert.h"
  std::string_view comment;  // what the header says of it
  std::string_view prototype;
  std::span<const Parameter> parameters;
  aclnnStatus (*plan)(const Argument* arguments, std::uint64_t* workspace_size, aclOpExecutor** executor);
  aclnnStatus (*run)(void* workspace, std::uint64_t workspace_size, aclOpExecutor* executor,
                     aclrtStream stream);
};

std::span<const Function> functions();                 // by name
const Function* find_function(std::string_view name);  // also without "aclnn"; null: there is none

// What the function checks its arguments against; found by asking it.
const contract::Contract& contract_of(const Function& function);

// The contract's name for a parameter of the function; empty: it has none, as the parameter has no effect.
std::string_view name_in_contract(const Function& function, std::string_view parameter);

// The functions of a contract, the newest version last.
std::vector<const Function*> functions_of(const contract::Contract& contract);

// The constants of a family of codes in the public headers.
struct CodeName {
  std::int32_t code;
  std::string_view name;  // "ACLNN_ERR_PARAM_INVALID"
};
std::span<const CodeName> code_names();

}  // namespace moeyard::calls
