// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/status.h"
#include "calls/functions.h"

// A call of an operator, described: written by hand or recorded (docs/call-json.md). What is read is checked for its form
// only, so that a call which breaks an operator's rules can be described, too.
namespace moeyard::calls {

struct TensorSpec {
  aclDataType dtype = ACL_DT_UNDEFINED;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides = {};  // empty: dense
  std::int64_t offset = 0;
  aclFormat format = ACL_FORMAT_ND;
  std::string file = {};     // of its elements, a plain name in the folder of the call; empty: none
  std::string same_as = {};  // a parameter whose memory it shares
};

// Null or left out, or what the kind of the parameter says; flags are integers, scalars numbers of either kind.
using TensorList = std::vector<std::optional<TensorSpec>>;
using Value = std::variant<std::monostate, TensorSpec, TensorList, std::vector<std::int64_t>,
                           std::vector<double>, std::string, std::int64_t, double>;

inline bool is_given(const Value& value) { return !std::holds_alternative<std::monostate>(value); }

// The communicator that a text parameter names.
struct GroupSpec {
  std::string name;  // in the program that was recorded
  std::int64_t ranks = 0, rank = 0;
  std::int64_t buffer_mb = 0;  // 0: HCCL_BUFFSIZE's
  std::int64_t number = 0;     // of the call among the group's collective calls
};

struct Call {
  const Function* function = nullptr;
  std::vector<Value> values;                             // by parameter of the function
  std::map<std::string, GroupSpec, std::less<>> groups;  // by parameter
  std::map<std::string, std::string> environment;
  std::string soc;               // product to check for; empty: MOEYARD_SOC
  std::filesystem::path folder;  // where files of elements are
  bool is_one_of_all = false;    // the file lists the calls of all ranks of the group

  std::size_t index_of(std::string_view parameter) const;  // parameters.size(): it has none of that name
  const Value& value_of(std::string_view parameter) const;
};

// What became of a call that was recorded with MOEYARD_DUMP (docs/dump.md).
struct Outcome {
  std::int64_t device = 0, number = 0;
  std::optional<std::int32_t> code;  // none: it had not ended
  std::string message;
  std::map<std::string, std::vector<std::string>>
      outputs;  // files by parameter; "": an absent member of a list
};

// A recorded call; bad input if the file describes one that was not recorded.
struct Recorded {
  Call call;
  Outcome outcome;
};
Result<Recorded> read_recorded_call(const std::filesystem::path& path);

// A call, and what the ranks of its group pass otherwise: one call per rank, or a single one.
Result<std::vector<Call>> read_call_file(const std::filesystem::path& path);
Result<std::vector<Call>> parse_calls(const nlohmann::json& object, const std::filesystem::path& path);

// "BF16[64,7168]", as messages show tensors.
std::string text_of(const TensorSpec& tensor);

// Elements that it has; none where a size is negative or the product overflows.
std::optional<std::int64_t> element_count(const TensorSpec& tensor);

}  // namespace moeyard::calls
