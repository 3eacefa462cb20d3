// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "calls/groups.h"

#include <cstdlib>

#include "acl/acl.h"
#include "model/errors.h"

namespace moeyard::calls {
namespace {

constexpr std::string_view kGroup = "group";

std::string attribute(const Function& function, std::string_view group_parameter, std::string_view what) {
  std::string name(group_parameter.substr(kGroup.size()));
  name += what;
  name[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(name[0])));
  for (const Parameter& parameter : function.parameters)
    if (parameter.name == name) return name;
  return {};
}

std::string recent_message() {
  const char* text = aclGetRecentErrMsg();
  return text != nullptr ? text : "no message";
}

}  // namespace

bool names_group(const Parameter& parameter) {
  return parameter.kind == Kind::text && parameter.name.starts_with(kGroup);
}

std::string size_attribute(const Function& function, std::string_view group_parameter) {
  return attribute(function, group_parameter, "WorldSize");
}
std::string rank_attribute(const Function& function, std::string_view group_parameter) {
  return attribute(function, group_parameter, "RankId");
}

Result<std::unique_ptr<Communicator>> Communicator::make(std::span<const std::int32_t> devices,
                                                         std::int64_t buffer_mb) {
  const char* set = std::getenv("HCCL_BUFFSIZE");
  const std::string before = set != nullptr ? set : "";
  if (buffer_mb != 0) setenv("HCCL_BUFFSIZE", std::to_string(buffer_mb).c_str(), 1);
  std::unique_ptr<Communicator> made(new Communicator);
  made->ranks_.resize(devices.size());
  std::vector<std::int32_t> list(devices.begin(), devices.end());
  const HcclResult result =
      HcclCommInitAll(static_cast<std::uint32_t>(list.size()), list.data(), made->ranks_.data());
  if (buffer_mb != 0 && !before.empty()) setenv("HCCL_BUFFSIZE", before.c_str(), 1);
  if (buffer_mb != 0 && before.empty()) unsetenv("HCCL_BUFFSIZE");
  char name[COMM_NAME_MAX_LENGTH] = {};
  if (result != HCCL_SUCCESS) {
    made->ranks_.clear();
    return model::run_failed("no communicator of {} ranks could be made: {}", list.size(), recent_message());
  }
  if (HcclGetCommName(made->ranks_.front(), name) != HCCL_SUCCESS)
    return model::run_failed("a communicator has no name: {}", recent_message());
  made->name_ = name;
  return made;
}

Communicator::~Communicator() {
  for (HcclComm rank : ranks_) HcclCommDestroy(rank);
}

}  // namespace moeyard::calls
