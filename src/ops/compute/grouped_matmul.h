// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "executor/call.h"

namespace moeyard::ops {

// Parameters of aclnnGroupedMatmulV5; see include/aclnnop/aclnn_grouped_matmul_v5.h. Earlier versions leave what they do not
// have at its default.
struct GroupedMatmulArgs {
  TensorListView x, weight, bias, scale, offset, antiquant_scale, antiquant_offset, per_token_scale;
  TensorView group_list;
  TensorListView activation_input, activation_quant_scale, activation_quant_offset;
  std::int64_t split_item = 0, group_type = -1, group_list_type = 0, act_type = 0;
  TensorListView out, activation_feature_out, dyn_quant_scale_out;

  // The group list of V1 and V2, which is not device data; one without members counts as none.
  IntArrayView host_group_list;
  IntArrayView tuning_config;

  // How x, weight and out divide into groups: the rows of the table in the header.
  enum class Form : std::uint8_t {
    separate,       // groupType -1: g products that have nothing to do with each other
    rows,           // groupType 0: rows of one x and one out; weight one tensor (g, K, N) or g of (K, N)
    rows_of_list,   // groupType 0: one x per group, one out
    rows_to_list,   // groupType 0: one x, one out per group
    depth,          // groupType 2: ranges of k, weight (K, N), out (g, M, N)
    depth_of_list,  // groupType 2: one weight and one out per group
    none,           // anything else
  };
  Form form() const;
  bool one_weight() const { return weight.size() == 1 && weight[0].rank == 3; }
  std::int64_t groups() const;
  bool has_group_list() const { return host_group_list.given || group_list.present(); }
  bool quantised() const { return x[0].dtype == ACL_INT8; }
};

// A list that the caller left away, or that has no members.
inline bool absent(const TensorListView& list) {
  for (const TensorView& item : list.items)
    if (item.present()) return false;
  return true;
}

struct GroupedMatmul {
  using Args = GroupedMatmulArgs;
  struct Plan : executor::PlanBase {
    std::int64_t groups = 0;
  };
  static const contract::Contract kContract;
  static Result<Plan> plan(const char* function, const Args& args);
  static Status run(const executor::Run& run, const Args& args, const Plan& plan);
};

}  // namespace moeyard::ops
