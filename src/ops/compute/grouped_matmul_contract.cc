// Moeyard. SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/compute/grouped_matmul.h"
#include "ops/rows.h"

namespace moeyard::ops {

using A = GroupedMatmulArgs;
using Form = A::Form;

// Of a call whose lists may still be anything.
Form GroupedMatmulArgs::form() const {
  const std::int64_t xs = x.size(), weights = weight.size(), outs = out.size();
  const bool one_out = split_item == 2 || split_item == 3;
  if (weights == 0) return Form::none;
  if (group_type == -1) return !one_out && xs == weights && outs == weights ? Form::separate : Form::none;
  if (group_type == 0 && one_out && outs == 1) {
    if (xs == 1) return Form::rows;
    return xs == weights ? Form::rows_of_list : Form::none;
  }
  if (group_type == 0 && !one_out)
    return xs == 1 && outs == weights && !one_weight() ? Form::rows_to_list : Form::none;
  if (group_type == 2 && one_out) return xs == 1 && weights == 1 && outs == 1 ? Form::depth : Form::none;
  if (group_type == 2) return xs == 1 && outs == weights ? Form::depth_of_list : Form::none;
  return Form::none;
}

std::int64_t GroupedMatmulArgs::groups() const {
  if (form() == Form::depth) return out[0].rank == 3 ? out[0].dim(0) : 0;
  return one_weight() ? weight[0].dim(0) : weight.size();
}

namespace {

using namespace contract;

constexpr Dtypes kTypes = kFloats | kINT8;
constexpr std::string_view kNotYet = "not supported yet; leave it null";

constexpr Param kParams[] = {
    in<&A::x>("x", kTypes, "", "left operands, rows of tokens"),
    in<&A::weight>("weight", kTypes, "",
                   "right operands, one per group; transposed views are as good as others"),
    in<&A::bias>("biasOptional", kFloats | kINT32, "", "added to every row of a group").optional(),
    in<&A::scale>("scaleOptional", kFP32 | kBF16 | kUINT64, "", "INT8: one per group and column").optional(),
    in<&A::offset>("offsetOptional", kFP32, "", kNotYet).optional(),
    in<&A::antiquant_scale>("antiquantScaleOptional", kHalves, "", kNotYet).optional(),
    in<&A::antiquant_offset>("antiquantOffsetOptional", kHalves, "", kNotYet).optional(),
    in<&A::per_token_scale>("perTokenScaleOptional", kFP32, "", "INT8: one per row").optional(),
    in<&A::group_list>("groupListOptional", kINT64, "", "where groups end, or their sizes").optional(),
    attribute<&A::host_group_list>("hostGroupListOptional", "V1 and V2: their groupListOptional, an array")
        .optional(),
    in<&A::activation_input>("activationInputOptional", kTypes, "", kNotYet).optional(),
    in<&A::activation_quant_scale>("activationQuantScaleOptional", kTypes, "", kNotYet).optional(),
    in<&A::activation_quant_offset>("activationQuantOffsetOptional", kTypes, "", kNotYet).optional(),
    attribute<&A::split_item>("splitItem", "0, 1 one output per group; 2, 3 one output"),
    attribute<&A::group_type>("groupType", "-1 no groups, 0 groups of rows, 2 groups along K"),
    attribute<&A::group_list_type>("groupListType", "0 cumulative ends, 1 sizes, 2 pairs of group and size"),
    attribute<&A::act_type>("actType", "INT8: 0 none, 1 relu, 2 gelu (tanh), 4 fast gelu, 5 silu"),
    attribute<&A::tuning_config>("tuningConfigOptional",
                                 "V5: no effect; the first entry is at most the rows of x")
        .optional(),
    out<&A::out>("out", kTypes | kINT32, "", "products"),
    out<&A::activation_feature_out>("activationFeatureOutOptional", kTypes, "", kNotYet).optional(),
    out<&A::dyn_quant_scale_out>("dynQuantScaleOutOptional", kFP32, "", kNotYet).optional(),
};

template <class Check>
bool every(const TensorListView& list, Check&& check) {
  for (std::int64_t i = 0; i < list.size(); ++i)
    if (!check(list[i], i)) return false;
  return true;
}

bool complete(const TensorListView& list) {
  return every(list, [](const TensorView& item, std::int64_t) { return item.present(); });
}

bool one_type(const TensorListView& list) {
  return every(list, [&](const TensorView& item, std::int64_t) { return item.dtype == list[0].dtype; });
}

// The rows of the header's table of types.
bool types_fit(const A& a) {
  const aclDataType x = a.x[0].dtype, out = a.out[0].dtype;
  const bool biased = !absent(a.bias), scaled = !absent(a.scale), per_token = !absent(a.per_token_scale);
  const aclDataType bias = biased ? a.bias[0].dtype : ACL_DT_UNDEFINED;
  const aclDataType scale = scaled ? a.scale[0].dtype : ACL_DT_UNDEFINED;
  if (a.weight[0].dtype != x) return false;
  if (x != ACL_INT8) {
    if (out != x || scaled || per_token) return false;
    const bool wide = product() == Product::host || product() == Product::a950;
    if (!biased || (x == ACL_FLOAT && bias == ACL_FLOAT)) return true;
    if (x == ACL_FLOAT16) return bias == ACL_FLOAT16 || (wide && bias == ACL_FLOAT);
    return x == ACL_BF16 && (bias == ACL_FLOAT || (wide && bias == ACL_BF16));
  }
  const bool integer_bias = !biased || bias == ACL_INT32;
  if (out == ACL_BF16) return (scale == ACL_FLOAT || scale == ACL_BF16) && (integer_bias || bias == ACL_BF16);
  if (out == ACL_FLOAT16) return scale == ACL_FLOAT && integer_bias;
  if (out == ACL_INT8) return scale == ACL_UINT64 && integer_bias && !per_token;
  return out == ACL_INT32 && !scaled && integer_bias && !per_token;
}

// Groups' weights: w.dim(-2) is K, w.dim(-1) is N.
std::int64_t depth_of(const TensorView& w) { return w.dim(w.rank - 2); }
std::int64_t columns_of(const TensorView& w) { return w.dim(w.rank - 1); }

std::int64_t rows_in_all(const A& a) {
  std::int64_t rows = 0;
  for (const TensorView& x : a.x.items) rows += rows_of(x);
  return rows;
}

bool weight_ranks_fit(const A& a) {
  if (a.form() == Form::rows && a.one_weight()) return true;
  return every(a.weight, [](const TensorView& w, std::int64_t) { return w.rank == 2; });
}

bool x_ranks_fit(const A& a) {
  const int most = a.form() == Form::separate ? 6 : 2;
  return every(a.x, [&](const TensorView& x, std::int64_t) { return 2 <= x.rank && x.rank <= most; });
}

bool depths_fit(const A& a) {
  const std::int64_t depth = a.x[0].dim(a.x[0].rank - 1);
  if (a.form() == Form::depth_of_list) {
    std::int64_t sum = 0;
    for (const TensorView& w : a.weight.items) sum += depth_of(w);
    return sum == depth;
  }
  return every(a.weight, [&](const TensorView& w, std::int64_t i) {
    const TensorView& x = a.x[a.x.size() == 1 ? 0 : i];
    return depth_of(w) == x.dim(x.rank - 1);
  });
}

bool one_width(const A& a) {
  const bool may_differ = a.form() == Form::separate || a.form() == Form::rows_to_list;
  return may_differ || every(a.weight, [&](const TensorView& w, std::int64_t) {
           return columns_of(w) == columns_of(a.weight[0]);
         });
}

bool has_shape(const TensorView& view, std::initializer_list<std::int64_t> shape) {
  return std::ranges::equal(view.dims(), shape);
}

bool outs_fit(const A& a) {
  const std::int64_t columns = columns_of(a.weight[0]);
  switch (a.form()) {
    case Form::separate:
      return every(a.out, [&](const TensorView& out, std::int64_t i) {
        const TensorView& x = a.x[i];
        return out.rank == x.rank && std::equal(out.shape, out.shape + out.rank - 1, x.shape) &&
               out.dim(out.rank - 1) == columns_of(a.weight[i]);
      });
    case Form::rows:
    case Form::rows_of_list:
      return has_shape(a.out[0], {rows_in_all(a), columns});
    case Form::rows_to_list: {
      std::int64_t rows = 0;
      for (const TensorView& out : a.out.items) rows += out.rank == 2 ? out.dim(0) : 0;
      return rows <= rows_in_all(a) && every(a.out, [&](const TensorView& out, std::int64_t i) {
               return out.rank == 2 && out.dim(1) == columns_of(a.weight[i]);
             });
    }
    case Form::depth:
      return a.out[0].rank == 3 && a.out[0].dim(1) == a.x[0].dim(0) && a.out[0].dim(2) == columns;
    default:
      return every(a.out, [&](const TensorView& out, std::int64_t) {
        return has_shape(out, {a.x[0].dim(0), columns});
      });
  }
}

// A list with one tensor (g, N), or as many as weights with (N) each.
bool per_column_fits(const A& a, const TensorListView& list) {
  if (absent(list)) return true;
  if (list.size() != a.weight.size() || !complete(list) || !one_type(list)) return false;
  if (a.one_weight()) return has_shape(list[0], {a.weight[0].dim(0), columns_of(a.weight[0])});
  return every(list, [&](const TensorView& item, std::int64_t i) {
    return has_shape(item, {columns_of(a.weight[i])});
  });
}

bool group_list_needed(const A& a) {
  const Form form = a.form();
  return form == Form::rows || form == Form::rows_to_list || form == Form::depth;
}
bool group_list_allowed(const A& a) {
  return a.form() != Form::separate &&
         (a.form() != Form::depth_of_list || product() == Product::host || product() == Product::a950);
}

bool group_list_fits(const A& a) {
  if (a.host_group_list.given) return a.host_group_list.size() == a.groups();
  if (!a.group_list.present()) return true;
  return a.group_list_type == 2 ? has_shape(a.group_list, {a.groups(), 2})
                                : has_shape(a.group_list, {a.groups()});
}

bool host_group_list_ascends(const A& a) {
  const std::int64_t last = a.group_type == 2 ? a.x[0].dim(1) : rows_in_all(a);
  const auto& ends = a.host_group_list.items;
  return std::is_sorted(ends.begin(), ends.end()) &&
         (ends.empty() || (ends.front() >= 0 && ends.back() <= last));
}

constexpr Rule not_yet(std::string_view subject, bool (*holds)(const void*)) {
  return {Stage::nulls,       kEverywhere, ACLNN_ERR_INNER_TILING_ERROR, subject,
          "be null or empty", holds,       "it is not supported yet"};
}
template <auto kList>
bool is_absent(const void* args) {
  return absent(static_cast<const A*>(args)->*kList);
}

constexpr Rule kRules[] = {
    rule<A>(
        Stage::nulls, kEverywhere, "weight", "have no null member",
        [](const A& a) { return complete(a.weight); }, {}, ACLNN_ERR_PARAM_NULLPTR),
    rule<A>(
        Stage::nulls, kEverywhere, "x", "have no null member", [](const A& a) { return complete(a.x); }, {},
        ACLNN_ERR_PARAM_NULLPTR),
    rule<A>(
        Stage::nulls, kEverywhere, "out", "have no null member", [](const A& a) { return complete(a.out); },
        {}, ACLNN_ERR_PARAM_NULLPTR),
    rule<A>(Stage::nulls, kEverywhere, "x", "have a member", [](const A& a) { return a.x.size() > 0; }),
    rule<A>(Stage::nulls, kEverywhere, "weight", "have a member",
            [](const A& a) { return a.weight.size() > 0; }),
    rule<A>(Stage::nulls, kEverywhere, "out", "have a member", [](const A& a) { return a.out.size() > 0; }),
    not_yet("offsetOptional", is_absent<&A::offset>),
    not_yet("antiquantScaleOptional", is_absent<&A::antiquant_scale>),
    not_yet("antiquantOffsetOptional", is_absent<&A::antiquant_offset>),
    not_yet("activationInputOptional", is_absent<&A::activation_input>),
    not_yet("activationQuantScaleOptional", is_absent<&A::activation_quant_scale>),
    not_yet("activationQuantOffsetOptional", is_absent<&A::activation_quant_offset>),
    not_yet("activationFeatureOutOptional", is_absent<&A::activation_feature_out>),
    not_yet("dynQuantScaleOutOptional", is_absent<&A::dyn_quant_scale_out>),
    rule<A>(Stage::attributes, kEverywhere, "splitItem", "be in [0, 3]",
            [](const A& a) { return 0 <= a.split_item && a.split_item <= 3; }),
    rule<A>(Stage::attributes, kEverywhere, "groupType", "be -1, 0 or 2",
            [](const A& a) { return a.group_type == -1 || a.group_type == 0 || a.group_type == 2; }),
    rule<A>(Stage::attributes, kEverywhere, "groupListType", "be 0, 1 or 2",
            [](const A& a) { return 0 <= a.group_list_type && a.group_list_type <= 2; }),
    rule<A>(
        Stage::attributes, kEverywhere, "actType", "be 0, 1, 2, 4 or 5",
        [](const A& a) { return 0 <= a.act_type && a.act_type <= 5 && a.act_type != 3; },
        "3, gelu with erf, has no kernel"),
    rule<A>(Stage::attributes, kEverywhere, "x", "be of one data type",
            [](const A& a) { return one_type(a.x); }),
    rule<A>(Stage::attributes, kEverywhere, "weight", "be of one data type",
            [](const A& a) { return one_type(a.weight); }),
    rule<A>(Stage::attributes, kEverywhere, "out", "be of one data type",
            [](const A& a) { return one_type(a.out); }),
    rule<A>(
        Stage::attributes, kEverywhere, "x",
        "be of data types that go together with weight, biasOptional, scaleOptional, "
        "perTokenScaleOptional and out",
        [](const A& a) { return types_fit(a); },
        "CANN's document of aclnnGroupedMatmulV5 has the table of combinations"),
    rule<A>(
        Stage::attributes, kEverywhere, "splitItem",
        "fit groupType and the lengths of x, weight and out (groupType, x, weight, out)",
        [](const A& a) { return a.form() != Form::none; },
        "the header of aclnnGroupedMatmulV5 has the table of combinations"),
    rule<A>(Stage::attributes, kEverywhere, "groupType",
            "be 0, with one tensor each, for INT8 (x, weight, out)",
            [](const A& a) { return !a.quantised() || (a.form() == Form::rows && a.one_weight()); }),
    rule<A>(Stage::attributes, kEverywhere, "actType", "be 0 unless x is INT8 and out BF16 or FP16 (x, out)",
            [](const A& a) { return a.act_type == 0 || (a.quantised() && kHalves.has(a.out[0].dtype)); }),
    rule<A>(Stage::attributes, kEverywhere, "groupListType", "be 0 or 1 unless x is INT8 and groupType 0",
            [](const A& a) { return a.group_list_type != 2 || (a.quantised() && a.group_type == 0); }),
    rule<A>(
        Stage::attributes, kEverywhere, "groupListOptional", "be given for groupType and these lists",
        [](const A& a) { return a.has_group_list() || !group_list_needed(a); }, "pass where the groups end"),
    rule<A>(Stage::attributes, kEverywhere, "groupListOptional", "be null for groupType and these lists",
            [](const A& a) { return !a.has_group_list() || group_list_allowed(a); }),
    rule<A>(Stage::attributes, kEverywhere, "biasOptional", "be null for groupType 2",
            [](const A& a) { return a.group_type != 2 || absent(a.bias); }),
    rule<A>(Stage::shapes, kEverywhere, "weight",
            "have 2 dimensions each, or be one tensor of 3 for groupType 0",
            [](const A& a) { return weight_ranks_fit(a); }),
    rule<A>(Stage::shapes, kEverywhere, "x", "have 2 dimensions each (up to 6 for groupType -1)",
            [](const A& a) { return x_ranks_fit(a); }),
    rule<A>(Stage::shapes, kEverywhere, "x", "have as many columns as weight has rows (weight)",
            [](const A& a) { return depths_fit(a); }),
    rule<A>(Stage::shapes, kEverywhere, "weight", "have as many columns in every group",
            [](const A& a) { return one_width(a); }),
    rule<A>(Stage::shapes, kEverywhere, "out",
            "have a row per row of x and a column per column of weight (x, weight)",
            [](const A& a) { return outs_fit(a); }),
    rule<A>(Stage::shapes, kEverywhere, "biasOptional",
            "have as many members as weight, of shape (g, N) for one weight of 3 dimensions and (N) "
            "otherwise (weight)",
            [](const A& a) { return per_column_fits(a, a.bias); }),
    rule<A>(Stage::shapes, kEverywhere, "scaleOptional", "be one tensor of shape (g, N) (weight)",
            [](const A& a) { return per_column_fits(a, a.scale); }),
    rule<A>(Stage::shapes, kEverywhere, "perTokenScaleOptional",
            "be one tensor with a value per row of x (x)",
            [](const A& a) {
              return absent(a.per_token_scale) ||
                     (a.per_token_scale.size() == 1 && has_shape(a.per_token_scale[0], {rows_in_all(a)}));
            }),
    rule<A>(Stage::shapes, kEverywhere, "groupListOptional",
            "have one entry per group, or one pair per group for groupListType 2 (weight, out)",
            [](const A& a) { return group_list_fits(a); }),
    rule<A>(Stage::shapes, kEverywhere, "groupListOptional", "ascend from 0 to at most the rows of x",
            [](const A& a) { return host_group_list_ascends(a); }),
    rule<A>(
        Stage::shapes, kDevices, "weight", "be at most 1024 groups in one tensor and 128 in a list",
        [](const A& a) { return a.groups() <= (a.one_weight() || a.form() == Form::depth ? 1024 : 128); }),
    rule<A>(Stage::shapes, kDevices, "x", "have last dimensions below 65536 (weight)",
            [](const A& a) {
              return every(a.x,
                           [](const TensorView& x, std::int64_t) { return x.dim(x.rank - 1) < 65536; }) &&
                     every(a.weight, [](const TensorView& w, std::int64_t) { return columns_of(w) < 65536; });
            }),
    rule<A>(Stage::shapes, kEverywhere, "x",
            "have at least as many rows as the first entry of tuningConfigOptional, none negative",
            [](const A& a) {
              return a.tuning_config.items.empty() ||
                     (a.tuning_config[0] <= rows_in_all(a) &&
                      std::ranges::all_of(a.tuning_config.items,
                                          [](std::int64_t hint) { return hint >= 0; }));
            }),
};

}  // namespace

const Contract GroupedMatmul::kContract{{
    .name = "GroupedMatmul",
    .family = "compute",
    .summary = "Multiplies groups of rows (or ranges of k) with a weight matrix of their own each.",
    .source = "aclnnGroupedMatmulV5",
    .products = kHost | kA2 | kA3 | k950 | k310P,
    .params = kParams,
    .rules = kRules,
}};

}  // namespace moeyard::ops
