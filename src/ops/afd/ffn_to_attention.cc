// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "ops/afd/ffn_to_attention.h"

#include <algorithm>

#include "base/errors.h"
#include "base/parallel.h"
#include "ops/afd/context.h"

namespace moeyard::ops {
namespace {

using namespace contract;
using A = FfnToAttentionArgs;

constexpr std::int64_t kBytesPerTask = 256 * 1024;  // of rows: some 20 us of writing
constexpr std::int64_t kStreamedBytes =
    4 * 1024 * 1024;  // more than that does not wait in a cache for its reader

constexpr Param kParams[] = {
    in<&A::x>("x", kHalves, "Y, H", "results, rows as the batching operator gave them"),
    in<&A::session_ids>("sessionIds", kINT32, "Y", "attention worker of each row"),
    in<&A::micro_batch_ids>("microBatchIds", kINT32, "Y", "its micro-batch"),
    in<&A::token_ids>("tokenIds", kINT32, "Y", "token in it"),
    in<&A::expert_offsets>("expertOffsets", kINT32, "Y", "slot of the token"),
    in<&A::actual_token_num>("actualTokenNum", kINT64, "1 | ()", "rows to send"),
    in<&A::attn_rank_table>("attnRankTableOptional", kINT32, "*",
                            "rank of each attention worker; null: its number")
        .optional(),
    attribute<&A::group>("group", "name of the communicator"),
    attribute<&A::world_size>("worldSize", "ranks of the communicator"),
    attribute<&A::token_info_table_shape>("tokenInfoTableShape", "{M, BS, slots of a token}"),
    attribute<&A::token_data_shape>("tokenDataShape",
                                    "{M, BS, slots of a token, elements from slot to slot}"),
};

constexpr Dim kDims[] = {dim("Y", "rows at most"), dim("H", "elements of a row")};

bool in_range(std::int64_t value, std::int64_t low, std::int64_t high) {
  return low <= value && value <= high;
}

constexpr Rule kRules[] = {
    group_is_named<A>(),
    group_is_short<A>(),
    world_size_on_devices<A>(),
    world_size_on_host<A>(),
    rule<A>(Stage::attributes, kEverywhere, "tokenInfoTableShape", "have 3 values, {M, BS, slots}",
            [](const A& a) { return a.token_info_table_shape.size() == 3; }),
    rule<A>(Stage::attributes, kEverywhere, "tokenDataShape",
            "have 4 values, {M, BS, slots, elements of a slot}",
            [](const A& a) { return a.token_data_shape.size() == 4; }),
    rule<A>(Stage::attributes, kEverywhere, "tokenDataShape", "begin as tokenInfoTableShape does",
            [](const A& a) {
              return std::equal(a.token_info_table_shape.items.begin(), a.token_info_table_shape.items.end(),
                                a.token_data_shape.items.begin());
            }),
    rule<A>(Stage::attributes, kEverywhere, "tokenDataShape", "have values above 0 and below 2^31",
            [](const A& a) {
              return std::all_of(a.token_data_shape.items.begin(), a.token_data_shape.items.end(),
                                 [](std::int64_t value) { return in_range(value, 1, INT32_MAX); });
            }),
    rule<A>(Stage::attributes, kDevices, "tokenDataShape", "have M = 1 and BS in [1, 512]",
            [](const A& a) { return a.token_data_shape[0] == 1 && a.token_data_shape[1] <= 512; }),
    rule<A>(Stage::attributes, kDevices, "tokenDataShape", "have slots of 1024 to 8320 elements",
            [](const A& a) { return in_range(a.token_data_shape[3], 1024, 8320); }),
    rule<A>(Stage::shapes, kEverywhere, "x", "have an H above 0", [](const A& a) { return a.hidden() >= 1; }),
    rule<A>(Stage::shapes, kDevices, "x", "have an H in [1024, 8192]",
            [](const A& a) { return in_range(a.hidden(), 1024, 8192); }),
    rule<A>(Stage::shapes, kEverywhere, "tokenDataShape", "have slots of at least H elements",
            [](const A& a) { return a.token_data_shape[3] >= a.hidden(); }),
};

// One call on the stream's thread. Everything is checked before anything is written.
class Returning {
 public:
  Returning(const executor::Run& run, const A& args, const FfnToAttention::Plan& plan, const Windows& windows)
      : function_(run.function), workspace_(run.workspace), args_(args), plan_(plan), windows_(windows) {}

  Status run() {
    rows_ = *args_.actual_token_num.begin_as<std::int64_t>();
    if (!in_range(rows_, 0, args_.rows()))
      return wrong(
          fmt::format("actualTokenNum is {} but must be in [0, {}], the rows of x", rows_, args_.rows()));
    std::fill_n(plan_.window_of_session.in(workspace_), args_.sessions(), nullptr);
    for (std::int64_t i = 0; i < rows_; ++i) MOEYARD_TRY(find_place(i));
    send();
    return send_far();
  }

 private:
  Status wrong(const std::string& text) const {
    return fail(stream_error::kWorkerSide, TextCode::operator_parameter, "{}: {}", function_, text);
  }

  Result<std::uint64_t> index(const char* name, const TensorView& ids, std::int64_t row,
                              std::uint64_t limit) const {
    const std::int32_t value = ids.at<std::int32_t>(row);
    if (in_range(value, 0, static_cast<std::int64_t>(limit) - 1)) return static_cast<std::uint64_t>(value);
    return wrong(fmt::format("{}[{}] is {} but must be in [0, {})", name, row, value, limit));
  }

  Status find_place(std::int64_t i) const {
    const AttentionWindow& window = plan_.window;
    const auto session =
        MOEYARD_TRY(index("sessionIds", args_.session_ids, i, static_cast<std::uint64_t>(args_.sessions())));
    const auto micro_batch =
        MOEYARD_TRY(index("microBatchIds", args_.micro_batch_ids, i, window.micro_batches));
    const auto token = MOEYARD_TRY(index("tokenIds", args_.token_ids, i, window.tokens));
    const auto k = MOEYARD_TRY(index("expertOffsets", args_.expert_offsets, i, window.slots));
    std::byte* base = MOEYARD_TRY(window_of(static_cast<std::int64_t>(session)));
    plan_.place_of_row.in(workspace_)[i] = base + window.data_offset() + window.slot(micro_batch, token, k);
    plan_.flag_of_row.in(workspace_)[i] =
        reinterpret_cast<std::int32_t*>(base + window.flag(micro_batch, token, k));
    return {};
  }

  Result<std::byte*> window_of(std::int64_t session) const {
    std::byte*& window = plan_.window_of_session.in(workspace_)[session];
    if (window != nullptr) return window;
    const std::int64_t rank = rank_of(session);
    if (args_.attn_rank_table.present() && !in_range(rank, 0, args_.world_size - 1))
      return wrong(fmt::format("attnRankTableOptional[{}] is {} but must be in [0, {})", session, rank,
                               args_.world_size));
    window = MOEYARD_TRY(windows_.of(function_, rank));
    return window;
  }

  void send() const {
    const std::int64_t row_bytes = args_.hidden() * 2;
    plan_.x.gather(args_.x, rows_, workspace_);
    const Rows x = plan_.x.rows(args_.x, workspace_);
    const kernels::CopyRows copy{x.data,    x.stride,
                                 row_bytes, plan_.place_of_row.in(workspace_),
                                 1,         rows_ * row_bytes > kStreamedBytes};
    parallel_for(rows_, kBytesPerTask / std::max<std::int64_t>(row_bytes, 1) + 1, [&](Range rows) {
      plan_.copy_rows(copy, rows);
      std::int32_t* const* flags = plan_.flag_of_row.in(workspace_);
      for (std::int64_t i = rows.begin; i < rows.end; ++i) set_flag(flags[i], 1);
    });
  }

  // Rows for attention workers of other hosts, and then their flags.
  Status send_far() const {
    std::vector<comm::WindowPiece> rows, flags;
    for (std::int64_t i = 0; i < rows_; ++i) {
      const std::int64_t session = args_.session_ids.at<std::int32_t>(i);
      const std::int64_t rank = rank_of(session);
      if (!windows_.is_far(rank)) continue;
      std::byte* const base = plan_.window_of_session.in(workspace_)[session];
      const auto piece = [&](std::byte* at, std::size_t bytes) {
        return comm::WindowPiece{static_cast<std::int32_t>(rank), at - base, {at, bytes}};
      };
      rows.push_back(
          piece(plan_.place_of_row.in(workspace_)[i], static_cast<std::size_t>(args_.hidden()) * 2));
      flags.push_back(
          piece(reinterpret_cast<std::byte*>(plan_.flag_of_row.in(workspace_)[i]), sizeof(std::int32_t)));
    }
    if (rows.empty()) return {};
    rows.insert(rows.end(), flags.begin(), flags.end());
    return windows_.write(function_, rows);
  }
  std::int64_t rank_of(std::int64_t session) const {
    return args_.attn_rank_table.present() ? args_.attn_rank_table.at<std::int32_t>(session) : session;
  }

  const char* const function_;
  std::byte* const workspace_;
  const A& args_;
  const FfnToAttention::Plan& plan_;
  const Windows& windows_;
  std::int64_t rows_ = 0;
};

}  // namespace

const Contract FfnToAttention::kContract{{
    .name = "FFNToAttention",
    .family = "afd",
    .summary = "Sends results of experts back into the windows of the attention workers that they belong to.",
    .source = "aclnnFFNToAttention",
    .products = kHost | kA2 | kA3 | k950,
    .codes = {.format = ACLNN_ERR_INNER_TILING_ERROR,
              .shape = ACLNN_ERR_INNER_TILING_ERROR,
              .rule = ACLNN_ERR_INNER_TILING_ERROR},
    .params = kParams,
    .dims = kDims,
    .rules = kRules,
}};

Result<FfnToAttention::Plan> FfnToAttention::plan(const char* function, const Args& args) {
  const comm::Limits limits = MOEYARD_TRY(find_workers(function, args.group, args.world_size));
  Plan plan;
  plan.window = args.window();
  MOEYARD_TRY(check_window(function, limits, plan.window.info_bytes() + plan.window.data_bytes(),
                           plan.window.bytes()));
  Scratch scratch;
  plan.x = DenseRows(args.x, args.rows(), scratch);
  plan.window_of_session = scratch.add<std::byte*>(args.sessions());
  plan.place_of_row = scratch.add<std::byte*>(args.rows());
  plan.flag_of_row = scratch.add<std::int32_t*>(args.rows());
  plan.workspace_bytes = scratch.bytes();
  plan.copy_rows = kernels::copy_rows_variants().front().run;
  return plan;
}

Result<Windows> FfnToAttention::open(const char* function, const Args& args, const Plan& /*plan*/,
                                     runtime::Stream& stream) {
  return Windows::open(function, args.group, stream);
}

Status FfnToAttention::run(const executor::Run& run, const Args& args, const Plan& plan,
                           const Windows& windows) {
  return Returning(run, args, plan, windows).run();
}

}  // namespace moeyard::ops
